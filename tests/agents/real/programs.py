"""The real agent programs in a place of their own: an empty home, a clean environment, a model on loopback, a log."""

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.agents.spool import Spool
from tests.agents.fake_model import FakeModel
from tests.programs import call
from tests.waiting import wait_until

INSTALLED = Path(os.environ.get("DECKLOG_AGENTS") or Path(__file__).parents[3] / ".ci" / "agents") / "node_modules"
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
CLAUDE = INSTALLED / "@anthropic-ai" / f"claude-code-linux-{MACHINE}" / "claude"
DECKLOG = Path(__file__).parents[3] / ".venv" / "bin" / "decklog"
EVENTS = (
    "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PermissionDenied SubagentStart SubagentStop "
    "PreCompact PostCompact Stop StopFailure SessionEnd"
)
TOOLS = "Bash,Write,Edit,Read,Agent,Task"


def needs(program: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not program.exists(), reason=f"{program.name} is not installed: see .ci/run")


@dataclass
class Desk:
    """A repository with a log, and a home, in which a program works with a fake model."""

    folder: Path
    model: FakeModel

    @property
    def repository(self) -> Path:
        return self.folder / "repo"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def prepare(self) -> "Desk":
        self.repository.mkdir(parents=True)
        self.home.mkdir()
        subprocess.run(["git", "init", "-q", str(self.repository)], check=True, env=self.environment)
        assert call(["init"], cwd=self.repository, variables={"HOME": str(self.home)}).code == 0
        return self

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of this machine's own, and no way out of it."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }

    def log(self) -> Decklog:
        return Decklog.open(self.repository / ".decklog" / "decklog.db")

    def settle(self) -> None:
        """Wait until everything that was told is in the log."""
        wait_until(lambda: Spool(str(self.repository / ".decklog" / "spool")).is_empty)


class Claude(Desk):
    """Claude Code with our hooks in its settings."""

    def start(self, prompt: str, *options: str) -> "subprocess.Popen[str]":
        hook = {"type": "command", "command": str(DECKLOG), "args": ["hook", "claude"], "timeout": 20}
        settings = json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in EVENTS.split()}})
        words = [str(CLAUDE), "-p", prompt, "--output-format", "stream-json", "--verbose", "--model", "sonnet"]
        return subprocess.Popen(
            [*words, "--settings", settings, "--allowedTools", TOOLS, *options],
            cwd=self.repository,
            env={**self.environment, **self._own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def _own(self) -> dict[str, str]:
        off = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
        model = {"ANTHROPIC_BASE_URL": self.model.address, "ANTHROPIC_API_KEY": "dummy", "CLAUDE_CODE_MAX_RETRIES": "1"}
        return {**dict.fromkeys(off, "1"), **model, "IS_SANDBOX": "1"}

    def run(self, prompt: str, *options: str) -> list[dict[str, Any]]:
        """Run a prompt to its end, wait for its events, and give what the program printed."""
        with self.start(prompt, *options) as program:
            out, err = program.communicate(timeout=120)
        assert program.returncode == 0, err + out[-2000:]
        self.settle()
        return [json.loads(line) for line in out.splitlines()]
