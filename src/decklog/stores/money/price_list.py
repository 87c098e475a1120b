"""What a call costs: prices by model and date, the log's own before those that come with Decklog.

A price is an integer number of micro-dollars per million tokens, one for each of the four kinds of token. A call costs the sum of
its four products, divided by a million and rounded half up, once: two cheap kinds do not round away to nothing.
"""

import json
import os
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from decklog.clock import from_text
from decklog.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.db.base import Database

    # Input, cache read, cache create, output.
    Tokens = tuple[int, int, int, int]

_MILLION = 1_000_000
_SHIPPED = os.path.join(os.path.dirname(__file__), "prices.json")


@dataclass(frozen=True, kw_only=True)
class Price(Record):
    """What a model's tokens cost from a day on, in micro-dollars per million.

    `over_tokens` makes it the price of calls whose prompt is longer than that. A cache price of None is not known.
    """

    table = "prices"
    identity = ("model", "valid_from", "over_tokens")
    home = "@ledger"

    model: str
    valid_from: datetime
    over_tokens: int = 0
    input_price: int
    cache_read_price: int | None = None
    cache_create_price: int | None = None
    output_price: int
    source: str | None = None
    sourced_on: str | None = None

    def cost(self, tokens: "Tokens") -> int | None:
        """Give a call's cost in micro-dollars; None when a kind of token it used has no known price."""
        prices = (self.input_price, self.cache_read_price, self.cache_create_price, self.output_price)
        total = 0
        for count, price in zip(tokens, prices, strict=True):
            if count:
                if price is None:
                    return None
                total += count * price
        return (total + _MILLION // 2) // _MILLION


class PriceList:
    """Finds the price that holds for a call. A model without one has no price: nothing is guessed from its name.

    Whoever writes may `remember` what was found, for as long as the database says that it still holds.
    """

    def __init__(self, db: "Database", *, remember: bool = False) -> None:
        self._db = db
        self._remember = remember

    def find(self, model: str, at: datetime, prompt_tokens: int) -> Price | None:
        own = self._remembered(model) if self._remember else self._own(model)
        return _holding(own, at, prompt_tokens) or _holding(shipped().get(model, ()), at, prompt_tokens)

    def cost(self, model: str, at: datetime, tokens: "Tokens") -> int | None:
        """Give a call's cost in micro-dollars; None when it is not known."""
        price = self.find(model, at, sum(tokens[:3]))
        return None if price is None else price.cost(tokens)

    def _own(self, model: str) -> tuple[Price, ...]:
        names, rows = self._db.rows(
            "select * from prices where model = :model order by valid_from desc, over_tokens desc", {"model": model}
        )
        return tuple(Price.from_row(names, row) for row in rows)

    def _remembered(self, model: str) -> tuple[Price, ...]:
        known: tuple[Price, ...] | None = self._db.memo.get(("prices", model))
        if known is None:
            known = self._db.memo["prices", model] = self._own(model)
        return known

    def forget(self, model: str) -> None:
        """Look a model's prices up again: they were changed in this transaction."""
        self._db.memo.pop(("prices", model), None)


def _holding(prices: tuple[Price, ...], at: datetime, prompt_tokens: int) -> Price | None:
    """Choose from prices that stand newest first, and the longest prompts first."""
    for price in prices:
        if price.valid_from <= at and (price.over_tokens == 0 or price.over_tokens < prompt_tokens):
            return price
    return None


@lru_cache
def shipped() -> dict[str, tuple[Price, ...]]:
    """Read the prices that come with Decklog, by model, the newest and longest prompts first."""
    with open(_SHIPPED, encoding="utf-8") as file:
        rows = json.load(file)["prices"]
    listed: dict[str, list[Price]] = {}
    for row in rows:
        price = Price(**{**row, "valid_from": from_text(row["valid_from"])})
        listed.setdefault(price.model, []).append(price)
    for prices in listed.values():
        prices.sort(key=lambda price: (price.valid_from, price.over_tokens), reverse=True)
    return {model: tuple(prices) for model, prices in listed.items()}
