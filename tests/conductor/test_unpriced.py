"""Agents whose price is not known, under a budget."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.conductor.plans import SETTINGS, TRIPLE, Work, landed_titles, settle, states, task_of, work_item


@pytest.mark.slow
def test_an_agent_of_unknown_price_is_not_ended_by_a_budget_at_its_first_charge(log: Decklog, checked: Path) -> None:
    tokens = '{ when = { "/type" = "turn" }, as = "usage", take = { output_tokens = "/tokens" } }'
    unpriced = SETTINGS.replace("[[checks]]", f'stream = "jsonl"\nevents = [{tokens}]\n[[checks]]')
    settle(checked, f"{unpriced}[budget]\nrun_usd = 5.0\nitem_usd = 1.0\n")
    turn = ["print", {"type": "turn", "tokens": 5}]
    context = Work(log, checked, work_item("triple", turn, ["sleep", 0.3], TRIPLE)).run()
    assert landed_titles(context) == ["Item triple"], (states(context), task_of(context, "triple.w1").reason)
    assert [charge.cost_microdollars for charge in log.ledger.find(context.run_id)] == [None]
