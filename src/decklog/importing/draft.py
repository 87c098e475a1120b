"""What a row is to become. Drafts of a batch are written together, which costs a tenth of writing each for itself."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decklog.importing.report import Fate

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from decklog.importing.row import Row
    from decklog.records.record import Record

    M = TypeVar("M", bound=Callable[..., Any])


@dataclass(slots=True)
class Draft:
    """What to append to a row's stream, as the arguments of `append`, and what has become of the row once that is done.

    What names a model is a charge, of money that was spent there.
    """

    row: "Row"
    entry: "dict[str, Any]"
    fate: Fate = Fate.NEW
    # Goes into the report, unless the journal knew the entry.
    note: str | None = None

    @property
    def is_charge(self) -> bool:
        return "model" in self.entry


@dataclass(slots=True)
class RecordDraft:
    """A record as the row tells it; one that is here becomes it when the source's is newer, by the time in `clock`."""

    row: "Row"
    record_class: "type[Record]"
    fields: "dict[str, Any]"
    clock: str | None = None
    # What only a record that is not here yet is given.
    at_first: "dict[str, Any]" = field(default_factory=dict)
    # Says why what is here stays, whatever the source says.
    stays: "Callable[[Any], str | None] | None" = None

    @property
    def identity(self) -> "tuple[Any, ...]":
        return tuple([self.fields[name] for name in self.record_class.identity])

    @property
    def added(self) -> "dict[str, Any]":
        """What a record is made of that is not here yet."""
        return {**self.fields, **self.at_first}


def describes(mapping: "M") -> "M":
    """Mark a mapping that writes nothing itself: a row it refuses is kept without undoing what was made of the others."""
    mapping.only_describes = True  # type: ignore[attr-defined]
    return mapping


def only_describes(mapping: "Callable[..., object]") -> bool:
    return getattr(mapping, "only_describes", False)
