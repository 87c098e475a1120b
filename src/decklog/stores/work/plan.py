"""What a plan and its phases are, and how a phase's progress follows its status."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from decklog.db.where import enum_of
from decklog.errors import Invalid
from decklog.records import Record
from decklog.stores.checks import filled, mapping, moment, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PhaseStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"


@dataclass(frozen=True, kw_only=True)
class Plan(Record):
    table = "plans"
    identity = ("run_id",)

    run_id: str
    original_prompt: str
    plan_text: str
    total_phases: int
    created_at: datetime
    updated_at: datetime
    current_phase: int | None = None
    metadata: dict[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class Phase(Record):
    table = "phases"
    identity = ("run_id", "number")

    run_id: str
    number: int
    name: str
    updated_at: datetime
    status: PhaseStatus = PhaseStatus.PENDING
    progress_percent: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
    extra: dict[str, object] = field(default_factory=dict)


def moved(phase: Phase, status: PhaseStatus, percent: int | None, now: datetime) -> "dict[str, Any]":
    """Say what changes when a phase is given a status: its times and, unless it is given too, its progress."""
    changes: dict[str, Any] = {"status": status}
    if percent is not None:
        changes["progress_percent"] = percent
    if status is phase.status:
        return changes
    if status is PhaseStatus.COMPLETED:
        changes.setdefault("progress_percent", 100)
    elif status is PhaseStatus.PENDING or phase.status is PhaseStatus.COMPLETED:
        # What is taken up again is not done any more, and nobody said how far it is.
        changes.setdefault("progress_percent", 0)
    changes["completed_at"] = now if status is PhaseStatus.COMPLETED else None
    if status is PhaseStatus.IN_PROGRESS and phase.started_at is None:
        changes["started_at"] = now
    elif status is PhaseStatus.PENDING:
        changes["started_at"] = None
    return changes


def check_percent(value: object) -> int:
    """Check how far a phase is."""
    return whole("progress_percent", value, high=100)


def read_phases(given: object) -> "list[dict[str, Any]]":
    """Read a list of phases, each an object or just a name; numbers that are not given follow their place."""
    if not isinstance(given, (list, tuple)):
        raise Invalid(f"phases are a list of names or objects; got {given!r}", field="phases")
    phases = [_read_phase(item, place) for place, item in enumerate(given, 1)]
    seen: set[int] = set()
    for phase in phases:
        if phase["number"] in seen:
            raise Invalid(f"two phases have the number {phase['number']}; give each its own", field="phases")
        seen.add(phase["number"])
    return phases


def _read_phase(item: object, place: int) -> "dict[str, Any]":
    """Read one phase; what has no field of its own goes to `extra`, and null means not given."""
    left: dict[str, Any] = {"name": item} if isinstance(item, str) else dict(mapping(f"phase {place}", item))
    if left.get("number") is None:
        left["number"] = left.pop("phase", None)
    number = _number(_taken(left, "number", place))
    phase: dict[str, Any] = {"number": number, "name": filled("a phase's name", _taken(left, "name", f"Phase {number}"))}
    if (status := left.pop("status", None)) is not None:
        phase["status"] = enum_of(PhaseStatus, str(status), "status")
    if (percent := left.pop("progress_percent", None)) is not None:
        phase["progress_percent"] = check_percent(percent)
    for name in ("started_at", "completed_at"):
        if (time := left.pop(name, None)) is not None:
            phase[name] = moment(name, time)
    phase["extra"] = mapping("extra", _taken(left, "extra", {})) | left
    return phase


def _taken(left: "dict[str, Any]", name: str, default: object) -> object:
    value = left.pop(name, None)
    return default if value is None else value


def _number(value: object) -> int:
    if isinstance(value, str) and len(value) < 19 and value.isascii() and value.isdecimal():
        value = int(value)
    return whole("a phase's number", value)


def same_phases(wanted: dict[int, str], present: list[Phase]) -> dict[int, Phase]:
    """Say which present phase each wanted one, a number with a name, continues; one that is new has none.

    A phase is known by its name; among several of one name, the one that kept its number comes first.
    """
    same: dict[int, Phase] = {}
    left = list(present)
    for by_number in (True, False):
        for number in sorted(wanted.keys() - same.keys()):
            for old in left:
                if old.name == wanted[number] and (old.number == number or not by_number):
                    same[number] = old
                    left.remove(old)
                    break
    return same


def continued(wanted: "dict[str, Any]", old: Phase | None, now: datetime) -> "dict[str, Any]":
    """Complete a wanted phase with the progress of the one it continues; what the plan says itself comes first."""
    if old is None:
        status = wanted.get("status", PhaseStatus.PENDING)
        percent = 100 if status is PhaseStatus.COMPLETED else 0
        # A plan that calls a new phase begun or done does not say when that was, so neither do we.
        kept = {"status": status, "progress_percent": percent, "started_at": None, "completed_at": None}
    else:
        status = wanted.get("status", old.status)
        kept = {name: getattr(old, name) for name in ("progress_percent", "started_at", "completed_at")}
        kept |= moved(old, status, None, now)
    phase = kept | wanted
    if phase["completed_at"] is not None and status is not PhaseStatus.COMPLETED:
        raise Invalid(f"phase {phase['number']} is {status} and can't have been completed already", field="completed_at")
    return phase
