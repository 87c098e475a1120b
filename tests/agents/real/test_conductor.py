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
from decklog.conductor.site import Site
from decklog.processes.identity import Identity
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.editors import CLAUDE_ADAPTER, CODEX_ADAPTER, NODE
from tests.agents.real.programs import CLAUDE, CODEX, GEMINI, OPENCODE, needs
from tests.conductor.plans import SETTINGS, Work, landed, landed_titles, make_checked_repository, settle, states, task_of
from tests.conductor.test_kills import check_whole, conducted, conducting, ended, site_of

TEXT = "def triple(a):\n    return a * 3\n"
PIECE: dict[str, Any] = {"name": "triple", "title": "Piece triple", "objective": "lane=work go", "paths": ["triple.py"]}
SLOW = {**PIECE, "objective": "lane=slow go"}


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

    def work(self) -> Site:
        with Decklog.open(self.target) as log:
            return Work(log, self.folder, PIECE).run()

    def check_landed(self, site: Site) -> None:
        with Decklog.open(self.target) as log:
            there = Site(
                log=log,
                run_id=site.run_id,
                repository=site.repository,
                configuration=site.configuration,
                person=site.person,
            )
            assert landed_titles(there) == ["Piece triple"], (states(there), task_of(there, "triple.w1").reason)
            assert landed(there, "triple.py") == TEXT.strip()
            assert task_of(there, "triple.w1").failures == 0
            assert log.journal.verify(site.run_id).ok
            charged = sum(charge.output_tokens for charge in log.ledger.find(site.run_id, limit=200))
            assert charged > 0


def claude_settings(model: FakeModel, _home: Path) -> str:
    off = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
    env = {**dict.fromkeys(off, "1"), "ANTHROPIC_BASE_URL": model.address, "ANTHROPIC_API_KEY": "dummy"}
    return _settings("claude-code", {**env, "CLAUDE_CODE_MAX_RETRIES": "1"})


def claude_by_adapter(model: FakeModel, home: Path) -> str:
    command = [str(NODE), str(CLAUDE_ADAPTER)]
    plain = claude_settings(model, home).replace('"claude-code"', '"claude-acp"')
    return plain.replace("probe = []", f"probe = []\ncommand = {json.dumps(command)}")


def codex_by_adapter(model: FakeModel, home: Path) -> str:
    _configure_codex(model, home)
    command = [str(NODE), str(CODEX_ADAPTER)]
    return _settings("codex-acp", _codex_environment(home), f"command = {json.dumps(command)}\n")


def codex_settings(model: FakeModel, home: Path) -> str:
    _configure_codex(model, home)
    # Its own sandbox needs rights that a container may not have; what holds it in is ours.
    command = ["codex", "exec", "--json", "--sandbox", "danger-full-access", "-"]
    return _settings("codex", _codex_environment(home), f"command = {json.dumps(command)}\n")


def _codex_environment(home: Path) -> dict[str, str]:
    return {"CODEX_HOME": str(home / ".codex"), "FAKE_KEY": "dummy"}


def _configure_codex(model: FakeModel, home: Path) -> None:
    folder = home / ".codex"
    folder.mkdir()
    provider = f'name = "fake"\nbase_url = "{model.address}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"'
    (folder / "config.toml").write_text(
        f'model = "gpt-5.5"\nmodel_provider = "fake"\n[model_providers.fake]\n{provider}\nrequest_max_retries = 1\n'
        "stream_max_retries = 1\n[analytics]\nenabled = false\n"
    )


def gemini_settings(model: FakeModel, home: Path, program: str = "gemini") -> str:
    (home / ".gemini").mkdir()
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini/settings.json").write_text(json.dumps(auth))
    # It is a script, which is called by its name.
    (home / "bin/gemini").symlink_to(GEMINI)
    return _settings(program, {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": model.address}, 'model = "gemini-2.5-pro"\n')


def gemini_by_protocol(model: FakeModel, home: Path) -> str:
    return gemini_settings(model, home, "gemini-acp")


def opencode_settings(model: FakeModel, home: Path, program: str = "opencode") -> str:
    models = {"m1": {"name": "m1", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}}
    options = {"baseURL": f"{model.address}/v1", "apiKey": "dummy"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": models}
    own = {"model": "fake/m1", "small_model": "fake/m1", "autoupdate": False, "share": "disabled"}
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".config/opencode/opencode.json").write_text(json.dumps({**own, "provider": {"fake": provider}}))
    (home / ".npmrc").write_text("fetch-retries=0\n")
    off = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return _settings(program, dict.fromkeys(off, "1"))


def opencode_by_protocol(model: FakeModel, home: Path) -> str:
    return opencode_settings(model, home, "opencode-acp")


def _settings(program: str, env: dict[str, str], more: str = "") -> str:
    quiet = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1", **env}
    values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in quiet.items())
    own = f'[agents.real]\nextends = "{program}"\n{more}probe = []\nenv = {{ {values} }}\n[roles]\nworker = ["real"]\n'
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


PROGRAMS = {
    "claude": (CLAUDE, claude_settings, by_write),
    "codex": (CODEX, codex_settings, by_patch),
    "claude-acp": (CLAUDE_ADAPTER, claude_by_adapter, by_write),
    "codex-acp": (CODEX_ADAPTER, codex_by_adapter, by_patch),
    "gemini": (GEMINI, gemini_settings, by_write_file),
    "gemini-acp": (GEMINI, gemini_by_protocol, by_write_file),
    "opencode": (OPENCODE, opencode_settings, by_plain_write),
    "opencode-acp": (OPENCODE, opencode_by_protocol, by_plain_write),
}


# These give up what they were refused twice. Codex's adapter does at once, and the others ask again for minutes.
REFUSED_TWICE = ("claude", "codex", "claude-acp")


def _asked(name: str) -> Any:
    return pytest.param(name, marks=needs(PROGRAMS[name][0]))


@pytest.fixture(params=[_asked(name) for name in PROGRAMS])
def ground(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with _prepared(request.param, tmp_path, monkeypatch) as ground:
        yield ground


@contextmanager
def _prepared(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    program, settings, use = PROGRAMS[name]
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{program.parent}:{home}/bin:/usr/local/bin:/usr/bin:/bin")
    steps = [Step("I write it.", (use("triple.py", TEXT),)), Step("It is written.")]
    slow = [steps[0], Step("It is written.", seconds=6)]
    with FakeModel({"work": steps, "slow": slow}) as model:
        folder = make_checked_repository(tmp_path / "repository")
        settle(folder, settings(model, home))
        yield Ground(folder, model, str(tmp_path / "decklog.db"), use, tries=2 if name in REFUSED_TWICE else 1)


def test_a_piece_lands(ground: Ground) -> None:
    ground.check_landed(ground.work())


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
    site = ground.work()
    with Decklog.open(ground.target) as log:
        assert [gate.reason for gate in log.gates.find(state="closed")] == ["login"]  # type: ignore[arg-type]
        assert log.tasks.get(f"{site.run_id}.triple.w1").failures == 0
    ground.model.troubles.clear()
    ground.check_landed(ground.work())


@pytest.mark.parametrize("ground", [_asked(name) for name in PROGRAMS if name != "opencode-acp"], indirect=True)
def test_a_program_outlives_its_conductor_and_is_adopted(ground: Ground) -> None:
    assert conducted(ground.target, ground.folder, (SLOW,), "spawn:settled") == -signal.SIGKILL
    with Decklog.open(ground.target) as log:
        site = Work(log, ground.folder, SLOW).run()
        assert len(log.effects.find(site.run_id, tool="conductor.spawn")) == 1, "it was not started again"
    ground.check_landed(site)


# While the models of so many programs take their time, conductors are killed so often.
KILLS, PIECES = 5, 6


def _killed_at_work(ground: Ground, pieces: tuple[dict[str, Any], ...], chance: random.Random) -> bool:
    """Kill a conductor while one of its programs waits for its model; say no when there was nothing left to work on."""
    asked, child = len(ground.model.requests), conducting(ground.target, ground.folder, pieces)
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
@pytest.mark.parametrize("ground", [_asked(name) for name in ("claude", "codex")], indirect=True)
def test_programs_whose_conductor_is_killed_while_they_work_land_each_piece_once(ground: Ground, with_supervisors: bool) -> None:
    chance = random.Random(5)
    pieces = []
    for number in range(PIECES):
        name = f"p{number}"
        pieces.append({"name": name, "title": f"Piece {name}", "objective": f"lane={name} go", "paths": [f"{name}.py"]})
        write = ground.use(f"{name}.py", f"value = {number}\n")
        ground.model.script[name] = [Step("I write it.", (write,), seconds=1.0), Step("It is written.", seconds=1.5)]
    with Decklog.open(ground.target) as log:
        site = Work(log, ground.folder, *pieces).site()
    kills = 0
    while kills < KILLS and _killed_at_work(ground, tuple(pieces), chance):
        kills += 1
        if with_supervisors:
            _kill_supervisors(site.folder)
    assert kills == KILLS
    assert conducted(ground.target, ground.folder, tuple(pieces), None, seconds=240) == 0
    with Decklog.open(ground.target) as log:
        site = site_of(log, ground.folder, tuple(pieces))
        assert sorted(landed_titles(site)) == [f"Piece p{number}" for number in range(PIECES)]
        assert [landed(site, f"p{number}.py") for number in range(PIECES)] == [f"value = {number}" for number in range(PIECES)]
        assert {task.failures for task in log.tasks.find(site.run_id, limit=200)} == {0}
        check_whole(log, site, ground.folder)
        _check_charged(log, site, ground, with_supervisors=with_supervisors)


def _check_charged(log: Decklog, site: Site, ground: Ground, *, with_supervisors: bool) -> None:
    """Hold what was charged against what the model gave: all of it, or at least that of the attempts that came to their end."""
    charged = sum(charge.output_tokens for charge in log.ledger.find(site.run_id, limit=200))
    given = sum(one.step.output_tokens for one in ground.model.given)
    if with_supervisors:
        assert PIECES * 2 * Step().output_tokens <= charged <= given
    else:
        assert charged == given
        started = log.effects.find(site.run_id, tool="conductor.spawn", state="done", limit=200)  # type: ignore[arg-type]
        assert len(started) == PIECES, "none was started again"
