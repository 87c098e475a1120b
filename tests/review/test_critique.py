"""Critique while the work goes on: off unless asked for, paid from a budget, and told only where it is nearly sure."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid
from decklog.guard.calls.guard import Unrestricted
from decklog.guard.toolbox.toolbox import Toolbox
from decklog.models.client import ModelAnswer
from decklog.models.composer import Prompt
from decklog.models.provider import ModelReply, Provider
from decklog.models.providers.making import Scripted
from decklog.review.critique import Critic, find_critic, find_kept_findings, read_settings
from decklog.review.model_stages import run_adversarial
from decklog.review.settings import Rules
from tests.cli.conftest import Program
from tests.conductor.repositories import make_repository
from tests.review.changes import GOOD, SETTINGS, Desk

ASKED_FOR = SETTINGS.replace('review = "mine"', 'default = "mine"') + "[critique]\nenabled = true\n"


def finding(confidence: int, **more: str) -> dict[str, Any]:
    return {"severity": "high", "citation": f"line {confidence}", "fix_direction": "do not", "confidence": confidence, **more}


class Listener:
    """A model that says the same to whatever it is asked, and remembers what that was."""

    def __init__(self, said: object) -> None:
        self._said = said
        self.prompts: list[Prompt] = []

    def make(self, _: object) -> Provider:
        return Scripted(self._tell)

    def _tell(self, prompt: Prompt) -> "str | ModelReply":
        self.prompts.append(prompt)
        return self._said if isinstance(self._said, (str, ModelReply)) else json.dumps(self._said)


@pytest.fixture
def critic(desk: Desk) -> Callable[[Listener], Critic]:
    desk.log.runs.start("Multiply by three", run_id="run_1")
    desk.settle(ASKED_FOR)

    def made(listener: Listener) -> Critic:
        found = find_critic(desk.log, desk.folder, desk.repository.state, run_id="run_1", make=listener.make)
        assert found is not None
        return found

    return made


def test_nobody_is_asked_unless_the_repository_asks_for_it(desk: Desk) -> None:
    for more in ("", "[critique]\n", "[critique]\nenabled = false\n"):
        desk.settle(SETTINGS + more + f"# {len(more)}\n")
        assert find_critic(desk.log, desk.folder, desk.repository.state, run_id="run_1") is None
    assert find_critic(desk.log, desk.folder.parent, desk.repository.state, run_id="run_1") is None


def test_below_60_is_dropped_from_80_is_told_and_what_is_between_is_kept_for_the_review(
    desk: Desk, critic: Callable[[Listener], Critic]
) -> None:
    listener = Listener({"findings": [finding(number) for number in (59, 60, 79, 80, 100)]})
    told = critic(listener).critique_call("write_file", {"path": "calc.py"}, "ok")
    assert told == [f"Critique (high, {number} of 100 sure): line {number}: do not" for number in (80, 100)]
    assert find_kept_findings(desk.log, "run_1", None) == "- line 60: do not\n- line 79: do not"
    assert "Multiply by three" in listener.prompts[0].text
    assert [one.call_site for one in desk.log.ledger.find("run_1")] == ["critique"]


def test_the_adversarial_stage_is_told_what_was_suspected_of_its_own_item(desk: Desk) -> None:
    desk.log.runs.start("Multiply by three", run_id="run_1")
    for task, text in (("P.w1", "mine: do not"), ("Q.w1", "another's: do not")):
        desk.log.tasks.add("run_1", "work", task_id=task)
        desk.log.journal.append("run_1", text, subtype="critique.kept", task_id=task)
    assert find_kept_findings(desk.log, "run_1", "P.r1") == "- mine: do not"
    asked: list[Sequence[tuple[str, str]]] = []

    def ask(_: int, data: Sequence[tuple[str, str]]) -> ModelAnswer:
        asked.append(data)
        return ModelAnswer(site="review.6", prompt_digest="-", why="nobody")

    change = desk.commit(GOOD)
    for suspected in ("", "- mine: do not"):
        run_adversarial(change, Rules(), ask, suspected=suspected)
    assert [[name for name, _ in data][2:] for data in asked] == [[], ["suspected while it was made"]]


@pytest.mark.parametrize("said", ["All fine!", '{"findings": [{}]}', ModelReply(error_class="timeout", error="slow")])
def test_a_critic_that_gives_no_answer_keeps_nobody_from_working(said: object, critic: Callable[[Listener], Critic]) -> None:
    assert critic(Listener(said)).critique_call("run", {"command": "make"}, "ok") == []


def test_it_stops_when_its_money_is_used_up(critic: Callable[[Listener], Critic]) -> None:
    usage = {"input_tokens": 10, "output_tokens": 10, "cost_microdollars": 300_000}
    listener = Listener(ModelReply(text='{"findings": []}', model="scripted", usage=usage))
    mine = critic(listener)
    for _ in range(5):
        assert mine.critique_call("write_file", {"path": "calc.py"}, "ok") == []
    assert len(listener.prompts) == 2


def test_guarded_tools_tell_it_with_the_answer_and_reads_are_not_looked_at(
    desk: Desk, critic: Callable[[Listener], Critic]
) -> None:
    listener = Listener({"findings": [finding(95)]})
    with Toolbox(desk.log, "run_1", root=desk.folder, trust=Unrestricted(), critic=critic(listener).critique_call) as box:
        box.read_file("calc.py")
        assert (box.critique, listener.prompts) == ([], [])
        box.write_file("notes.txt", "x\n")
        assert box.critique == ["Critique (high, 95 of 100 sure): line 95: do not"]
        box.read_file("notes.txt")
        assert (box.critique, len(listener.prompts)) == ([], 1)


@pytest.mark.slow
def test_an_agents_program_is_told_in_its_conversation(decklog: Program, tmp_path: Path, sqlite_target: str) -> None:
    said = json.dumps({"findings": [finding(90), finding(10)]})
    program = json.dumps([sys.executable, "-I", "-S", "-c", f"print({said!r})"])
    settings = (
        f'[models.m]\nagent = "judge"\n[agents.judge]\ncommand = {program}\n[calls]\ncritique = "m"\n[run]\nsandbox = "none"\n'
    )
    folder = make_repository(tmp_path / "repository", {"decklog.toml": settings + "[critique]\nenabled = true\n"})
    event = {"hook_event_name": "PostToolUse", "session_id": "s1", "cwd": str(folder), "tool_input": {"file_path": "a.py"}}
    settled = {"DECKLOG_DB": sqlite_target, "XDG_STATE_HOME": str(tmp_path / "state")}
    for tool, is_told in (("Read", False), ("Write", True)):
        heard = decklog("hook", "claude", stdin=json.dumps({**event, "tool_name": tool}), cwd=folder, **settled)
        assert (heard.code, bool(heard.out)) == (0, is_told), heard
    told = json.loads(heard.out)["hookSpecificOutput"]
    assert told == {"hookEventName": "PostToolUse", "additionalContext": "Critique (high, 90 of 100 sure): line 90: do not"}
    with Decklog.open(sqlite_target) as log:
        assert [run.goal for run in log.runs.find()] == ["Critique of claude:s1"]


def test_settings_that_nobody_knows_are_named() -> None:
    for text, named in (
        (b"[critique]\nloud = true", "loud"),
        (b"[critique]\nenabled = 1", "enabled"),
        (b"[critique]\nseconds = 0", "seconds"),
    ):
        with pytest.raises(Invalid, match=named):
            read_settings(text)
