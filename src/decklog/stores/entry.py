"""The entry: one line of the journal."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from decklog.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self


class Kind(StrEnum):
    INTERACTION = "interaction"
    REASONING = "reasoning"
    EVENT = "event"
    TOOL = "tool"
    CHANGE = "change"


class Phase(StrEnum):
    UNDERSTANDING = "understanding"
    APPROACH = "approach"
    DECISIONS = "decisions"
    RISKS = "risks"
    BLOCKERS = "blockers"
    PIVOT = "pivot"
    COMPLETION = "completion"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, kw_only=True)
class Entry(Record):
    """What happened, in which stream, in which order; for kind `change`, what a record became."""

    table = "entries"

    stream: str
    seq: int
    at: datetime
    kind: Kind
    hash: str
    subtype: str | None = None
    agent: str | None = None
    agent_id: str | None = None
    group_id: str | None = None
    task_id: str | None = None
    iteration: int | None = None
    phase: Phase | None = None
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

    @classmethod
    def from_row(cls, names: "Iterable[str]", row: "Iterable[Any]") -> "Self":
        """Keep the columns, and read them when a field is first looked at: of the entries that a list gives, few fields are."""
        if "subtype" in cls.__dict__:
            _bare(cls)
        entry = cls.__new__(cls)
        entry.__dict__["_columns_held"] = (names, row)
        return entry

    def __getattr__(self, name: str) -> "Any":
        held = self.__dict__.get("_columns_held")
        if held is not None:
            self.__dict__.update(super().from_row(*held).__dict__)
            self.__dict__.pop("_columns_held", None)
        if name in self.__dict__:
            return self.__dict__[name]
        raise AttributeError(f"an entry has no {name!r}")

    @property
    def id(self) -> str:
        """The entry's name everywhere: its stream and its place in it."""
        return f"{self.stream}:{self.seq}"

    def as_dict(self) -> "dict[str, Any]":
        return {"id": self.id, **super().as_dict()}


def _bare(entry_class: type[Entry]) -> None:
    """Take the defaults off the class, where they would be found in place of fields that were not read yet."""
    for name in entry_class.columns():
        if name in entry_class.__dict__:
            delattr(entry_class, name)
