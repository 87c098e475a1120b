"""Keeps a run and beads' `issues.jsonl` in step: issue by issue, and field by field."""

import json
from typing import ClassVar

from decklog.importers.beads.export import BeadsExport
from decklog.importers.beads.importer import BeadsImport
from decklog.importers.beads.words import PLACES, SHOWN
from decklog.importers.engine.row import parsed_json
from decklog.importers.engine.syncing import FileSync
from decklog.importers.engine.text_files import file_in
from decklog.importers.engine.tracker import COMMENTS, LINKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.importers.engine.syncing import Items

_OWN = ("title", "description", "acceptance_criteria", "status", "priority", "assignee", "defer_until", "close_reason")
# Each side writes these down by itself.
_TIMES = ("started_at", "closed_at", "compacted_at")


class BeadsSync(FileSync):
    """The file that beads exports to and imports from."""

    system = "beads"
    file_name, exports, imports = "issues.jsonl", BeadsExport, BeadsImport
    fields = (*_OWN, *(name for name in SHOWN if name not in _TIMES))
    sets: ClassVar = {
        "labels": lambda label: label,
        LINKS: lambda link: [link.get("depends_on_id"), link.get("type", "blocks")],
        COMMENTS: lambda comment: [comment.get("author"), comment.get("text")],
    }

    def __init__(self, log: "Any", path: str, **settings: "Any") -> None:
        super().__init__(log, file_in(path, PLACES, "Write it first: bd export -o .beads/issues.jsonl"), **settings)

    def theirs(self) -> "Items":
        """Read the issues of the file; of two with the same id the newer."""
        return _issues(self.read_file())

    def ours(self) -> "Items":
        """Write the run as beads has it, and read that."""
        text = self.export_text()
        return _issues(text) if text is not None else {}

    def take(self, items: "Items", ours: "Items") -> None:
        """Import the issues, as newer than all that is here."""
        at = self.later()
        self.import_text("".join(_line({**item, "updated_at": at}) for item in items.values()), ours)

    def give(self, items: "Items") -> None:
        """Write the lines of some issues anew, and leave every other byte as it is."""
        lines, left = [], dict(items)
        for line in self.read_file().splitlines(keepends=True):
            found = parsed_json(line)
            name = found.get("id") if isinstance(found, dict) else None
            if name in items:
                # Of an issue that stands there twice one line is left.
                lines.append(_line(left.pop(name)) if name in left else "")
            else:
                lines.append(line if line.endswith("\n") or not left else f"{line}\n")
        lines += [_line(left[name]) for name in sorted(left)]
        self.replace_file("".join(lines))


def _issues(text: str) -> "Items":
    found: Items = {}
    for line in text.splitlines():
        issue = parsed_json(line)
        if not isinstance(issue, dict) or not isinstance(name := issue.get("id"), str) or issue.get("_type") == "memory":
            continue
        for part in (LINKS, COMMENTS):
            if not all(isinstance(one, dict) for one in issue.get(part) or ()):
                issue.pop(part)
        issue.setdefault("issue_type", issue.pop("type", "task"))
        if name not in found or str(found[name].get("updated_at")) <= str(issue.get("updated_at")):
            found[name] = issue
    return found


def _line(issue: "dict[str, Any]") -> str:
    return json.dumps(issue, ensure_ascii=False, separators=(",", ":")) + "\n"
