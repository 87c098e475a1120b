"""The gate and its stages as a tool for agents: in guarded tools and on the MCP server."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid
from decklog.guard.toolbox.toolbox import Toolbox
from decklog.review.agent_tool import REVIEW, review_for_agent
from decklog.review.result import STAGES
from tests.mcp.conftest import Agent
from tests.review.changes import FILES, GOOD, SETTINGS, Desk

WITHOUT_MODELS = SETTINGS.replace('base = "main"', 'base = "main"\nmodel_passes = []')


@pytest.fixture
def settled(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.folder.parent / "state"))
    desk.settle(WITHOUT_MODELS)
    return desk


def test_guarded_tools_have_the_gate_and_each_of_its_passes(settled: Desk) -> None:
    settled.commit({**GOOD, "calc.py": FILES["calc.py"] + "\n\ndef run(text):\n    return eval(text)\n"})
    settled.log.runs.start("work", run_id="run_1")
    with Toolbox(settled.log, "run_1", root=settled.folder, tools=[REVIEW]) as box:
        found: dict[str, Any] = box.review_change(only="security")
        assert (found["status"], [one["kind"] for one in found["findings"]]) == ("fail", ["ruff:S307"])
        assert box.review_change("main..change", only="prose")["status"] == "pass"
        with pytest.raises(Invalid, match="no stage 'luck'"):
            box.review_change(only="luck")
    schema = REVIEW.as_dict()
    assert all(name in schema["description"] for name in STAGES)
    assert len(list(settled.log.reviews.find())) == 0


@pytest.mark.slow
def test_what_an_agent_hears_of_a_change_is_the_verdict_on_record(settled: Desk) -> None:
    change = settled.commit(GOOD)
    heard = review_for_agent(settled.log, settled.folder)
    assert (heard["verdict"], heard["confidence"], heard["findings"]) == ("pass", 75, [])
    review = settled.log.reviews.latest(change.tree, change.patch)
    assert review is not None
    assert (heard["review"], list(heard["passes"])) == (review.id, list(STAGES))
    assert review_for_agent(settled.log, settled.folder)["review"] == review.id


def test_an_agent_reviews_by_the_model_context_protocol(
    settled: Desk, sqlite_target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from decklog.mcp.server import build
    from decklog.mcp.source import LogSource

    settled.commit({**GOOD, "calc.py": GOOD["calc.py"] + "\nimport pdb\n"})
    monkeypatch.chdir(settled.folder)
    with Decklog.open(sqlite_target) as log:
        server = build(LogSource(opened=(log, str(tmp_path / "claims"))), {"DECKLOG_WORKER": "dev-1"})
        said = Agent(server).data("review", only="static")
    assert (said["status"], [one["kind"] for one in said["findings"]]) == ("pass", ["debug"])
