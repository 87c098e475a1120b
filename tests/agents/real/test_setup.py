"""What `decklog setup` writes, read by the real programs: they call it, and what is denied does not run."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog, EntryKind
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import CLAUDE, CODEX, HELD, TOOLS, Claude, Codex, Desk, decklog, entries, needs

SCRIPT = {
    "claude": [Step(uses=(Use("Bash", {"command": HELD, "description": "do it"}),)), Step("It was held.")],
    "codex": [Step(uses=(Use("exec_command", {"cmd": HELD}),)), Step("It was held.")],
}


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(SCRIPT) as model:
        yield model


def on_path(desk: Desk, program: Path) -> None:
    (desk.folder / "bin").mkdir(exist_ok=True)
    (desk.folder / "bin" / program.name).symlink_to(program)


def assert_arrives(desk: Desk, program: str, set_up: str) -> None:
    row = json.loads(decklog(desk, "doctor", "agents", "--json"))["data"]["programs"][0]
    assert (row["program"], row["events_arrive"], row["set_up"]) == (program, True, set_up)


def assert_held(desk: Desk, log: Decklog, program: str) -> None:
    assert not (desk.home / ".bashrc").exists()
    run = next(run for run in log.runs.find() if run.id.startswith(f"{program}-") and not run.id.endswith("-doctor"))
    assert ("call", HELD) in entries(log, run.id)
    result = log.journal.find(run.id, kind=EntryKind.TOOL)[0]
    assert isinstance(result.payload, dict)
    assert result.payload["outcome"] == "denied"
    desk.assert_paid(log)


class SetUpClaude(Claude):
    """Claude Code with the settings that it finds."""

    def start(self, prompt: str, *options: str) -> "subprocess.Popen[str]":
        words = ["-p", prompt, "--output-format", "stream-json", "--verbose", "--model", "sonnet", "--allowedTools", TOOLS]
        return self.program(*words, *options)

    def program(self, *words: str) -> "subprocess.Popen[str]":
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**self.environment, **self._own}
        return subprocess.Popen([str(CLAUDE), *words], cwd=self.repository, env=environment, text=True, **streams)


class SetUpCodex(Codex):
    """Codex with the settings that it finds, and no more trust than they give."""

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return self.program("exec", "--json", "-s", "danger-full-access", *words)

    def program(self, *words: str) -> "subprocess.Popen[str]":
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**self.environment, "CODEX_HOME": str(self.home / ".codex"), "FAKE_KEY": "dummy"}
        return subprocess.Popen([str(CODEX), *words], cwd=self.repository, env=environment, text=True, **streams)

    def prepare(self) -> "SetUpCodex":
        super().prepare()
        self._configure()
        (self.home / ".codex" / "hooks.json").unlink()
        return self


def finish(program: "subprocess.Popen[str]") -> None:
    with program:
        out, err = program.communicate(timeout=60)
    assert program.returncode == 0, out + err


@needs(CLAUDE)
@pytest.mark.parametrize("way", ["project", "user", "plugin"])
def test_claude_code_calls_what_was_set_up(tmp_path: Path, model: FakeModel, way: str) -> None:
    claude = SetUpClaude(tmp_path, model)
    claude.prepare()
    on_path(claude, CLAUDE)
    if way == "plugin":
        decklog(claude, "setup", "claude", "--plugin", str(tmp_path / "plugin"))
        finish(claude.program("plugin", "marketplace", "add", str(tmp_path / "plugin")))
        finish(claude.program("plugin", "install", "decklog@decklog"))
    else:
        decklog(claude, "setup", "claude", f"--{way}")
    claude.run("lane=claude go")
    with claude.log() as log:
        assert_held(claude, log, "claude")
    states = {"project": "project installed, user missing", "user": "project missing, user installed"}
    assert_arrives(claude, "claude", states.get(way, "project missing, user plugin"))


@needs(CODEX)
def test_codex_calls_what_was_set_up_and_trusted(tmp_path: Path, model: FakeModel) -> None:
    codex = SetUpCodex(tmp_path, model).prepare()
    config = codex.home / ".codex" / "config.toml"
    before = config.read_text()
    on_path(codex, CODEX)
    decklog(codex, "setup", "codex", "--trust")
    codex.run("lane=codex go")
    with codex.log() as log:
        assert_held(codex, log, "codex")
    assert_arrives(codex, "codex", "user installed, project missing")
    decklog(codex, "setup", "codex", "--remove")
    assert not (codex.home / ".codex" / "hooks.json").exists()
    assert config.read_text().startswith(before)
    assert "decklog" not in config.read_text()


@needs(CODEX)
def test_codex_takes_the_plugin_of_claude_code(tmp_path: Path, model: FakeModel) -> None:
    codex = SetUpCodex(tmp_path, model).prepare()
    on_path(codex, CODEX)
    decklog(codex, "setup", "claude", "--plugin", str(tmp_path / "plugin"))
    finish(codex.program("plugin", "marketplace", "add", str(tmp_path / "plugin")))
    finish(codex.program("plugin", "add", "decklog@decklog"))
    codex.run("--dangerously-bypass-hook-trust", "lane=codex go")
    with codex.log() as log:
        assert_held(codex, log, "codex")
