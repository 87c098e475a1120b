"""Work items that name their agent, its model, or several agents that race."""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.settings import parse
from decklog.core.errors import Invalid
from tests.conductor.plans import SETTINGS, STRONG, TRIPLE, Work, landed_titles, settle, states, task_of, work_item
from tests.conductor.scripts import COMMAND

FOUR = ["append", "calc.py", "\n\nFOUR = 4\n"]
RED = ["replace", "calc.py", "return a + b", "return a - b"]
# An agent that nobody falls back to, with the model as an argument, and a price for each turn.
_TURN = '{ when = { "/type" = "turn" }, as = "usage", take = { cost_usd = "/cost" } }'
OTHER = f"""
[agents.other]
command = {json.dumps([*COMMAND, ["{model}"]])}
stream = "jsonl"
events = [{_TURN}]
"""


@pytest.mark.slow
def test_work_items_of_one_plan_are_worked_on_by_the_agents_and_models_that_they_name(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + OTHER)
    chosen = {**work_item("four"), "objective": "SCRIPT-huge " + json.dumps([FOUR])}
    context = Work(
        log, checked, work_item("triple", TRIPLE), {**chosen, "agent": "other", "model": "huge", "needs": ["triple"]}
    ).run()
    assert landed_titles(context) == ["Item triple", "Item four"], states(context)
    assert [task_of(context, f"{name}.c1").inputs["agent"] for name in ("triple", "four")] == ["fake", "other"]
    assert {charge.model for charge in log.ledger.find(context.run_id)} == {"fake", "huge"}


@pytest.mark.slow
def test_an_item_whose_own_agent_fails_goes_to_the_workers(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + STRONG)
    given = work_item("triple", TRIPLE, strong=[["exit", 3]], agent="strong")
    context = Work(log, checked, given).run()
    assert landed_titles(context) == ["Item triple"], states(context)
    assert task_of(context, "triple.c1").inputs["agent"] == "fake"


@pytest.mark.slow
def test_the_first_whose_change_passes_lands_it_and_the_loser_costs_what_it_cost(
    log: Decklog, checked: Path, tmp_path: Path
) -> None:
    settle(checked, SETTINGS + OTHER)
    never = str(tmp_path / "never")
    given = {**work_item("triple", TRIPLE, race=["fake", "other"])}
    slow = json.dumps([["print", {"type": "turn", "cost": 0.02}], ["wait", never]])
    given["objective"] += f"\nSCRIPT-other {slow}"
    settings = (checked / "decklog.toml").read_text()
    settle(checked, settings.replace(json.dumps([*COMMAND, ["{model}"]]), json.dumps([*COMMAND, "other"])))
    context = Work(log, checked, given).run()
    assert landed_titles(context) == ["Item triple"], states(context)
    assert states(context) == {
        "triple.w1-fake": "done",
        "triple.w1-other": "abandoned",
        "triple.c1-fake": "done",
        "triple": "done",
    }
    assert [
        charge.cost_microdollars for charge in log.ledger.find(context.run_id, task_id=f"{context.run_id}.triple.w1-other")
    ] == [20_000]
    assert log.effects.open(context.run_id) == []


@pytest.mark.slow
def test_an_agent_that_fails_drops_out_of_its_race_and_the_other_goes_on_alone(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + STRONG)
    slow = [["sleep", 1.5], RED]
    given = work_item("triple", RED, strong=slow, race=["fake", "strong"])
    given["objective"] += "\nSCRIPT-2 " + json.dumps([["replace", "calc.py", "return a - b", "return a + b"], TRIPLE])
    context = Work(log, checked, given).run()
    assert states(context)["triple.c1-fake"] == "abandoned"
    assert states(context)["triple.c1-strong"] == "done"
    assert states(context)["triple.w2-strong"] != "abandoned"


def test_a_plan_that_names_an_unknown_agent_or_a_race_of_one_is_refused(log: Decklog, checked: Path) -> None:
    with pytest.raises(Invalid, match="the unknown agent 'nobody'"):
        Work(log, checked, work_item("triple", TRIPLE, agent="nobody")).context()
    with pytest.raises(Invalid, match="two agents or more"):
        Work(log, checked, work_item("triple", TRIPLE, race=["fake"])).context()
    assert list(log.runs.find()) == []
    assert [agent.name for agent in parse(SETTINGS.encode()).levels()] == ["fake"]
