"""Sync a run with another program's items by a three-way merge."""

import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, ClassVar

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Conflict, NotFound
from decklog.importing.exports import NewFile
from decklog.importing.files import MOST_BYTES, open_plain_file
from decklog.importing.row import to_storable
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.redaction import scan_json
from decklog.stores.approvals.inbox import MessageSeverity

Item = dict[str, Any]
Base = dict[str, Any]
Items = dict[str, Item]

_DIGITS = 16


@dataclass(slots=True)
class MergedItem:
    """The new version of an item on either side; None where it is unchanged."""

    here: Item | None = None
    there: Item | None = None
    # The fields that both sides changed differently, with both values.
    conflicts: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class ThreeWayMerge:
    """Merges items by their fields. Sets are merged member by member, so they never conflict."""

    _fields: tuple[str, ...]
    # The key function of each set's members; it returns None for an invalid member.
    _sets: dict[str, Callable[[Any], Any]]
    # Functions that normalize fields with several spellings.
    _meanings: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    def merge(self, name: str, base: Base, ours: Item, theirs: Item) -> MergedItem:
        """Merge an item that both sides have."""
        merged = MergedItem()
        here, there = dict(theirs), dict(theirs)
        is_taken = is_given = False
        for one in self._fields:
            mine, other = self._normalized_field(one, ours), self._normalized_field(one, theirs)
            if mine == other:
                continue
            was = base.get(one)
            if was == _digest(other):
                _set_or_remove(here, one, ours.get(one))
                _set_or_remove(there, one, ours.get(one))
                is_given = True
            elif was == _digest(mine):
                is_taken = True
            else:
                merged.conflicts.append({"item": name, "field": one, "here": _text(mine), "there": _text(other)})
                _set_or_remove(here, one, ours.get(one))
        for one in self._sets:
            members, mine_differs, other_differs = self._merge_members(one, base, ours, theirs)
            if mine_differs or other_differs:
                _set_or_remove(here, one, members)
                # Members without a key are never removed.
                unknown = [member for member in theirs.get(one) or () if self._sets[one](member) is None]
                _set_or_remove(there, one, [*members, *unknown])
            is_taken, is_given = is_taken or mine_differs, is_given or other_differs
        merged.here = here if is_taken else None
        merged.there = there if is_given else None
        return merged

    def _normalized_field(self, one: str, item: Item) -> Any:
        meaning = self._meanings.get(one)
        return _normalize(meaning(item.get(one)) if meaning else item.get(one))

    def _merge_members(self, one: str, base: Base, ours: Item, theirs: Item) -> tuple[list[Any], bool, bool]:
        mine, other = self._members_by_key(one, ours), self._members_by_key(one, theirs)
        if not isinstance(theirs.get(one, []), list | None):
            # The other side's field is not a set; leave it unchanged.
            return [], False, False
        was = set(base.get(one) or ())
        gone = {key for key in was if key not in mine or key not in other}
        members = {key: member for key, member in {**mine, **other}.items() if key not in gone}
        return list(members.values()), members.keys() != mine.keys(), members.keys() != other.keys()

    def _members_by_key(self, one: str, item: Item) -> dict[str, Any]:
        listed = item.get(one)
        keys = ((self._sets[one](member), member) for member in (listed if isinstance(listed, list) else ()))
        return {_digest(_normalize(key)): member for key, member in keys if key is not None}

    def merge_base(self, base: Base, ours: Item, theirs: Item) -> Base:
        """Return the new merge base: the fields in which both sides agree, and the old base for the others."""
        now = dict(base)
        for one in self._fields:
            if (mine := self._normalized_field(one, ours)) == self._normalized_field(one, theirs):
                now[one] = _digest(mine)
        for one in self._sets:
            mine_keys, other_keys = self._members_by_key(one, ours).keys(), self._members_by_key(one, theirs).keys()
            was = set(base.get(one) or ())
            now[one] = sorted((mine_keys & other_keys) | (was & (mine_keys | other_keys)))
        return now


def _set_or_remove(item: Item, one: str, value: Any) -> None:
    if value in (None, "", [], {}):
        item.pop(one, None)
    else:
        item[one] = value


def _normalize(value: Any) -> Any:
    """Return a value as the log would store it, with secrets redacted; None for an empty value."""
    return None if value in (None, "", [], {}) else scan_json(to_storable(value))[0]


def _digest(value: Any) -> str:
    return sha256(to_json([value]).encode()).hexdigest()[:_DIGITS]


_LONGEST_SHOWN = 2000
_MOST_NAMED = 200
# Only at the beginning of a line: the text of an issue may contain them.
_CONFLICT_MARKERS = re.compile(rb"(?m)^(<{7}|>{7}) ")
_LATEST_CHANGE = "select max(updated_at) from tasks where run_id = :run_id"


@dataclass
class SyncReport:
    """The result of a sync: items imported, exported, in conflict, and deleted on the other side."""

    system: str
    path: str
    dry_run: bool = False
    items: int = 0
    taken: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    disputed: list[dict[str, object]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    # The counts; the lists above are limited.
    totals: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Sync(ABC):
    """Syncs one source. A subclass reads and writes the other side, and returns the run in the same form."""

    system: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    # Fields that are sets, each with the key function of its members.
    sets: ClassVar[dict[str, Callable[[Any], Any]]]
    # The importer of the other side's items, and the name of its file.
    imports: ClassVar[type[Any]]
    file_name: ClassVar[str]

    # Functions that normalize fields with several spellings.
    meanings: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})

    def __init__(self, log: Decklog, path: str, *, run_id: str, dry_run: bool = False) -> None:
        self.log = log
        self.path = path
        self.run_id = run_id
        self.report = SyncReport(self.system, path, dry_run)
        self._three_way = ThreeWayMerge(self.fields, self.sets, self.meanings)

    @abstractmethod
    def theirs(self) -> Items:
        """Read the other side's items."""

    @abstractmethod
    def ours(self) -> Items:
        """Return the run's tasks in the form of the other side."""

    @abstractmethod
    def take(self, items: Items, ours: Items) -> None:
        """Import items of the other side, where they differ from ours."""

    @abstractmethod
    def give(self, items: Items) -> None:
        """Write items to the other side, replacing its versions."""

    def import_text(self, text: str, local_items: Items) -> None:
        """Import a text as the other side would have it; `local_items` has the items as they are in the log."""
        with tempfile.TemporaryDirectory(prefix="decklog-sync-") as folder:
            path = os.path.join(folder, self.file_name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            taking = self.imports(self.log, path, run_id=self.run_id)
            taking.local_items = local_items
            self.report.notes += taking.run().notes

    def task_of(self, item: str) -> str | None:
        """Return the task id of an item; None if unknown."""
        return item

    def is_wanted(self, _item: Item) -> bool:
        """Return whether to create a task that the other side never had."""
        return True

    def run(self) -> SyncReport:
        """Apply each side's changes to the other, and report conflicts to the inbox."""
        base, ours, theirs = self._load_base(), self.ours(), self.theirs()
        take, give = self._merge(base, ours, theirs)
        self.report.taken, self.report.given = self._list_names("taken", take), self._list_names("given", give)
        if self.report.dry_run:
            return self.report
        self._report_conflicts()
        if take:
            self.take(take, ours)
            # Save the base at once, so that later changes there count as new.
            base = self._save_base(base, theirs)
        if give:
            self.give(give)
        self._save_base(base, self.theirs() if give else theirs)
        return self.report

    def _merge(self, base: dict[str, Base], ours: Items, theirs: Items) -> tuple[Items, Items]:
        take: Items = {name: item for name, item in theirs.items() if name not in ours}
        new = ((name, item) for name, item in ours.items() if name not in theirs and name not in base)
        give: Items = {name: item for name, item in new if self.is_wanted(item)}
        self.report.items = len({*ours, *theirs})
        self.report.gone = self._list_names("gone", [name for name in ours if name not in theirs and name in base])
        for name in sorted(ours.keys() & theirs.keys()):
            merged = self._three_way.merge(name, base.get(name, {}), ours[name], theirs[name])
            if merged.here is not None:
                take[name] = merged.here
            if merged.there is not None:
                give[name] = merged.there
            self.report.disputed += merged.conflicts
        return take, give

    def _list_names(self, what: str, names: Collection[str]) -> list[str]:
        self.report.totals[what] = len(names)
        return sorted(names)[:_MOST_NAMED]

    def _save_base(self, base: dict[str, Base], theirs: Items) -> dict[str, Base]:
        """Save and return the new merge base."""
        ours = self.ours()
        now = {name: self._three_way.merge_base(base.get(name, {}), ours[name], theirs[name]) for name in ours if name in theirs}
        # Keep items that were deleted there, or they would be created again.
        now.update({name: held for name, held in base.items() if name not in now and name in ours})
        if now and now != base:
            self.log.states.save(self.run_id, self._state_name, {"items": now})
        return now

    @property
    def _state_name(self) -> str:
        return f"sync-{self.system}"

    def _load_base(self) -> dict[str, Base]:
        try:
            document = self.log.states.get(self.run_id, self._state_name).document
        except NotFound:
            return {}
        items = document.get("items") if isinstance(document, dict) else None
        return items if isinstance(items, dict) else {}

    def _report_conflicts(self) -> None:
        disputed = [(one, self.task_of(str(one["item"]))) for one in self.report.disputed]
        report_conflicts(self.log, self.system, self.run_id, disputed)

    def later(self) -> str:
        """Return a time later than every change of a task here, so that imported items are newer."""
        found = self.log.db.read(lambda: self.log.db.one(_LATEST_CHANGE, {"run_id": self.run_id}))
        latest = from_text(found[0]) if found and found[0] else self.log.clock.now()
        return to_text(max(latest, self.log.clock.now()) + timedelta(microseconds=1))


class FileSync(Sync):
    """Syncs a file that its exporter and importer read and write as a whole."""

    exports: ClassVar[type[Any]]
    _read: bytes = b""

    def export_text(self) -> str | None:
        """Return the run in the form of the file; None if there is no such run yet."""
        try:
            self.log.runs.get(self.run_id)
        except NotFound:
            return None
        with tempfile.TemporaryDirectory(prefix="decklog-sync-") as folder:
            path = os.path.join(folder, self.file_name)
            self.exports(self.log, path, run_id=self.run_id).run()
            with open(path, encoding="utf-8") as file:
                return file.read()

    def read_file(self) -> bytes:
        """Read the file, and keep its content to detect changes before it is replaced."""
        with open_plain_file(self.path, MOST_BYTES) as file:
            self._read = file.read()
        if {found[1][:1] for found in _CONFLICT_MARKERS.finditer(self._read)} == {b"<", b">"}:
            hint = f"Edit the file, or take the newer of both: decklog import {self.system} {self.path}"
            raise Conflict(f"{self.path} has git conflict markers; resolve them first", hint=hint, path=self.path)
        return self._read

    def replace_file(self, text: bytes) -> None:
        """Replace the file atomically, unless it was changed in the meantime."""
        with NewFile(self.path, replace=True) as file:
            file.write(text)
            # Sync to disk before the log saves the new base: a power cut must not restore the old file after that.
            file.publish(instead_of=self._read)


def report_conflicts(log: Decklog, system: str, run_id: str, disputed: list[tuple[dict[str, object], str | None]]) -> None:
    """Post each conflict to the inbox once, with its task."""
    for one, task_id in disputed:
        body = (
            f"{one['item']}: {one['field']} was changed here and in {system}, and nothing was overwritten. "
            f"Make both equal, or revert one of them.\nHere: {one['here']}\nThere: {one['there']}"
        )
        key = f"sync:{system}:{run_id}:{sha256(to_json(one).encode()).hexdigest()[:32]}"
        log.inbox.post(f"sync-{system}", body, severity=MessageSeverity.QUESTION, run_id=run_id, task_id=task_id, key=key)


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else to_json(value))[:_LONGEST_SHOWN]
