"""Keeps a run and beads' `issues.jsonl` in step: issue by issue, and field by field."""

from io import BytesIO
from typing import TYPE_CHECKING, ClassVar

from decklog.core.clock import from_text, to_text
from decklog.importing.exports.texts import json_text, short_time
from decklog.importing.row import EPOCH, kept_columns
from decklog.importing.syncing import FileSync
from decklog.importing.text_files import file_in, parsed
from decklog.importing.tracker import COMMENTS, LINKS, moment_of
from decklog.plugins.importers.beads.export import BeadsExport
from decklog.plugins.importers.beads.importer import BeadsImport
from decklog.plugins.importers.beads.words import PLACES, SHOWN

if TYPE_CHECKING:
    from typing import Any

    from decklog.importing.syncing import Items

_OWN = ("title", "description", "acceptance_criteria", "status", "priority", "assignee", "defer_until", "close_reason")
_NEVER = to_text(EPOCH)
# Each side writes these down by itself.
_TIMES = ("started_at", "closed_at", "compacted_at")


def _deferred(at: "Any") -> "Any":
    """Return a time in one spelling; the first moment of a calendar stands for none."""
    moment = moment_of(at)
    return None if moment and moment <= _NEVER else short_time(from_text(moment)) if moment else at


class BeadsSync(FileSync):
    """The file that beads exports to and imports from."""

    system = "beads"
    file_name, exports, imports = "issues.jsonl", BeadsExport, BeadsImport
    fields = (*_OWN, *(name for name in SHOWN if name not in _TIMES))
    sets: ClassVar = {
        "labels": lambda label: label if isinstance(label, str) and label.strip() else None,
        LINKS: lambda link: [link.get("depends_on_id"), link.get("type", "blocks")] if isinstance(link, dict) else None,
        COMMENTS: lambda comment: [comment.get("author"), comment.get("text")] if isinstance(comment, dict) else None,
    }

    meanings: ClassVar = {
        "status": lambda word: "open" if word is None else word,
        "priority": lambda number: int(number) if str(number).isdecimal() else 2 if number is None else number,
        "defer_until": _deferred,
    }

    def __init__(self, log: "Any", path: str, **settings: "Any") -> None:
        super().__init__(log, file_in(path, PLACES, "Write it first: bd export -o .beads/issues.jsonl"), **settings)

    def theirs(self) -> "Items":
        """Read the issues of the file; of two with the same id the newer."""
        found, left = _issues(self.read_file())
        if left and (note := f"{left} lines of {self.path} are no issues, and stay there as they are") not in self.report.notes:
            self.report.notes.append(note)
        return found

    def ours(self) -> "Items":
        """Write the run as beads has it, and read that."""
        text = self.export_text()
        return _issues(text.encode())[0] if text is not None else {}

    def take(self, items: "Items", ours: "Items") -> None:
        """Import the issues, as newer than all that is here."""
        at = self.later()
        self.import_text("".join(_line({**item, "updated_at": at}) for item in items.values()), ours)

    def give(self, items: "Items") -> None:
        """Write the lines of some issues anew, and leave every other byte as it is."""
        lines, left = [], dict(items)
        for line in _lines(self.read_file()):
            issue = _issue(line)
            name = issue["id"] if issue else None
            if name in items:
                # Of an issue that stands there twice one line is left.
                lines.append(_line(left.pop(name)).encode() if name in left else b"")
            else:
                lines.append(line if line.endswith(b"\n") or not left else line + b"\n")
        lines += [_line(left[name]).encode() for name in sorted(left)]
        self.replace_file(b"".join(lines))


def _issues(text: bytes) -> "tuple[Items, int]":
    """Read issues as an import does; give also how many lines are neither issues nor memories."""
    found: Items = {}
    versions: dict[str, tuple[str, str]] = {}
    left = 0
    for line in _lines(text):
        issue = _issue(line)
        if issue is None:
            left += bool(line.strip()) and not _is_memory(line)
            continue
        version = (moment_of(issue.get("updated_at")), kept_columns(issue)[1])
        if version >= versions.get(issue["id"], ("", "")):
            issue.setdefault("issue_type", issue.pop("type", "task"))
            issue["title"] = issue.get("title") or issue["id"]
            found[issue["id"]], versions[issue["id"]] = issue, version
    return found, left


def _lines(text: bytes) -> list[bytes]:
    """Return the lines of a file: a text may hold other characters that end one."""
    return BytesIO(text).readlines()


def _read(line: bytes) -> "dict[str, Any]":
    found = parsed(line.decode("utf-8", "replace").strip().lstrip("\ufeff"))
    return found if isinstance(found, dict) else {}


def _is_memory(line: bytes) -> bool:
    return _read(line).get("_type") == "memory"


def _issue(line: bytes) -> "dict[str, Any] | None":
    issue = _read(line)
    name = issue.get("id")
    return issue if isinstance(name, str) and name.strip() and issue.get("_type") != "memory" else None


def _line(issue: "dict[str, Any]") -> str:
    return json_text(issue, separators=(",", ":")) + "\n"
