"""The entry: one line of the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from decklog.records.record import Record

if TYPE_CHECKING:
    NewEntries = Sequence[Mapping[str, object]]
else:
    NewEntries = list[dict[str, object]]


# Subtypes of the entries that an import writes about its rows. They are not data of the other system.
IMPORTED, IMPORTED_COLUMNS, IMPORTED_ROW = "imported", "imported.columns", "imported.row"
IMPORT_SUBTYPES = (IMPORTED, IMPORTED_COLUMNS, IMPORTED_ROW)
# Prefix of the keys that imports give to entries without one.
IMPORT_KEY_PREFIX = "import:"


class EntryKind(StrEnum):
    INTERACTION = "interaction"
    REASONING = "reasoning"
    EVENT = "event"
    TOOL = "tool"
    CHANGE = "change"


EntryKindLike = EntryKind | Literal["interaction", "reasoning", "event", "tool", "change"]


class ReasoningPhase(StrEnum):
    UNDERSTANDING = "understanding"
    APPROACH = "approach"
    DECISIONS = "decisions"
    RISKS = "risks"
    BLOCKERS = "blockers"
    PIVOT = "pivot"
    COMPLETION = "completion"


ReasoningPhaseLike = (
    ReasoningPhase | Literal["understanding", "approach", "decisions", "risks", "blockers", "pivot", "completion"]
)


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


ConfidenceLike = Confidence | Literal["high", "medium", "low"]


@dataclass(frozen=True, kw_only=True)
class Entry(Record):
    """An event, with its stream and number; for kind `change`, the new state of a record."""

    table = "entries"

    stream: str
    seq: int
    at: datetime
    kind: EntryKind
    hash: str
    subtype: str | None = None
    agent: str | None = None
    agent_id: str | None = None
    group_id: str | None = None
    task_id: str | None = None
    iteration: int | None = None
    phase: ReasoningPhase | None = None
    confidence: Confidence | None = None
    redacted: bool = False
    key: str | None = None
    record_table: str | None = None
    record_id: str | None = None
    refs: list[str] | None = None
    body: str | None = None
    payload: object = None
    body_digest: str | None = None
    payload_digest: str | None = None

    @property
    def id(self) -> str:
        """The id of the entry: its stream and its number in it."""
        return f"{self.stream}:{self.seq}"

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, **super().as_dict()}
