"""Prices: what a million tokens cost, by model and date."""

import json
import os
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import Invalid, NotFound
from decklog.db.base import Database
from decklog.db.where import Where
from decklog.records.operations import reads, writes
from decklog.records.record import Record
from decklog.stores.base import Store
from decklog.stores.checks import check_filled, check_time_zone

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
    is_managed = True

    model: str
    valid_from: datetime
    over_tokens: int = 0
    input_price: int
    cache_read_price: int | None = None
    cache_create_price: int | None = None
    output_price: int
    source: str | None = None
    sourced_on: str | None = None

    def cost(self, tokens: Tokens) -> int | None:
        """Return a call's cost in microdollars; None if a kind of token that it used has no known price."""
        prices = (self.input_price, self.cache_read_price, self.cache_create_price, self.output_price)
        total = 0
        for count, price in zip(tokens, prices, strict=True):
            if count:
                if price is None:
                    return None
                total += count * price
        return (total + _MILLION // 2) // _MILLION


class PriceList:
    """Finds the price of a call. A model without a price has none: nothing is guessed from its name.

    A writing caller may `remember` found prices as long as they are unchanged in the database.
    """

    def __init__(self, db: Database, *, remember: bool = False) -> None:
        self._db = db
        self._remember = remember

    def find(self, model: str, at: datetime, prompt_tokens: int) -> Price | None:
        own = self._load_cached(model) if self._remember else self._load_own(model)
        return _find_valid(own, at, prompt_tokens) or _find_valid(shipped_prices().get(model, ()), at, prompt_tokens)

    def cost(self, model: str, at: datetime, tokens: Tokens) -> int | None:
        """Return a call's cost in microdollars; None if unknown."""
        price = self.find(model, at, sum(tokens[:3]))
        return None if price is None else price.cost(tokens)

    def _load_own(self, model: str) -> tuple[Price, ...]:
        names, rows = self._db.rows(
            "select * from prices where model = :model order by valid_from desc, over_tokens desc", {"model": model}
        )
        return tuple(Price.from_row(names, row) for row in rows)

    def _load_cached(self, model: str) -> tuple[Price, ...]:
        known: tuple[Price, ...] | None = self._db.memo.get(("prices", model))
        if known is None:
            known = self._db.memo["prices", model] = self._load_own(model)
        return known

    def forget(self, model: str) -> None:
        """Drop a model's cached prices after a change in this transaction."""
        self._db.memo.pop(("prices", model), None)


def _find_valid(prices: tuple[Price, ...], at: datetime, prompt_tokens: int) -> Price | None:
    """Return the valid one of prices that are sorted newest first, and longest prompts first."""
    for price in prices:
        if price.valid_from <= at and (price.over_tokens == 0 or price.over_tokens < prompt_tokens):
            return price
    return None


@lru_cache
def shipped_prices() -> dict[str, tuple[Price, ...]]:
    """Load the prices that are shipped with Decklog, by model, newest and longest prompts first."""
    with open(_SHIPPED, encoding="utf-8") as file:
        rows = json.load(file)["prices"]
    listed: dict[str, list[Price]] = {}
    for row in rows:
        price = Price(**{**row, "valid_from": from_text(row["valid_from"])})
        listed.setdefault(price.model, []).append(price)
    for prices in listed.values():
        prices.sort(key=lambda price: (price.valid_from, price.over_tokens), reverse=True)
    return {model: tuple(prices) for model, prices in listed.items()}


MOST_PRICE = 10**12
_AMOUNTS = ("over_tokens", "input_price", "cache_read_price", "cache_create_price", "output_price")


class Prices(Store):
    """Stores a log's own prices, which take precedence over those that come with Decklog.

    Only the owner can set prices, because an agent could otherwise evade budgets.
    """

    records = (Price,)

    @writes(owner_only=True)
    def set(
        self,
        model: str,
        input_price: int,
        output_price: int,
        *,
        cache_read_price: int | None = None,
        cache_create_price: int | None = None,
        over_tokens: int = 0,
        valid_from: datetime | None = None,
        source: str | None = None,
        sourced_on: str | None = None,
    ) -> Price:
        """Set a model's price per million tokens, valid from today or from `valid_from`.

        Prices are in microdollars here and in JSON, and in dollars on the command line.
        `over_tokens` sets the price of calls with a longer prompt than that. Earlier charges keep their cost.
        """
        today = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        return self._set(
            {
                "model": model,
                "valid_from": valid_from or today,
                "over_tokens": over_tokens,
                "input_price": input_price,
                "cache_read_price": cache_read_price,
                "cache_create_price": cache_create_price,
                "output_price": output_price,
                "source": source,
                "sourced_on": sourced_on,
            }
        )

    @writes(owner_only=True)
    def load(self, prices: object) -> list[Price]:
        """Set many prices, all or none: a list of objects with a price's fields, as in the file that comes with Decklog."""
        rows = prices.get("prices") if isinstance(prices, dict) else prices
        if not isinstance(rows, list) or not rows:
            raise Invalid(
                "prices are a list of objects, each with model, valid_from, input_price and output_price", field="prices"
            )
        return [self._set(_parse_price(row, number)) for number, row in enumerate(rows, 1)]

    def _set(self, row: dict[str, Any]) -> Price:
        _check_price(row)
        PriceList(self._db).forget(row["model"])
        return self._upsert(Price, {name: row.get(name) for name in Price.columns()})

    @writes(owner_only=True)
    def withdraw(self, model: str, valid_from: datetime, *, over_tokens: int = 0) -> Price:
        """Remove one of the log's own prices; the previous price applies again."""
        PriceList(self._db).forget(model)
        key: Any = (model, valid_from, over_tokens)
        if self._seek(Price, key) is None:
            raise NotFound(f"this log has no own price for {model} from {valid_from} on", table="prices", id=model)
        return self._remove_one(Price, key)

    @reads
    def get(self, model: str, *, at: datetime | None = None, prompt_tokens: int = 0) -> Price:
        """Get the price of a model, now or at a time, for a prompt of a given length."""
        check_time_zone("at", at)
        price = PriceList(self._db).find(model, at or self._now(), prompt_tokens)
        if price is None:
            raise _unknown_price(model)
        return price

    @reads
    def find(self, *, model: str | None = None) -> list[Price]:
        """List all prices, the log's own and the shipped ones, by model, newest first."""
        own = self._list(Price, Where(Price, model=model), order="model")
        keys = {(price.model, price.valid_from, price.over_tokens) for price in own}
        shipped = shipped_prices()
        listed = shipped.get(model, ()) if model is not None else [price for many in shipped.values() for price in many]
        own += [price for price in listed if (price.model, price.valid_from, price.over_tokens) not in keys]
        return sorted(own, key=lambda price: (price.model, -price.valid_from.timestamp(), price.over_tokens))

    @reads
    def quote(
        self,
        model: str,
        *,
        input_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_create_tokens: int = 0,
        output_tokens: int = 0,
        at: datetime | None = None,
    ) -> int:
        """Return the cost of a planned call in microdollars, for a reservation."""
        check_time_zone("at", at)
        tokens = (input_tokens, cache_read_tokens, cache_create_tokens, output_tokens)
        if min(tokens) < 0:
            raise Invalid("a call can't use fewer than 0 tokens", field="input_tokens")
        cost = PriceList(self._db).cost(model, at or self._now(), tokens)
        if cost is None:
            raise _unknown_price(model)
        return cost


def _unknown_price(model: str) -> NotFound:
    return NotFound(
        f"the price of {model!r} is not known",
        hint=f"Set it: decklog prices set {model} INPUT_PRICE OUTPUT_PRICE, in dollars per million tokens",
        table="prices",
        id=model,
    )


def _parse_price(given: object, number: int) -> dict[str, Any]:
    """Parse one price of a file."""
    if not isinstance(given, dict):
        raise Invalid(f"price {number} is not an object", field="prices")
    missing = {"model", "valid_from", "input_price", "output_price"} - given.keys()
    unknown = given.keys() - set(Price.columns())
    if missing or unknown:
        wrong = [f"lacks {name}" for name in sorted(missing)] + [f"has an unknown field {name}" for name in sorted(unknown)]
        raise Invalid(f"price {number} {', '.join(wrong)}", field="prices")
    try:
        valid_from = from_text(given["valid_from"])
    except (TypeError, ValueError):
        raise Invalid(f"price {number} is valid from {given['valid_from']!r}, which is not a date", field="prices") from None
    return {"over_tokens": 0, **given, "valid_from": valid_from}


def _check_price(row: dict[str, Any]) -> None:
    check_filled("model", row["model"])
    for name in _AMOUNTS:
        value = row.get(name)
        if value is None and name in ("cache_read_price", "cache_create_price"):
            continue
        if type(value) is not int or not 0 <= value <= MOST_PRICE:
            raise Invalid(
                f"{name} of {row['model']} is {value!r}; it is a whole number of micro-dollars per million tokens "
                f"from 0 to {MOST_PRICE}",
                field=name,
            )
