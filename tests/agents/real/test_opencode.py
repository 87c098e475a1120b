"""opencode itself, with the plugin of `decklog setup opencode`: what the log says is what the model saw, to the token."""

from pathlib import Path

from decklog import Decklog, RunStatus
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import HELD, OPENCODE, Opencode, decklog, entries, needs

SCRIPT = {
    "main": [
        Step("Let me look.", (Use("bash", {"command": "echo hi", "description": "say hi"}),), cache_read_tokens=40),
        Step(uses=(Use("bash", {"command": "exit 3", "description": "fail"}),)),
        Step(uses=(Use("read", {"filePath": "missing.txt"}),)),
        Step(uses=(Use("bash", {"command": HELD, "description": "no"}),)),
        Step(uses=(Use("task", {"description": "look", "prompt": "lane=below look", "subagent_type": "general"}),)),
        Step("Done.", output_tokens=33),
    ],
    "below": [
        Step(uses=(Use("bash", {"command": "echo below", "description": "say it"}),), input_tokens=7),
        Step("Found.", input_tokens=9),
    ],
}


@needs(OPENCODE)
def test_a_session_is_on_record_with_what_failed_what_was_held_and_what_a_sub_agent_spent(tmp_path: Path) -> None:
    with FakeModel(SCRIPT) as model:
        opencode = Opencode(tmp_path, model)
        opencode.prepare()
        opencode.configure(input=3, output=15, cache_read=1)
        decklog(opencode, "setup", "opencode", "--project")
        run = f"opencode-{opencode.run('lane=main go')[0]['sessionID']}"
        # It has the model think of a title too, and tells nobody what that cost.
        asked = zip(model.requests, list(model.given), strict=True)
        model.given = [given for (_, body), given in asked if body.get("tools")]
        with opencode.log() as log:
            assert_told(log, run)
            assert not (opencode.home / ".bashrc").exists()
            opencode.assert_paid(log)
            steps = [given.step for given in model.given]
            # In dollars for a million tokens, so that each token has its price in microdollars.
            price = sum(3 * step.input_tokens + 15 * step.output_tokens + step.cache_read_tokens for step in steps)
            assert sum(charge.cost_microdollars or 0 for charge in log.ledger.find(limit=200)) == price


def assert_told(log: Decklog, run: str) -> None:
    told = entries(log, run)
    assert [body for subtype, body in told if subtype == "said"] == ["Let me look.", "Done."]
    results = log.journal.find(run, subtype="result", oldest_first=True)
    outcomes = [entry.payload["outcome"] for entry in results if isinstance(entry.payload, dict)]
    assert outcomes == ["ok", "failed", "failed", "denied", "ok"]
    (below,) = log.runs.find(parent_run_id=run)
    assert ("said", "Found.") in entries(log, below.id)
    assert {below.status, log.runs.get(run).status} == {RunStatus.COMPLETED}
