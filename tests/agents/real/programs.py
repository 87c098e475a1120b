"""The real agent programs in a place of their own: an empty home, a clean environment, a model on loopback, a log."""

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, EntryKind
from decklog.agents.spool import Spool
from tests.agents.fake_model import FakeModel
from tests.programs import call
from tests.waiting import wait_until

INSTALLED = Path(os.environ.get("DECKLOG_AGENTS") or Path(__file__).parents[3] / ".ci" / "agents") / "node_modules"
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
CLAUDE = INSTALLED / "@anthropic-ai" / f"claude-code-linux-{MACHINE}" / "claude"
CODEX = next(INSTALLED.glob(f"@openai/codex-linux-{MACHINE}/vendor/*/bin/codex"), INSTALLED / "codex")
# It is a script, which Node runs.
GEMINI = INSTALLED / "@google" / "gemini-cli" / "bundle" / "gemini.js"
OPENCODE = INSTALLED / f"opencode-linux-{MACHINE}" / "bin" / "opencode"
DECKLOG = Path(__file__).parents[3] / ".venv" / "bin" / "decklog"
EVENTS = (
    "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure PermissionDenied SubagentStart SubagentStop "
    "PreCompact PostCompact Stop StopFailure SessionEnd"
)
CODEX_EVENTS = (
    "SessionStart UserPromptSubmit PreToolUse PostToolUse SubagentStart SubagentStop PreCompact PostCompact Stop Interrupt "
    "SessionEnd"
)
# Held by the policy, and harmless should it run after all.
HELD = "echo alias ls=true >> ~/.bashrc"
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

    def assert_paid(self, log: Decklog) -> None:
        """Hold what was charged against what the model gave, to the token, and the log against itself."""
        kinds = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
        charges = log.ledger.find(limit=200)
        paid = {kind: sum(getattr(charge, kind) for charge in charges) for kind in kinds}
        assert paid == {kind: sum(getattr(given.step, kind) for given in self.model.given) for kind in kinds}
        assert log.journal.verify().ok

    def settle(self) -> None:
        """Wait until everything that was told is in the log."""
        wait_until(lambda: Spool(str(self.repository / ".decklog" / "decklog.db-spool")).is_empty)


def decklog(desk: Desk, *words: str) -> str:
    """Call our own command line as whoever sits at the desk does, and give what it prints."""
    path = f"{desk.folder / 'bin'}:{desk.environment['PATH']}"
    done = call(list(words), cwd=desk.repository, variables={"HOME": str(desk.home), "PATH": path}, timeout=90)
    assert done.code == 0, done
    return done.out.decode()


def entries(log: Decklog, run_id: str) -> list[tuple[str | None, str | None]]:
    """List what a run tells, bookkeeping left out."""
    found = log.journal.find(run_id, oldest_first=True, limit=200)
    return [(entry.subtype, entry.body) for entry in found if entry.kind != EntryKind.CHANGE]


class Codex(Desk):
    """Codex with our hooks in its home."""

    def start(self, *words: str) -> "subprocess.Popen[str]":
        self._configure()
        return subprocess.Popen(
            [str(CODEX), "exec", "--json", "--dangerously-bypass-hook-trust", "-s", "danger-full-access", *words],
            cwd=self.repository,
            env={**self.environment, "CODEX_HOME": str(self.home / ".codex"), "FAKE_KEY": "dummy"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _configure(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir(exist_ok=True)
        hook = {"type": "command", "command": f"{DECKLOG} hook codex", "timeout": 3}
        (folder / "hooks.json").write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in CODEX_EVENTS.split()}}))
        model = f'name = "fake"\nbase_url = "{self.model.address}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"'
        (folder / "config.toml").write_text(
            f'model = "gpt-5.5"\nmodel_provider = "fake"\n[model_providers.fake]\n{model}\nrequest_max_retries = 1\n'
            "stream_max_retries = 1\n[analytics]\nenabled = false\n"
        )

    def run(self, *words: str) -> list[dict[str, Any]]:
        """Run a prompt to its end, wait for its events, and give what the program printed."""
        with self.start(*words) as program:
            out, err = program.communicate(timeout=120)
        assert program.returncode == 0, err + out[-2000:]
        self.settle()
        return [json.loads(line) for line in out.splitlines()]


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


class Gemini(Desk):
    """Gemini CLI with the settings that it finds."""

    def start(self, prompt: str, *options: str) -> "subprocess.Popen[str]":
        words = ["-p", prompt, "-m", "gemini-2.5-pro", "--output-format", "stream-json", "--approval-mode", "yolo"]
        return subprocess.Popen(
            ["node", str(GEMINI), *words, "--skip-trust", *options],
            cwd=self.repository,
            env={**self.environment, "GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": self.model.address},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def configure(self) -> None:
        """Say how it logs in; what else stands in its settings stays."""
        path = self.home / ".gemini" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))

    def run(self, prompt: str, *options: str) -> list[dict[str, Any]]:
        """Run a prompt to its end, wait for its events, and give what the program printed."""
        with self.start(prompt, *options) as program:
            out, err = program.communicate(timeout=120)
        assert program.returncode == 0, err + out[-2000:]
        self.settle()
        return [json.loads(line) for line in out.splitlines()]


class Opencode(Desk):
    """opencode with a plugin that it finds in the repository."""

    def configure(self, **prices: float) -> None:
        """Name the model with its prices, and have it give up at once what it would fetch."""
        cost = {"cost": prices} if prices else {}
        models = {"m1": {"name": "m1", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}, **cost}}
        options = {"baseURL": f"{self.model.address}/v1", "apiKey": "dummy"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": models}
        own = {"model": "fake/m1", "small_model": "fake/m1", "autoupdate": False, "share": "disabled"}
        (self.repository / "opencode.json").write_text(json.dumps({**own, "provider": {"fake": provider}}))
        (self.home / ".npmrc").write_text("fetch-retries=0\n")

    def run(self, prompt: str) -> list[dict[str, Any]]:
        """Run a prompt to its end, wait for its events, and give what the program printed."""
        off = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
        done = subprocess.run(
            [str(OPENCODE), "run", "--format", "json", "--auto", prompt],
            cwd=self.repository,
            env={**self.environment, **dict.fromkeys(off, "1")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout[-2000:]
        self.settle()
        return [json.loads(line) for line in done.stdout.splitlines()]
