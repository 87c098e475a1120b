"""Tools that a model calls through the real programs: what `decklog setup` wrote is started, and the log shows what was done."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind, TaskState
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import CLAUDE, CODEX, TOOLS, Desk, needs
from tests.agents.real.test_setup import SetUpClaude, SetUpCodex, decklog, finish


def lane(prefix: str, namespace: str | None = None) -> list[Step]:
    """Take a task, write down a thought and end it."""

    def use(tool: str, **given: Any) -> Use:
        return Use(prefix + tool, given, namespace)

    return [
        Step(uses=(use("next"),)),
        Step(uses=(use("note", text="a thought"),)),
        Step(uses=(use("done", what="it"),)),
        Step("Done."),
    ]


# Codex starts servers behind its first request, which does without the tools of those that are slow.
PATIENCE = [Step(uses=(Use("exec_command", {"cmd": "sleep 3", "yield_time_ms": 5000}),)), *lane("", "mcp__decklog")[:1]] * 4
SCRIPT = {
    "claude": lane("mcp__decklog__"),
    "claude-plugin": lane("mcp__plugin_decklog_decklog__"),
    "codex": [*PATIENCE, *lane("", "mcp__decklog")],
}


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(SCRIPT) as model:
        yield model


def planned(desk: Desk) -> None:
    decklog(desk, "runs", "start", "a goal", "--run", "run_1")
    decklog(desk, "plan", "one")


def assert_done(log: Decklog, program: str) -> None:
    """Hold the log against what the model did, as the worker that the program's session is."""
    (session,) = (run.id for run in log.runs.find() if run.id != "run_1")
    worker = f"{program}-{session[-8:]}"
    (task,) = log.tasks.find("run_1")
    assert (task.state, task.summary, task.attempts) == (TaskState.DONE, "it", 1)
    (note,) = log.journal.find("run_1", kind=EntryKind.REASONING)
    assert (note.body, note.agent, note.task_id) == ("a thought", worker, task.id)


@needs(CLAUDE)
@pytest.mark.parametrize("way", ["claude", "claude-plugin"])
def test_claude_code_calls_the_tools(tmp_path: Path, model: FakeModel, way: str) -> None:
    claude = SetUpClaude(tmp_path, model)
    claude.prepare()
    planned(claude)
    if way == "claude":
        decklog(claude, "setup", "claude", "--mcp")
    else:
        decklog(claude, "setup", "claude", "--plugin", str(tmp_path / "plugin"))
        finish(claude.program("plugin", "marketplace", "add", str(tmp_path / "plugin")))
        finish(claude.program("plugin", "install", "decklog@decklog"))
    claude.run(f"lane={way} go", "--allowedTools", f"{TOOLS},mcp__decklog,mcp__plugin_decklog_decklog")
    with claude.log() as log:
        assert_done(log, "claude")
        claude.assert_paid(log)


@needs(CODEX)
@pytest.mark.parametrize("way", ["codex", "codex-plugin"])
def test_codex_calls_the_tools(tmp_path: Path, model: FakeModel, way: str) -> None:
    codex = SetUpCodex(tmp_path, model).prepare()
    planned(codex)
    if way == "codex":
        decklog(codex, "setup", "codex", "--mcp")
    else:
        decklog(codex, "setup", "claude", "--plugin", str(tmp_path / "plugin"))
        finish(codex.program("plugin", "marketplace", "add", str(tmp_path / "plugin")))
        finish(codex.program("plugin", "add", "decklog@decklog"))
    codex.run("--dangerously-bypass-hook-trust", "lane=codex go")
    with codex.log() as log:
        assert_done(log, "codex")
        codex.assert_paid(log)
