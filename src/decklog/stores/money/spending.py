"""One charge on its way: which budgets it falls under, what is held for it, and whether there is room."""

from dataclasses import replace

from decklog.errors import Refused
from decklog.stores.money.budget import Action, Unit, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from typing import Any

    from decklog.stores.money.budget import Budget, Reservation
    from decklog.stores.money.meter import Meter, Standing


class Spending:
    """Decides on one charge. Refuses it by raising; otherwise `paying` is the reservation that covers it, if one does."""

    def __init__(self, meter: "Meter", given: "Mapping[str, Any]", tokens: int, reservation: "Reservation | None") -> None:
        self._meter = meter
        self._place = place_of(given)
        self._model: str = given["model"]
        self._cost: int | None = given["cost_microdollars"]
        self._tokens = tokens
        self.at: datetime = given["occurred_at"]
        self.paying: Reservation | None = None
        self.overdrawn: list[Standing] = []
        self._standings = self._stand(meter.budgets(self._place), reservation)

    def _stand(self, budgets: "list[Budget]", reservation: "Reservation | None") -> "list[Standing]":
        """Look where the budgets stand: in the period of the reservation that pays, or else in that of the charge itself.

        What was promised yesterday is paid from yesterday's money, else a call over midnight could be left without any.
        """
        if reservation is not None:
            standings = [self._meter.standing(budget, reservation.reserved_at) for budget in budgets]
            if self._meter.holds(reservation, standings):
                self.at, self.paying = reservation.reserved_at, reservation
                return standings
        return [self._meter.standing(budget, self.at) for budget in budgets]

    def admit(self, *, enforce: bool) -> None:
        """Refuse the charge if a budget that stops has no room for it; when not enforcing, remember that it overdraws."""
        for standing in self._standings:
            if standing.budget.action is not Action.STOP:
                continue
            amount = self._amount(standing.budget)
            if amount is None:
                if enforce:
                    raise self._no_price(standing)
                continue
            extra = amount - self._covered(standing.budget, amount)
            if extra > max(0, standing.free):
                if enforce:
                    raise standing.exceeded(extra)
                self.overdrawn.append(standing)

    def _amount(self, budget: "Budget") -> int | None:
        return self._cost if budget.unit is Unit.MICRODOLLARS else self._tokens

    def _covered(self, budget: "Budget", amount: int) -> int:
        """Say how much of an amount the reservation has held in this budget."""
        if self.paying is None or not budget.covers(self.paying.values()):
            return 0
        return min(amount, self.paying.left(budget.unit))

    def _no_price(self, standing: "Standing") -> Refused:
        return Refused(
            f"the price of {self._model!r} is not known, so the budget of {standing.budget.title}, can't be kept",
            hint="Ask the manager to set the price (decklog prices set), give cost_microdollars, or record it with enforce off.",
            **standing.as_details(),
            model=self._model,
        )

    def count(self) -> None:
        """Move the budgets' running sums by this charge."""
        for standing in self._standings:
            self._meter.add(standing, self.at, microdollars=self._cost, tokens=self._tokens, calls=1)

    def news(self) -> "Iterator[tuple[str, str, dict[str, Any]]]":
        """Tell what the manager should hear of, as kind, words and figures: budgets overdrawn, passed or nearly so."""
        for before in self._standings:
            budget, amount = before.budget, self._amount(before.budget) or 0
            spent = before.spent + amount
            after = replace(before, spent=spent, reserved=before.reserved - self._covered(budget, amount))
            words = f"the budget of {budget.title}, has spent {budget.say(spent)} of {budget.say(budget.ceiling)}"
            if before in self.overdrawn:
                yield "budget_overdrawn", words, after.as_details()
            elif before.spent <= budget.ceiling < spent:
                yield "budget_passed", words, after.as_details()
            elif before.spent * 100 < budget.warn_percent * budget.ceiling <= spent * 100:
                yield "budget_warning", words, after.as_details()
