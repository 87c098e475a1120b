"""Agents' own programs under the conductor, with a model that answers by script: each lands, whatever it meets."""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.context import RunContext
from decklog.core.processes import Identity
from decklog.guard.sandbox import landlock
from decklog.guard.sandbox.sandbox import SandboxKind, best_kind, has_bubblewrap
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.editors import CLAUDE_ADAPTER, CODEX_ADAPTER, NODE
from tests.agents.real.programs import CLAUDE, CODEX, GEMINI, INSTALLED, OPENCODE, needs
from tests.conductor.plans import RUNNER, Work, landed, landed_titles, make_checked_repository, settle, states, task_of
from tests.conductor.test_kills import check_whole, conducted, conducting, ended, site_of

TEXT = "def triple(a):\n    return a * 3\n"
ITEM: dict[str, Any] = {"name": "triple", "title": "Item triple", "objective": "lane=work go", "paths": ["triple.py"]}
SLOW = {**ITEM, "objective": "lane=slow go"}
TESTED: dict[str, Any] = {**ITEM, "objective": "lane=tested go", "paths": ["triple.py", "tests/"], "acceptance": ["3 gives 9"]}
WRONG = "def triple(a):\n    return a * 2\n"
TRIPLE_TEST = "import triple\n\n\ndef test_triple():\n    assert triple.triple(3) == 9\n"
# As most people have it: nothing that is said of a sandbox, and checks by a program of the system.
SETTINGS = """
[run]
agents = 2
rounds = 2
attempts = 2
orphan_seconds = 20
[[checks]]
name = "tests"
command = ["python3", "run_tests.py", "{report}"]
report = "junit"
minutes = 0.5
"""


@dataclass
class Ground:
    """A repository whose agent is a real program, and the model that it talks to."""

    folder: Path
    model: FakeModel
    target: str
    # How its model has it write a file.
    use: Callable[[str, str], Use]
    # So often it is refused where it meets a quota.
    tries: int

    # How its model has it run a command.
    run: Callable[[str], Use]

    def work(self, item: dict[str, Any] = ITEM) -> RunContext:
        with Decklog.open(self.target) as log:
            return Work(log, self.folder, item).run()

    def asked(self) -> str:
        """All that the model was asked, results of tools among it."""
        return json.dumps([body for _, body in self.model.requests])

    def check_landed(self, context: RunContext) -> None:
        with Decklog.open(self.target) as log:
            there = RunContext(
                log=log,
                run_id=context.run_id,
                repository=context.repository,
                configuration=context.configuration,
                person=context.person,
            )
            assert landed_titles(there) == ["Item triple"], (states(there), task_of(there, "triple.w1").reason)
            assert landed(there, "triple.py") == TEXT.strip()
            assert task_of(there, "triple.w1").failures == 0
            assert log.journal.verify(context.run_id).ok
            charged = sum(charge.output_tokens for charge in log.ledger.find(context.run_id, limit=200))
            assert charged > 0


def claude_settings(model: FakeModel, home: Path, patch: pytest.MonkeyPatch, program: str = "claude-code") -> str:
    off = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
    (home / ".claude").mkdir()
    own = {"env": {**dict.fromkeys(off, "1"), "CLAUDE_CODE_MAX_RETRIES": "1"}}
    (home / ".claude/settings.json").write_text(json.dumps(own))
    patch.setenv("ANTHROPIC_BASE_URL", model.address)
    patch.setenv("ANTHROPIC_API_KEY", "dummy")
    return _settings(program)


def claude_by_adapter(model: FakeModel, home: Path, patch: pytest.MonkeyPatch) -> str:
    return claude_settings(model, home, patch, "claude-acp")


def codex_by_adapter(model: FakeModel, home: Path, patch: pytest.MonkeyPatch) -> str:
    return codex_settings(model, home, patch, "codex-acp")


def install_script(name: str, script: Path) -> Path:
    """Put a script of Node's under its name into the folder of programs that npm has beside its packages; return the folder."""
    folder = INSTALLED.parent / "bin"
    folder.mkdir(exist_ok=True)
    new = folder / f".{name}.{os.getpid()}"
    new.write_text(f'#!/bin/sh\nexec "{NODE}" "{script}" "$@"\n')
    new.chmod(0o755)
    new.rename(folder / name)
    return folder


def codex_settings(model: FakeModel, home: Path, patch: pytest.MonkeyPatch, program: str = "codex") -> str:
    (home / ".codex").mkdir()
    provider = f'name = "fake"\nbase_url = "{model.address}/v1"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"'
    (home / ".codex/config.toml").write_text(
        f'model = "gpt-5.5"\nmodel_provider = "fake"\n[model_providers.fake]\n{provider}\nrequest_max_retries = 1\n'
        "stream_max_retries = 1\n[analytics]\nenabled = false\n"
    )
    patch.setenv("CODEX_API_KEY", "dummy")
    return _settings(program)


def gemini_settings(model: FakeModel, home: Path, patch: pytest.MonkeyPatch, program: str = "gemini") -> str:
    (home / ".gemini").mkdir()
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini/settings.json").write_text(json.dumps(auth))
    patch.setenv("GEMINI_API_KEY", "dummy")
    patch.setenv("GOOGLE_GEMINI_BASE_URL", model.address)
    return _settings(program, 'model = "gemini-2.5-pro"\n')


def gemini_by_protocol(model: FakeModel, home: Path, patch: pytest.MonkeyPatch) -> str:
    return gemini_settings(model, home, patch, "gemini-acp")


def opencode_settings(model: FakeModel, home: Path, _patch: pytest.MonkeyPatch, program: str = "opencode") -> str:
    models = {"m1": {"name": "m1", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}}
    options = {"baseURL": f"{model.address}/v1", "apiKey": "dummy"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": models}
    own = {"model": "fake/m1", "small_model": "fake/m1", "autoupdate": False, "share": "disabled"}
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.json").write_text(json.dumps({**own, "provider": {"fake": provider}}))
    (home / ".npmrc").write_text("fetch-retries=0\n")
    off = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return _settings(program, env=dict.fromkeys(off, "1"))


def opencode_by_protocol(model: FakeModel, home: Path, patch: pytest.MonkeyPatch) -> str:
    return opencode_settings(model, home, patch, "opencode-acp")


def _settings(program: str, more: str = "", env: dict[str, str] | None = None) -> str:
    """Write settings that use a shipped description as it is; the variables only keep the program's traffic on this machine."""
    quiet = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1", **(env or {})}
    values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in quiet.items())
    own = f'[agents.real]\nextends = "{program}"\n{more}env = {{ {values} }}\n[roles]\nworker = ["real"]\n'
    return SETTINGS + own


def by_write(path: str, text: str) -> Use:
    return Use("Write", {"file_path": path, "content": text})


def by_patch(path: str, text: str) -> Use:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    return Use("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"})


def by_write_file(path: str, text: str) -> Use:
    return Use("write_file", {"file_path": path, "content": text})


def by_plain_write(path: str, text: str) -> Use:
    return Use("write", {"filePath": path, "content": text})


def by_bash(command: str) -> Use:
    return Use("Bash", {"command": command, "description": "Run the tests"})


def by_exec(command: str) -> Use:
    return Use("exec_command", {"cmd": command})


def by_shell(command: str) -> Use:
    return Use("run_shell_command", {"command": command, "description": "Run the tests"})


def by_plain_bash(command: str) -> Use:
    return Use("bash", {"command": command, "description": "Run the tests"})


PROGRAMS = {
    "claude": (CLAUDE, claude_settings, by_write, by_bash),
    "codex": (CODEX, codex_settings, by_patch, by_exec),
    "claude-acp": (CLAUDE_ADAPTER, claude_by_adapter, by_write, by_bash),
    "codex-acp": (CODEX_ADAPTER, codex_by_adapter, by_patch, by_exec),
    "gemini": (GEMINI, gemini_settings, by_write_file, by_shell),
    "gemini-acp": (GEMINI, gemini_by_protocol, by_write_file, by_shell),
    "opencode": (OPENCODE, opencode_settings, by_plain_write, by_plain_bash),
    "opencode-acp": (OPENCODE, opencode_by_protocol, by_plain_write, by_plain_bash),
}


# Called by these names.
SCRIPTS = {CLAUDE_ADAPTER: "claude-agent-acp", CODEX_ADAPTER: "codex-acp", GEMINI: "gemini"}
# These give up what they were refused twice. Codex's adapter does at once, and the others ask again for minutes.
REFUSED_TWICE = ("claude", "codex", "claude-acp")


def of_program(name: str) -> Any:
    return pytest.param(name, marks=needs(PROGRAMS[name][0]))


pytestmark = pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")


@pytest.fixture(params=[of_program(name) for name in PROGRAMS])
def ground(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with prepared(request.param, tmp_path, monkeypatch) as ground:
        yield ground


@contextmanager
def prepared(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    program, settings, use, run = PROGRAMS[name]
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    folder = install_script(SCRIPTS[program], program) if program in SCRIPTS else program.parent
    monkeypatch.setenv("PATH", f"{folder}:/usr/local/bin:/usr/bin:/bin")
    steps = [Step("I write it.", (use("triple.py", TEXT),)), Step("It is written.")]
    slow = [steps[0], Step("It is written.", seconds=6)]
    with FakeModel({"work": steps, "slow": slow}) as model:
        folder = make_checked_repository(tmp_path / "repository", **{"run_tests.py": RUNNER.read_text()})
        settle(folder, settings(model, home, monkeypatch))
        yield Ground(folder, model, str(tmp_path / "decklog.db"), use, 2 if name in REFUSED_TWICE else 1, run)


def test_an_item_lands(ground: Ground) -> None:
    ground.check_landed(ground.work())


@pytest.fixture
def without_bubblewrap(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on which bubblewrap may not make its namespaces, as in most containers: Landlock is what there is."""
    refused = tmp_path / "refused/bwrap"
    refused.parent.mkdir()
    refused.write_text("#!/bin/sh\nexit 1\n")
    refused.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{refused.parent}:{os.environ['PATH']}")
        has_bubblewrap.cache_clear()
        best_kind.cache_clear()
        yield
    has_bubblewrap.cache_clear()
    best_kind.cache_clear()


@pytest.mark.skipif(landlock.abi_version() == 0, reason="this kernel has no Landlock")
@pytest.mark.usefixtures("without_bubblewrap")
@pytest.mark.parametrize("ground", [of_program(name) for name in ("claude", "codex")], indirect=True)
def test_by_landlock_alone_an_agent_runs_the_check_of_its_brief_too(ground: Ground) -> None:
    assert best_kind() is SandboxKind.LANDLOCK
    test_an_agent_runs_the_check_of_its_brief_fixes_what_it_shows_and_lands(ground)


def test_an_agent_runs_the_check_of_its_brief_fixes_what_it_shows_and_lands(ground: Ground) -> None:
    check = 'python3 run_tests.py "$TMPDIR"/report.xml'
    ground.model.script["tested"] = [
        Step("A test first.", (ground.use("tests/test_triple.py", TRIPLE_TEST),)),
        Step("Now the code.", (ground.use("triple.py", WRONG),)),
        Step("Does it work?", (ground.run(f"{check} && echo all 4'2' passed || echo none of 4'2' passed"),)),
        Step("It does not.", (ground.run("sed -i 's/a \\* 2/a * 3/' triple.py"),)),
        Step("And now?", (ground.run(f"{check} && echo all 4'2' passed"),)),
        Step("It works."),
    ]
    context = ground.work(TESTED)
    assert "none of 42 passed" in ground.asked(), ground.asked()[-6000:]
    assert "all 42 passed" in ground.asked(), ground.asked()[-6000:]
    ground.check_landed(context)
    told = json.loads(json.dumps(ground.asked()))
    for fact in ("Make it better", "Item triple", "3 gives 9", json.dumps(check)[1:-1]):
        assert fact in told or json.dumps(fact)[1:-1] in told, fact


def test_a_quota_costs_no_attempt(ground: Ground) -> None:
    ground.model.troubles += [429] * ground.tries
    ground.check_landed(ground.work())
    with Decklog.open(ground.target) as log:
        assert [gate.state for gate in log.gates.find()] in ([], ["open"])


def test_a_stream_that_is_cut_is_gone_on_with(ground: Ground) -> None:
    ground.model.troubles += [0]
    ground.check_landed(ground.work())


def test_a_lost_login_waits_for_a_person(ground: Ground) -> None:
    ground.model.troubles += [401] * 8
    context = ground.work()
    with Decklog.open(ground.target) as log:
        assert [gate.reason for gate in log.gates.find(state="closed")] == ["login"]  # type: ignore[arg-type]
        assert log.tasks.get(f"{context.run_id}.triple.w1").failures == 0
    ground.model.troubles.clear()
    ground.check_landed(ground.work())


@pytest.mark.parametrize("ground", [of_program(name) for name in PROGRAMS if name != "opencode-acp"], indirect=True)
def test_a_program_outlives_its_conductor_and_is_adopted(ground: Ground) -> None:
    assert conducted(ground.target, ground.folder, (SLOW,), "spawn:settled") == -signal.SIGKILL
    with Decklog.open(ground.target) as log:
        context = Work(log, ground.folder, SLOW).run()
        assert len(log.effects.find(context.run_id, tool="conductor.spawn")) == 1, "it was not started again"
    ground.check_landed(context)


# While the models of so many programs take their time, conductors are killed so often.
KILLS, ITEMS = 5, 6


def _killed_at_work(ground: Ground, items: tuple[dict[str, Any], ...], chance: random.Random) -> bool:
    """Kill a conductor while one of its programs waits for its model; say no when there was nothing left to work on."""
    asked, child = len(ground.model.requests), conducting(ground.target, ground.folder, items)
    end = time.monotonic() + 120
    while len(ground.model.requests) == asked and time.monotonic() < end and os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.01)
    if len(ground.model.requests) == asked:
        return False
    time.sleep(chance.uniform(0.0, 0.4))
    os.kill(child, signal.SIGKILL)
    return ended(child) == -signal.SIGKILL


def _kill_supervisors(folder: Path) -> None:
    for note in folder.glob("**/running.json"):
        Identity.from_text(json.loads(note.read_text())["supervisor"]).send(signal.SIGKILL)


@pytest.mark.parametrize("with_supervisors", [False, True])
@pytest.mark.parametrize("ground", [of_program(name) for name in ("claude", "codex")], indirect=True)
def test_programs_whose_conductor_is_killed_while_they_work_land_each_item_once(ground: Ground, with_supervisors: bool) -> None:
    chance = random.Random(5)
    items = []
    for number in range(ITEMS):
        name = f"p{number}"
        items.append({"name": name, "title": f"Item {name}", "objective": f"lane={name} go", "paths": [f"{name}.py"]})
        write = ground.use(f"{name}.py", f"value = {number}\n")
        ground.model.script[name] = [Step("I write it.", (write,), seconds=1.0), Step("It is written.", seconds=1.5)]
    with Decklog.open(ground.target) as log:
        context = Work(log, ground.folder, *items).context()
    kills = 0
    while kills < KILLS and _killed_at_work(ground, tuple(items), chance):
        kills += 1
        if with_supervisors:
            _kill_supervisors(context.folder)
    assert kills == KILLS
    assert conducted(ground.target, ground.folder, tuple(items), None, seconds=240) == 0
    with Decklog.open(ground.target) as log:
        context = site_of(log, ground.folder, tuple(items))
        assert sorted(landed_titles(context)) == [f"Item p{number}" for number in range(ITEMS)]
        assert [landed(context, f"p{number}.py") for number in range(ITEMS)] == [f"value = {number}" for number in range(ITEMS)]
        assert {task.failures for task in log.tasks.find(context.run_id, limit=200)} == {0}
        check_whole(log, context, ground.folder)
        _check_charged(log, context, ground, with_supervisors=with_supervisors)


def _check_charged(log: Decklog, context: RunContext, ground: Ground, *, with_supervisors: bool) -> None:
    """Hold what was charged against what the model gave: all of it, or at least that of the attempts that came to their end."""
    charged = sum(charge.output_tokens for charge in log.ledger.find(context.run_id, limit=200))
    given = sum(one.step.output_tokens for one in ground.model.given)
    if with_supervisors:
        assert ITEMS * 2 * Step().output_tokens <= charged <= given
    else:
        assert charged == given
        started = log.effects.find(context.run_id, tool="conductor.spawn", state="done", limit=200)  # type: ignore[arg-type]
        assert len(started) == ITEMS, "none was started again"
