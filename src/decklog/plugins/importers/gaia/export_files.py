"""Gaia-coder's three file stores, written byte for byte as its programs write them."""

import json
import os
from itertools import chain
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.disk import sync_descriptor
from decklog.core.errors import NotFound
from decklog.db.sqlite.scratch import Scratch
from decklog.importing.exports.report import ExportReport
from decklog.importing.exports.rows import each
from decklog.importing.leftovers import LeftoverRows
from decklog.importing.pages import every
from decklog.plugins.importers.gaia import files
from decklog.plugins.importers.gaia.spelling import as_it_was, time_text, times
from decklog.plugins.importers.gaia.trust_files import BINDING, EM, binding_text, em_text
from decklog.stores.approvals.self_edits import PASSES, SelfEdit
from decklog.stores.artifacts.checkpoints import TaskSnapshot
from decklog.stores.memory.learnings import DISMISSED, Learning, LearningLine, format_entry
from decklog.stores.tasks.task import Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.log import Decklog

SYSTEM = "gaia"
SNAPSHOTS, EDITS, NOTES = "paused_tasks", "self_edits_log", "learnings_log"
_LEARNING = ("id", "task_id", "observation", "candidate", "noted_at", "decided_at")
_DESK = "@desk"
_LONGEST_NAME = 256
# Anyone can write an entry that names a line far away, and nobody has so many blank ones.
_MOST_BLANK = 1000


class GaiaHomeFiles:
    """Writes the file stores of one home. A log that nothing was written to is not made, so that this can be seen."""

    def __init__(self, log: "Decklog", folder: str, kept: LeftoverRows, report: ExportReport) -> None:
        self.log = log
        self.folder = folder
        self.kept = kept
        self.report = report

    def write(self) -> None:
        """Write all three, and the two settings files."""
        os.mkdir(os.path.join(self.folder, files.PAUSED), 0o700)
        self._snapshots()
        self._log(files.SELF_EDITS, EDITS, self._self_edits())
        self._log(files.LEARNINGS, NOTES, self._learnings())
        self._settings(EM, em_text(self.log))
        self._settings(BINDING, binding_text(self.log))

    def _settings(self, name: str, text: str | None) -> None:
        """Write a settings file: what it says here, or the text that was kept because it could not be read."""
        for _, row in self.kept.rows(name):
            text = text if text is not None else str(row.get("text"))
        if text is not None:
            _write(os.path.join(self.folder, name), [text])
            self.report.count(name)

    # Paused tasks

    def _snapshots(self) -> None:
        """Write the newest snapshot of each task: what was only kept, then what tasks have, then what was saved as such."""
        for _, row in self.kept.rows(SNAPSHOTS):
            self._snapshot(str(row.get("task_id")), row.get("document"))
        paused = "where state = :state and snapshot is not null"
        for task in each(self.log, Task, "id", paused, state=TaskState.PAUSED.value):
            known = {"task_id": task.id, "paused_at": time_text(task.updated_at), "reason": task.reason or "paused"}
            self._snapshot(task.id, {**known, **(task.snapshot or {})})
        before = None
        for snapshot in each(self.log, TaskSnapshot, "task_id, saved_at, run_id"):
            self._snapshot(snapshot.task_id, self._document(snapshot))
            self.report.leave_out("snapshots of a task in another run", int(snapshot.task_id == before))
            before = snapshot.task_id
        for _ in os.listdir(os.path.join(self.folder, files.PAUSED)):
            self.report.count(SNAPSHOTS)

    def _document(self, snapshot: TaskSnapshot) -> "Any":
        try:
            return self.log.states.get_snapshot(snapshot.run_id, snapshot.task_id).document
        except NotFound as problem:
            self.report.refuse(f"{files.PAUSED}/{snapshot.task_id}.json", problem.message)
            return None

    def _snapshot(self, task_id: str, document: "Any") -> None:
        """Write one snapshot under its task's name, if a file can be called so."""
        name = f"{task_id}.json"
        if not _is_file_name(task_id):
            self.report.refuse(f"{files.PAUSED}/{name}", "no file can have this name")
        elif document is not None:
            text = document if isinstance(document, str) else json.dumps(document, indent=2, sort_keys=True)
            _write(os.path.join(self.folder, files.PAUSED, name), [text])

    # The two logs

    def _log(self, name: str, table: str, found: "Iterator[tuple[int | None, datetime, str]]") -> None:
        """Write lines in the order they had; those that came here since follow by their time."""
        lines = Scratch()
        lines.execute("create table lines (number integer, at text, line text not null)")
        lines.execute("begin")
        for number, moment, line in found:
            lines.execute("insert into lines values (?, ?, ?)", (number, to_text(moment), line))
        for row_id, row in self.kept.rows(table):
            lines.execute("insert into lines values (?, '', ?)", (_whole(row_id), str(row.get("line"))))
        ordered = lines.execute("select number, line from lines order by number is null, number, at, rowid")
        first = next(ordered, None)
        if first is not None:
            _write(os.path.join(self.folder, name), self._spaced(table, chain([first], ordered)))
        lines.close()

    def _spaced(self, table: str, lines: "Iterable[tuple[int | None, str]]") -> "Iterator[str]":
        """Give lines with the blank ones that were between them, so that a line's number stays what people quote."""
        place = 0
        for number, line in lines:
            if number is not None and place < number <= place + _MOST_BLANK:
                yield "\n" * (number - place - 1)
            place = max(place + 1, number or 0)
            self.report.count(table)
            yield f"{line}\n"

    def _self_edits(self) -> "Iterator[tuple[int | None, datetime, str]]":
        marks = self._marks()
        for edit in each(self.log, SelfEdit, "edited_at, id"):
            number, key = marks.first("select number, key from marks where id = ?", (edit.id,)) or (None, None)
            line, is_other = as_it_was(_edit_lines(edit), key)
            self.report.leave_out(f"the spelling of lines in {files.SELF_EDITS}", int(is_other))
            yield number, edit.edited_at, line
        marks.close()

    def _marks(self) -> Scratch:
        """Find the number and the key of each line that became a self-edit: the entry after its mark tells which."""
        marks = Scratch()
        marks.execute("create table marks (id text primary key, number integer, key text)")
        for mark in every(lambda **page: self.log.journal.find(_DESK, subtype="imported", oldest_first=True, **page)):
            made = self._after(mark)
            if made is not None:
                row = (made, _whole(mark.payload["id"]), mark.key)
                marks.execute("insert or replace into marks values (?, ?, ?)", row)
        return marks

    def _after(self, mark: "Entry") -> str | None:
        """Name the self-edit that the entry after a mark made; the mark of anything else has none."""
        told = mark.payload if isinstance(mark.payload, dict) else {}
        if (told.get("system"), told.get("table")) != (SYSTEM, EDITS):
            return None
        try:
            made = self.log.journal.get(_DESK, mark.seq + 1)
        except NotFound:
            return None
        return made.record_id if made.record_table == SelfEdit.table else None

    def _learnings(self) -> "Iterator[tuple[int | None, datetime, str]]":
        prefix = f"import:{SYSTEM}:{NOTES}:"
        for learning in each(self.log, Learning, "noted_at, id"):
            imported = learning.key if (learning.key or "").startswith(prefix) else None
            number = _whole((imported or "").removeprefix(prefix).partition(":")[0])
            line, is_other = as_it_was(_learning_lines(learning), imported)
            is_undecided = learning.decided_at in (None, learning.noted_at)
            self.report.leave_out(f"the spelling of lines in {files.LEARNINGS}", int(is_other and is_undecided))
            # A line tells that a learning was dismissed, but not that it was promoted.
            placed = [*_LEARNING, *(["key"] if imported else []), *(["state"] if learning.candidate == DISMISSED else [])]
            self.report.leave_out_fields("learnings", learning, placed)
            yield number, learning.noted_at, line


def _edit_lines(edit: SelfEdit) -> "Iterator[str]":
    """Yield the lines that a self-edit may have been: as its own program writes it, and as others write JSON."""
    document: dict[str, Any] = {name: value for name, value in edit.as_dict().items() if name not in ("id", "edited_at")}
    document["review_passes"] = {name: edit.review_passes[name] for name in PASSES}
    for ts in times(edit.edited_at):
        whole = {"ts": ts, **document}
        yield json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        for shown in (whole, {name: value for name, value in whole.items() if value is not None}):
            yield from (json.dumps(shown), json.dumps(shown, ensure_ascii=False), json.dumps(shown, sort_keys=True))
            yield from (json.dumps(shown, separators=(",", ":")), json.dumps(shown, separators=(",", ":"), sort_keys=True))


def _learning_lines(learning: Learning) -> "Iterator[str]":
    """Yield the lines that a learning may have been: there nothing in an observation is escaped."""
    for ts in times(learning.noted_at):
        line = LearningLine(ts, learning.task_id, learning.observation, learning.candidate)
        yield f'{ts} [task={line.task_id}] Observed: "{line.observation}" → {line.candidate}'
        yield format_entry(line)


def _is_file_name(task_id: str) -> bool:
    """Return whether a snapshot can be called so: an id comes from records, and must not lead out of the folder."""
    fits = task_id.isprintable() and len(f"{task_id}.json".encode()) < _LONGEST_NAME
    return fits and task_id not in ("", ".", "..") and not set(task_id) & {"/", "\\"}


def _whole(text: object) -> int | None:
    """Read a line's number."""
    digits = str(text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _write(path: str, texts: "Iterable[str]") -> None:
    """Write a file that only its owner can read, and have it on the disk."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(opened, "w", encoding="utf-8", newline="") as file:
        file.writelines(texts)
        file.flush()
        sync_descriptor(file.fileno())
