"""An entry that a row is to become. Drafts of a batch are written together, which costs a tenth of writing each for itself."""

from decklog.dataclass import dataclass
from decklog.importers.engine.report import Fate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.importers.engine.row import Row


@dataclass(slots=True)
class Draft:
    """What to append to a row's stream, as the arguments of `append`, and what has become of the row once that is done."""

    row: "Row"
    entry: "dict[str, Any]"
    fate: Fate = Fate.NEW
    # Goes into the report, unless the journal knew the entry.
    note: str | None = None


def describes(mapping: "Callable[..., Draft]") -> "Callable[..., Draft]":
    """Mark a mapping that writes nothing itself: a row it refuses is kept without undoing what was made of the others."""
    mapping.only_describes = True  # type: ignore[attr-defined]
    return mapping


def only_describes(mapping: "Callable[..., object]") -> bool:
    return getattr(mapping, "only_describes", False)
