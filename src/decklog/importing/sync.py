"""Sync a run with another program's items: a three-way merge by the last version that both sides had."""

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
from decklog.importing.files import MOST_BYTES, opened
from decklog.importing.row import plain
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
    """The new version of an item on either side; None where it stays unchanged."""

    here: Item | None = None
    there: Item | None = None
    # Each field that both sides changed in different ways, with both values, as it is reported.
    conflicts: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class ThreeWay:
    """Merges items by their fields. A field that is a set is merged member by member, so that it is never in dispute."""

    _fields: tuple[str, ...]
    # By name, with the key of a member; None for what is no member.
    _sets: dict[str, Callable[[Any], Any]]
    # The meaning of a field that can be spelled in several ways.
    _meanings: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    def merge(self, name: str, base: Base, ours: Item, theirs: Item) -> MergedItem:
        """Merge an item that both sides have."""
        merged = MergedItem()
        here, there = dict(theirs), dict(theirs)
        is_taken = is_given = False
        for one in self._fields:
            mine, other = self._plain_value(one, ours), self._plain_value(one, theirs)
            if mine == other:
                continue
            was = base.get(one)
            if was == _digest(other):
                _put(here, one, ours.get(one))
                _put(there, one, ours.get(one))
                is_given = True
            elif was == _digest(mine):
                is_taken = True
            else:
                merged.conflicts.append({"item": name, "field": one, "here": _text(mine), "there": _text(other)})
                _put(here, one, ours.get(one))
        for one in self._sets:
            members, mine_differs, other_differs = self._members(one, base, ours, theirs)
            if mine_differs or other_differs:
                _put(here, one, members)
                # Members without a key are never removed.
                unknown = [member for member in theirs.get(one) or () if self._sets[one](member) is None]
                _put(there, one, [*members, *unknown])
            is_taken, is_given = is_taken or mine_differs, is_given or other_differs
        merged.here = here if is_taken else None
        merged.there = there if is_given else None
        return merged

    def _plain_value(self, one: str, item: Item) -> Any:
        meaning = self._meanings.get(one)
        return _plain(meaning(item.get(one)) if meaning else item.get(one))

    def _members(self, one: str, base: Base, ours: Item, theirs: Item) -> tuple[list[Any], bool, bool]:
        mine, other = self._by_key(one, ours), self._by_key(one, theirs)
        if not isinstance(theirs.get(one, []), list | None):
            # It is no set there, and stays what it is.
            return [], False, False
        was = set(base.get(one) or ())
        gone = {key for key in was if key not in mine or key not in other}
        members = {key: member for key, member in {**mine, **other}.items() if key not in gone}
        return list(members.values()), members.keys() != mine.keys(), members.keys() != other.keys()

    def _by_key(self, one: str, item: Item) -> dict[str, Any]:
        listed = item.get(one)
        keys = ((self._sets[one](member), member) for member in (listed if isinstance(listed, list) else ()))
        return {_digest(_plain(key)): member for key, member in keys if key is not None}

    def agreed(self, base: Base, ours: Item, theirs: Item) -> Base:
        """Return the last common version: of each field in which both sides are the same, that; of the others what was."""
        now = dict(base)
        for one in self._fields:
            if (mine := self._plain_value(one, ours)) == self._plain_value(one, theirs):
                now[one] = _digest(mine)
        for one in self._sets:
            mine_keys, other_keys = self._by_key(one, ours).keys(), self._by_key(one, theirs).keys()
            was = set(base.get(one) or ())
            now[one] = sorted((mine_keys & other_keys) | (was & (mine_keys | other_keys)))
        return now


def _put(item: Item, one: str, value: Any) -> None:
    if value in (None, "", [], {}):
        item.pop(one, None)
    else:
        item[one] = value


def _plain(value: Any) -> Any:
    """Return a value as the log would hold it: a secret there is a marker here, and and an empty value is none."""
    return None if value in (None, "", [], {}) else scan_json(plain(value))[0]


def _digest(value: Any) -> str:
    return sha256(to_json([value]).encode()).hexdigest()[:_DIGITS]


_LONGEST_SHOWN = 2000
_MOST_NAMED = 200
# At the beginning of a line: an issue may speak of them.
_MARKERS = re.compile(rb"(?m)^(<{7}|>{7}) ")
_LATEST = "select max(updated_at) from tasks where run_id = :run_id"


@dataclass
class Synced:
    """What was done: items that were taken from there, given to it, in dispute, and gone from it."""

    system: str
    path: str
    dry_run: bool = False
    items: int = 0
    taken: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    disputed: list[dict[str, object]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    # How many there were; of each a few hundred are named.
    totals: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Sync(ABC):
    """Syncs one source. A subclass reads and writes the other side, and returns the log in the same form."""

    system: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    # Fields that are sets, each with the key of its members.
    sets: ClassVar[dict[str, Callable[[Any], Any]]]
    # The importer of what is taken, and the name of a file for it.
    imports: ClassVar[type[Any]]
    file_name: ClassVar[str]

    # What fields say that can be spelled in several ways.
    meanings: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})

    def __init__(self, log: Decklog, path: str, *, run_id: str, dry_run: bool = False) -> None:
        self.log = log
        self.path = path
        self.run_id = run_id
        self.report = Synced(self.system, path, dry_run)
        self._three_way = ThreeWay(self.fields, self.sets, self.meanings)

    @abstractmethod
    def theirs(self) -> Items:
        """Read the other side's items."""

    @abstractmethod
    def ours(self) -> Items:
        """Return the run's tasks as the other side would have them."""

    @abstractmethod
    def take(self, items: Items, ours: Items) -> None:
        """Bring items of the other side into the log, so far as they differ from what is here."""

    @abstractmethod
    def give(self, items: Items) -> None:
        """Write items to the other side, over what is there."""

    def import_text(self, text: str, as_here: Items) -> None:
        """Import a text as the other side would have it; `as_here` has the items as they are in the log."""
        with tempfile.TemporaryDirectory(prefix="decklog-sync-") as folder:
            path = os.path.join(folder, self.file_name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            taking = self.imports(self.log, path, run_id=self.run_id)
            taking.as_here = as_here
            self.report.notes += taking.run().notes

    def task_of(self, item: str) -> str | None:
        """Return the task id of an item; None if unknown."""
        return item

    def is_wanted(self, _item: Item) -> bool:
        """Return whether a task that the other side never had is to be made there."""
        return True

    def run(self) -> Synced:
        """Apply each side's changes to the other, and report conflicts to the inbox."""
        base, ours, theirs = self._base(), self.ours(), self.theirs()
        take, give = self._merge(base, ours, theirs)
        self.report.taken, self.report.given = self._named("taken", take), self._named("given", give)
        if self.report.dry_run:
            return self.report
        self._report_conflicts()
        if take:
            self.take(take, ours)
            # At once: later changes there are new changes.
            base = self._agree(base, theirs)
        if give:
            self.give(give)
        self._agree(base, self.theirs() if give else theirs)
        return self.report

    def _merge(self, base: dict[str, Base], ours: Items, theirs: Items) -> tuple[Items, Items]:
        take: Items = {name: item for name, item in theirs.items() if name not in ours}
        new = ((name, item) for name, item in ours.items() if name not in theirs and name not in base)
        give: Items = {name: item for name, item in new if self.is_wanted(item)}
        self.report.items = len({*ours, *theirs})
        self.report.gone = self._named("gone", [name for name in ours if name not in theirs and name in base])
        for name in sorted(ours.keys() & theirs.keys()):
            merged = self._three_way.merge(name, base.get(name, {}), ours[name], theirs[name])
            if merged.here is not None:
                take[name] = merged.here
            if merged.there is not None:
                give[name] = merged.there
            self.report.disputed += merged.conflicts
        return take, give

    def _named(self, what: str, names: Collection[str]) -> list[str]:
        self.report.totals[what] = len(names)
        return sorted(names)[:_MOST_NAMED]

    def _agree(self, base: dict[str, Base], theirs: Items) -> dict[str, Base]:
        """Save in which fields both sides agree now."""
        ours = self.ours()
        now = {name: self._three_way.agreed(base.get(name, {}), ours[name], theirs[name]) for name in ours if name in theirs}
        # What is gone there stays known, or it would be written there again.
        now.update({name: held for name, held in base.items() if name not in now and name in ours})
        if now and now != base:
            self.log.states.save(self.run_id, self._state, {"items": now})
        return now

    @property
    def _state(self) -> str:
        return f"sync-{self.system}"

    def _base(self) -> dict[str, Base]:
        try:
            document = self.log.states.get(self.run_id, self._state).document
        except NotFound:
            return {}
        items = document.get("items") if isinstance(document, dict) else None
        return items if isinstance(items, dict) else {}

    def _report_conflicts(self) -> None:
        disputed = [(one, self.task_of(str(one["item"]))) for one in self.report.disputed]
        report_conflicts(self.log, self.system, self.run_id, disputed)

    def later(self) -> str:
        """Return a time after that of every task here, so that what is taken is newer."""
        found = self.log.db.read(lambda: self.log.db.one(_LATEST, {"run_id": self.run_id}))
        latest = from_text(found[0]) if found and found[0] else self.log.clock.now()
        return to_text(max(latest, self.log.clock.now()) + timedelta(microseconds=1))


class FileSync(Sync):
    """Syncs a file that is read and written as a whole, by its exporter and importer."""

    exports: ClassVar[type[Any]]
    _read: bytes = b""

    def export_text(self) -> str | None:
        """Write the run as the file has it; None where there is no such run yet."""
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
        """Read the file, and remember how it was: it must be the same still when it is replaced."""
        with opened(self.path, MOST_BYTES) as file:
            self._read = file.read()
        if {found[1][:1] for found in _MARKERS.finditer(self._read)} == {b"<", b">"}:
            hint = f"Edit the file, or take the newer of both: decklog import {self.system} {self.path}"
            raise Conflict(f"{self.path} has conflicts of git's in it; settle them first", hint=hint, path=self.path)
        return self._read

    def replace_file(self, text: bytes) -> None:
        """Replace the file atomically, unless it was changed in the meantime."""
        with NewFile(self.path, replace=True) as file:
            file.write(text)
            # On disk before the log records the agreement: a power cut must not bring the old file back after that.
            file.publish(instead_of=self._read)


def report_conflicts(log: Decklog, system: str, run_id: str, disputed: list[tuple[dict[str, object], str | None]]) -> None:
    """Post each conflict to the inbox once, with its task."""
    for one, task_id in disputed:
        body = (
            f"{one['item']}: {one['field']} was changed here and in {system}, and nothing was overwritten. "
            f"Make both the same, or put one of them back.\nHere: {one['here']}\nThere: {one['there']}"
        )
        key = f"sync:{system}:{run_id}:{sha256(to_json(one).encode()).hexdigest()[:32]}"
        log.inbox.post(f"sync-{system}", body, severity=MessageSeverity.QUESTION, run_id=run_id, task_id=task_id, key=key)


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else to_json(value))[:_LONGEST_SHOWN]
