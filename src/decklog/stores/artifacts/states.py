"""States: named JSON documents of a run and its groups, with all versions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.where import Where, parse_enum
from decklog.journal.entry import EntryKind
from decklog.records.fork_rules import Computed, ForkRule
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.records.values import to_json
from decklog.stores import documents
from decklog.stores.artifacts.checkpoints import Checkpoint, Checkpoints, TaskSnapshot
from decklog.stores.artifacts.graphs import GraphCheckpoint, GraphItem, Graphs, GraphWrite
from decklog.stores.checks import check_group_id, check_integer
from decklog.stores.of_run import lock_run
from decklog.stores.results.artifacts import RecordedIteration, StateDifference

_GONE = object()


def differences(before: object, after: object) -> list[StateDifference]:
    """List the differences by JSON pointer: objects by key in order, lists by index."""
    return list(_walk("", before, after))


def _walk(path: str, before: Any, after: Any) -> Iterator[StateDifference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            escaped = name.replace("~", "~0").replace("/", "~1")
            yield from _walk(f"{path}/{escaped}", before.get(name, _GONE), after.get(name, _GONE))
    elif isinstance(before, list) and isinstance(after, list):
        for place, pair in enumerate(zip_longest(before, after, fillvalue=_GONE)):
            yield from _walk(f"{path}/{place}", *pair)
    elif before is _GONE:
        yield {"path": path, "change": "added", "before": None, "after": after}
    elif after is _GONE:
        yield {"path": path, "change": "removed", "before": before, "after": None}
    elif to_json(before) != to_json(after):  # Python treats True as equal to 1; JSON does not
        yield {"path": path, "change": "changed", "before": before, "after": after}


GLOBAL = "global"
INVESTIGATION = "investigation"
MOST_ITERATIONS = 20
_ITERATION = "investigation_iteration"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class InvestigationStatus(StrEnum):
    UNDER_INVESTIGATION = "under_investigation"
    ROOT_CAUSE_FOUND = "root_cause_found"
    HYPOTHESIS_ELIMINATED = "hypothesis_eliminated"
    FIX_PROPOSED = "fix_proposed"
    FIX_VERIFIED = "fix_verified"
    ESCALATED = "escalated"
    BLOCKED = "blocked"
    COMPLETED = "completed"


InvestigationStatusLike = (
    InvestigationStatus
    | Literal[
        "under_investigation",
        "root_cause_found",
        "hypothesis_eliminated",
        "fix_proposed",
        "fix_verified",
        "escalated",
        "blocked",
        "completed",
    ]
)


@dataclass(frozen=True, kw_only=True)
class State(Record):
    """A named document as it is now, by digest."""

    table = "states"
    identity = ("run_id", "group_id", "name")
    fork = ForkRule(
        "A state is what it was.",
        fields={"version": Computed("the newest that was written"), "digest": Computed("that of this version")},
        same_ids=("group_id",),
        left_out="a state of which no version was written yet",
    )
    blob_columns = ("digest",)

    run_id: str
    group_id: str
    name: str
    version: int
    digest: str
    updated_at: datetime
    iteration: int | None = None

    @classmethod
    def repair_fork(cls, images: list[dict[str, Any]], by_table: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Set each copied state to its newest copied version; a state without a version is left out."""
        versions = sorted(by_table.get(StateVersion.table, ()), key=lambda image: image["version"])
        newest = {tuple(image[name] for name in cls.identity): image for image in versions}
        fitted = []
        for image in images:
            if (version := newest.get(tuple(image[name] for name in cls.identity))) is not None:
                fitted.append({**image, "version": version["version"], "digest": version["digest"]})
        return fitted


@dataclass(frozen=True, kw_only=True)
class StateVersion(Record):
    """One version of a named document; `document` is filled in where one version is given."""

    table = "state_versions"
    identity = ("run_id", "group_id", "name", "version")
    fork = ForkRule("A state keeps its versions.", same_ids=("group_id",))
    blob_columns = ("digest",)
    document = None  # type: object

    run_id: str
    group_id: str
    name: str
    version: int
    digest: str
    saved_at: datetime
    agent: str | None = None
    iteration: int | None = None
    redacted: bool = False

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | documents.loaded_field(self, "document")


class States(Checkpoints, Graphs):
    """Stores state documents with all versions, checkpoints of runs and snapshots of paused tasks."""

    records = (State, StateVersion, Checkpoint, TaskSnapshot, GraphCheckpoint, GraphWrite, GraphItem)

    @writes
    def save(
        self,
        run_id: str,
        name: str,
        document: object,
        *,
        group_id: str = GLOBAL,
        expected_version: int | None = None,
        agent: str | None = None,
        saved_at: datetime | None = None,
    ) -> StateVersion:
        """Save a state document as its next version; the same content again changes nothing.

        `expected_version` is the version you worked from (0: there was none). When someone saved meanwhile, it is refused.
        """
        _check_place(name, group_id)
        place = (run_id, group_id, name)
        lock_run(self._db, run_id)
        placed = documents.store_document(self._db, "document", document)
        present = self._seek(State, place)
        if present is not None and present.digest == placed.digest:
            return self._version(place, present.version).mark_already()
        version = present.version if present else 0
        if expected_version is not None and expected_version != version:
            raise Conflict(
                f"state {name!r} of {run_id} is at version {version}, not {expected_version}: someone saved meanwhile",
                hint="Get it again, merge what changed (decklog states diff), and save with the new version.",
                expected_version=expected_version,
                version=version,
            )
        return self._next(place, version, placed, agent=agent, saved_at=saved_at or self._now())

    def _next(
        self,
        place: tuple[str, str, str],
        version: int,
        placed: documents.StoredDocument,
        *,
        agent: str | None,
        saved_at: datetime,
        iteration: int | None = None,
    ) -> StateVersion:
        """Write the next version. The caller has locked the run."""
        shared: dict[str, Any] = dict(zip(State.identity, place, strict=True))
        shared |= {"version": version + 1, "digest": placed.digest, "iteration": iteration}
        kept_iteration = {"iteration": "coalesce(excluded.iteration, states.iteration)"}
        self._upsert(State, {**shared, "updated_at": saved_at}, update=kept_iteration)
        added = self._add(StateVersion, redacted=placed.redacted, agent=agent, saved_at=saved_at, **shared)
        return documents.load_field(self._db, added, "document", placed.digest)

    @reads
    def get(self, run_id: str, name: str, *, group_id: str = GLOBAL, version: int | None = None) -> StateVersion:
        """Get a state document: the newest version, or the one you name."""
        _check_place(name, group_id)
        return self._version((run_id, group_id, name), version)

    def _version(self, place: tuple[str, str, str], version: int | None) -> StateVersion:
        where = Where(StateVersion, run_id=place[0], group_id=place[1], name=place[2], version=version)
        found = self._list(StateVersion, where, order="version desc", limit=1)
        if not found:
            raise self._no_version(place, version)
        return documents.load_field(self._db, found[0], "document", found[0].digest)

    def _no_version(self, place: tuple[str, str, str], version: int | None) -> NotFound:
        what = f"state {place[2]!r} of group {place[1]}" + (f" at version {version}" if version is not None else "")
        return NotFound(f"run {place[0]} has no {what}", hint=f"See them: decklog states find {place[0]}", id=list(place))

    @reads
    def find(
        self, run_id: str, *, name: str | None = None, group_id: str | None = None, limit: int = 20, after: str | None = None
    ) -> Page[State]:
        """List a run's states by group and name, without the documents."""
        where = Where(State, run_id=run_id, name=name, group_id=group_id)
        return self._page(State, where, order=("group_id", "name"), limit=limit, after=after)

    @reads
    def versions(
        self, run_id: str, name: str, *, group_id: str = GLOBAL, limit: int = 20, after: str | None = None
    ) -> Page[StateVersion]:
        """List a state's versions, newest first, without the documents."""
        _check_place(name, group_id)
        where = Where(StateVersion, run_id=run_id, group_id=group_id, name=name)
        return self._page(StateVersion, where, order=("version",), limit=limit, after=after, descending=True)

    @reads
    def diff(
        self, run_id: str, name: str, from_version: int, to_version: int, *, group_id: str = GLOBAL
    ) -> list[StateDifference]:
        """List what differs between two versions of a state, by JSON pointer: added, removed or changed."""
        _check_place(name, group_id)
        where = Where(StateVersion, run_id=run_id, group_id=group_id, name=name)
        where.add("(version = :one or version = :other)", one=from_version, other=to_version)
        found = {one.version: one for one in self._list(StateVersion, where, order="version")}
        for version in (from_version, to_version):
            if version not in found:
                raise self._no_version((run_id, group_id, name), version)
            documents.load_field(self._db, found[version], "document", found[version].digest)
        return differences(found[from_version].document, found[to_version].document)

    @writes
    def record_investigation(
        self,
        run_id: str,
        group_id: str,
        iteration: int,
        status: InvestigationStatusLike,
        state: object,
        event: dict[str, object],
    ) -> RecordedIteration:
        """Record one iteration of an investigation: its event and the group's investigation state, both or neither.

        A known iteration keeps its first event. Neither it nor an older one changes the state.
        """
        _check_place(INVESTIGATION, group_id)
        known = parse_enum(InvestigationStatus, status, "status")
        check_integer("iteration", iteration, low=1, high=MOST_ITERATIONS)
        # In both cases, appended or known, the run stays locked.
        entry = self._journal.append(
            run_id,
            f"Investigation iteration {iteration}: {known}",
            kind=EntryKind.EVENT,
            subtype=_ITERATION,
            agent="investigator",
            group_id=group_id,
            iteration=iteration,
            payload=event,
            key=f"{run_id}|{group_id}|{_ITERATION}|{iteration}",
        )
        place = (run_id, group_id, INVESTIGATION)
        present = self._seek(State, place)
        is_newer = not entry.already and (present is None or (present.iteration or 0) < iteration)
        version, redacted = present.version if present else 0, entry.redacted
        if is_newer:
            placed = documents.store_document(self._db, "state", state)
            self._next(place, version, placed, agent="investigator", saved_at=self._now(), iteration=iteration)
            version, redacted = version + 1, redacted or placed.redacted
        return {
            "iteration": iteration,
            "status": known.value,
            "event_id": entry.id,
            "event_saved": not entry.already,
            "state_saved": is_newer,
            "version": version,
            "redacted": redacted,
            "already": entry.already,
        }


def _check_place(name: str, group_id: str) -> None:
    """Check a state's name and group. An investigation always belongs to one group."""
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name[:80]!r} can't name a state: 1 to 64 letters, digits, _ . or -", field="name")
    check_group_id(group_id)
    if name == INVESTIGATION and group_id.lower() == GLOBAL:
        raise Invalid("an investigation belongs to one group, not to global; give group_id", field="group_id")
