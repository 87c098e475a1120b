"""The charge: what one call to a model used and cost."""

from dataclasses import dataclass
from datetime import datetime

from decklog.errors import Invalid
from decklog.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Small enough that nine million charges of this size can still be added up.
MOST = 10**12
TOKENS = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")


@dataclass(frozen=True, kw_only=True)
class Charge(Record):
    """What one call used and cost. A cost of None is not known: the model had no price.

    `counted_at` is set when a reservation of another period paid for it; `overdrew` when it went past a budget that stops.
    """

    table = "charges"
    # A fork repeats what was planned and decided, not what was paid.
    copied_by_fork = False

    id: str
    occurred_at: datetime
    model: str
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_create_tokens: int = 0
    output_tokens: int = 0
    cost_microdollars: int | None = None
    call_site: str | None = None
    agent: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    group_id: str | None = None
    task_id: str | None = None
    reservation_id: str | None = None
    counted_at: datetime | None = None
    overdrew: bool = False
    key: str | None = None

    @classmethod
    def stream_of(cls, values: "Mapping[str, Any]") -> str:
        return values["run_id"] or "@ledger"

    @property
    def tokens(self) -> int:
        """All four kinds together, which is what a budget in tokens counts."""
        return self.input_tokens + self.cache_read_tokens + self.cache_create_tokens + self.output_tokens


def check(given: "Mapping[str, Any]") -> None:
    """Refuse what no call can have used or cost."""
    if not given["model"].strip():
        raise Invalid("a charge needs the name of its model", field="model")
    for name in (*TOKENS, "cost_microdollars"):
        value = given[name]
        if name == "cost_microdollars" and value is None:
            continue
        if type(value) is not int or not 0 <= value <= MOST:
            raise Invalid(f"{name} is {value!r}; it is a whole number from 0 to {MOST}", field=name)
    aware("occurred_at", given["occurred_at"])


def aware(name: str, moment: datetime | None) -> None:
    """Refuse a time that could be any of twenty-four."""
    if moment is not None and moment.tzinfo is None:
        raise Invalid(f"{name} needs a time zone; use datetime.now(UTC)", field=name)
