"""A repository's settings tighten freely, and loosen nothing without a person's consent to exactly that file."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor import settings
from decklog.conductor.agents.description import Description, describe
from decklog.conductor.git.repository import Repository
from decklog.conductor.outages import is_logged_in
from decklog.conductor.settings import RULES, Check, load, loosened
from decklog.core.errors import NotAccepted
from decklog.fixes.context import MendSettings
from decklog.models.composer import PromptSettings
from decklog.models.settings import ModelChoice
from decklog.provenance.settings import ProvenanceSettings
from decklog.review.change import between
from decklog.review.critique import CritiqueSettings, find_critic
from decklog.review.gate import review, run_stage
from decklog.review.settings import Rules
from tests.cli.conftest import Program
from tests.conductor.plans import start_plan
from tests.conductor.repositories import copied, git, make_repository, write

# Enough for a run, and nothing in it loosens anything.
PLAIN = """
[agents.worker]
extends = "claude-code"
[[checks]]
name = "tests"
command = ["true"]
"""
LOOSE = {
    "no sandbox": '[run]\nsandbox = "none"\n',
    "a weaker sandbox": '[run]\nsandbox = "landlock"\n',
    "plans without asking": '[run]\nplan = "auto"\n',
    "work pushed to a remote": '[run]\nremote = "origin"\n',
    "another program": '[agents.mine]\ncommand = ["./agent"]\n',
    "another program in the place of a known one": '[agents.mine]\nextends = "claude-code"\ncommand = ["./agent"]\n',
    "a variable": '[agents.mine]\nextends = "codex"\npass_env = ["AWS_SECRET_ACCESS_KEY"]\n',
    "another address for the key": '[agents.mine]\nextends = "codex"\nenv = {OPENAI_BASE_URL = "http://127.0.0.1"}\n',
    "a probe": '[agents.mine]\nextends = "codex"\nprobe = ["./probe"]\n',
    "files to read": '[agents.mine]\nextends = "codex"\nreadable = ["~/.ssh"]\n',
    "files to write": '[agents.mine]\nextends = "codex"\nwritable = ["~"]\n',
    "the home": '[agents.mine]\nextends = "acp"\nkeeps_home = true\n',
    "the repository's own hooks": '[agents.mine]\nextends = "claude-code"\nuntrusted = []\n',
    "every permission": '[agents.mine]\nextends = "claude-acp"\npermissions = "allow"\n',
    "no spending seen": '[agents.mine]\nextends = "claude-code"\nevents = []\n',
    "a check with the network": '[[checks]]\nname = "a"\ncommand = ["a"]\nnetwork = true\n',
    "a check with a variable": '[[checks]]\nname = "a"\ncommand = ["a"]\npass_env = ["TOKEN"]\n',
    "a check with a preloaded library": '[[checks]]\nname = "a"\ncommand = ["a"]\nenv = {LD_PRELOAD = "./a.so"}\n',
    "a check that reads more": '[[checks]]\nname = "a"\ncommand = ["a"]\nreadable = ["~/.ssh"]\n',
    "a model elsewhere": '[models.m]\nprovider = "openai"\nmodel = "x"\nbase_url = "http://127.0.0.1"\n',
    "a model with any key": '[models.m]\nprovider = "openai"\nmodel = "x"\nkey_env = "GITHUB_TOKEN"\n',
    "fixes that are published": '[mend]\npublish = "pr"\n',
    "large fixes": "[mend]\nlarge = 100000\n",
    "critique": "[critique]\nenabled = true\n",
    "values hidden from redaction": "[redaction]\nallow = ['demo-.*']\n",
    "something new": "[run]\nunheard_of = 1\n",
}
TIGHT = {
    "nothing": "",
    "a sandbox": '[run]\nsandbox = "bubblewrap"\n',
    "fewer variables": '[agents.mine]\nextends = "codex"\npass_env = ["OPENAI_API_KEY"]\n',
    "no network": '[agents.mine]\nextends = "codex"\nnetwork = false\nprobe = []\nkeeps_home = false\n',
    "less to write": '[agents.mine]\nextends = "claude-code"\nwritable = []\n',
    "no permission": '[agents.mine]\nextends = "claude-acp"\npermissions = "deny"\nmodel = "small"\nturns = 3\nminutes = 5\n',
    "money": "[budget]\nrun_usd = 1.0\nitem_usd = 0.5\n[mend]\nlarge = 20\n[critique]\nenabled = false\n",
    "a gate": '[review]\nmodel_passes = [3, 6]\n[protect]\npaths = ["/x"]\n[calls]\nreview.default = "m"\n',
    "a redaction rule": "[[redaction.rule]]\nid = 'acme'\nkeywords = ['acme_']\npattern = '(acme_[a-z]{20})'\n",
}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who has consented to nothing yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person"


def found(folder: Path) -> Repository:
    return Repository.find(folder, folder.parent / "state")


def test_every_setting_is_classified() -> None:
    known = {f"{section}.{name}" for section, names in settings._SECTIONS.items() for name in names}
    tables = {"agents.*": Description, "checks.*": Check, "models.*": ModelChoice, "review": Rules, "mend": MendSettings}
    for section, table in {
        **tables,
        "critique": CritiqueSettings,
        "prompt": PromptSettings,
        "provenance": ProvenanceSettings,
    }.items():
        known |= {f"{section}.{one.name}" for one in fields(table)}
    known = known - {"agents.*.name", "models.*.name"} | {"agents.*.extends", "redaction.rule", "redaction.allow"}
    assert known == set(RULES)


@pytest.mark.parametrize("kind", LOOSE)
def test_a_setting_that_loosens_is_named(kind: str) -> None:
    assert len(loosened(load(LOOSE[kind].encode()))) == 1


@pytest.mark.parametrize("kind", TIGHT)
def test_a_setting_that_tightens_is_free(kind: str) -> None:
    assert loosened(load(TIGHT[kind].encode())) == []


def test_a_run_with_loosening_settings_starts_nothing_without_consent(
    elsewhere: Path, checked: Path, sqlite_target: str, tmp_path: Path
) -> None:
    withdraw(elsewhere)
    content = json.dumps({"goal": "g", "items": [{"name": "a", "title": "a"}]}).encode()
    with Decklog.open(sqlite_target) as log:
        with pytest.raises(NotAccepted, match="sandbox") as refused:
            start_plan(log, content, Repository.find(checked, tmp_path / "state"), say=lambda _: None)
        assert log.runs.find() == []
    commit = git(checked, "rev-parse", "HEAD")
    assert f"decklog accept --settings --commit {commit[:12]}" in str(refused.value.hint)
    assert refused.value.details["settings"] == ["run.sandbox", "agents.fake.command"]


def test_consent_is_for_one_version_of_the_file_in_one_repository(elsewhere: Path, first_checked: Path, tmp_path: Path) -> None:
    folder = Path(copied(first_checked, tmp_path / "one")).resolve()
    other = Path(copied(first_checked, tmp_path / "other")).resolve()
    commit = git(folder, "rev-parse", "HEAD")
    for one in (folder, other):
        withdraw(elsewhere)
        with pytest.raises(NotAccepted):
            settings.read(found(one), commit)
    settings.record_consent(found(folder), settings.consent_request(found(folder), commit))
    assert settings.read(found(folder), commit).sandbox == "none"
    with pytest.raises(NotAccepted):
        settings.read(found(other), commit)
    write(folder, {"decklog.toml": (folder / "decklog.toml").read_text() + "\n# another\n"})
    subprocess.run(["git", "commit", "-q", "-a", "-m", "x"], cwd=folder, check=True)
    with pytest.raises(NotAccepted):
        settings.read(found(folder), git(folder, "rev-parse", "HEAD"))


def test_consents_that_others_could_have_written_do_not_count(elsewhere: Path, checked: Path) -> None:
    commit = git(checked, "rev-parse", "HEAD")
    settings.record_consent(found(checked), settings.consent_request(found(checked), commit))
    assert settings.consent_request(found(checked), commit).is_given
    (elsewhere / ".config/decklog/accepted-settings").chmod(0o666)
    assert not settings.consent_request(found(checked), commit).is_given


def withdraw(home: Path) -> None:
    (home / ".config/decklog/accepted-settings").unlink(missing_ok=True)


def test_a_review_in_a_clone_runs_none_of_its_checks_without_consent(elsewhere: Path, sqlite_target: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    check = f'[run]\nsandbox = "none"\n[review]\n[[checks]]\nname = "a"\ncommand = ["touch", "{canary}"]\n'
    folder = make_repository(tmp_path / "repository", {"decklog.toml": check, "a.py": "a = 1\n"})
    git(folder, "checkout", "-q", "-b", "change")
    write(folder, {"a.py": "a = 2\n"})
    git(folder, "commit", "-q", "-a", "-m", "Change")
    withdraw(elsewhere)
    change = between(found(folder), "main..change")
    with Decklog.open(sqlite_target) as log:
        with pytest.raises(NotAccepted):
            review(log, change)
        with pytest.raises(NotAccepted):
            run_stage(log, change, 1)
        assert log.runs.find() == []
    assert not canary.exists()


def test_critique_asks_no_program_without_consent(elsewhere: Path, sqlite_target: str, tmp_path: Path) -> None:
    settings = '[models.m]\nagent = "j"\n[agents.j]\ncommand = ["true"]\n[calls]\ncritique = "m"\n[critique]\nenabled = true\n'
    folder = make_repository(tmp_path / "repository", {"decklog.toml": settings})
    with Decklog.open(sqlite_target) as log:
        run_id = log.runs.start("g").id
        assert find_critic(log, folder, tmp_path / "state", run_id=run_id) is not None
        withdraw(elsewhere)
        assert find_critic(log, folder, tmp_path / "state", run_id=run_id) is None


def test_a_probe_does_not_see_the_rest_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PERSONS_OWN", "x")
    monkeypatch.setenv("FOR_THE_AGENT", "x")
    seen = 'import os, sys; sys.exit(not ("FOR_THE_AGENT" in os.environ and "A_PERSONS_OWN" not in os.environ))'
    probe = [sys.executable, "-I", "-S", "-c", seen]
    assert is_logged_in(describe("mine", {"command": ["a"], "pass_env": ["FOR_THE_AGENT"], "probe": probe}))


# As a person gives it


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    """A repository that came with loosening settings."""
    folder = make_repository(tmp_path / "repository", {"decklog.toml": '[run]\nsandbox = "none"\n' + PLAIN})
    withdraw(tmp_path / "home")
    return folder


def test_consent_is_not_given_without_a_terminal(decklog: Program, unknown: Path, tmp_path: Path) -> None:
    said = decklog("accept", "--settings", cwd=unknown, stdin="y\n")
    assert (said.code, "takes a person at a terminal" in said.err) == (4, True), said
    assert "run.sandbox = 'none'" in said.err
    assert not (tmp_path / "home/.config/decklog/accepted-settings").exists()


def test_settings_that_loosen_nothing_need_no_consent(decklog: Program, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository", {"decklog.toml": PLAIN})
    withdraw(tmp_path / "home")
    said = decklog("accept", "--settings", "--json", cwd=folder)
    assert (said.code, said.data["loosens"]) == (0, [])
    assert not (tmp_path / "home/.config/decklog/accepted-settings").exists()


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_at_a_terminal_sees_what_is_loosened_and_consents(unknown: Path, tmp_path: Path, answer: str) -> None:
    shown = "".join(on_a_terminal(unknown, tmp_path / "home", answer))
    assert "run.sandbox = 'none': runs agents and checks with less than the strongest sandbox" in shown
    kept = tmp_path / "home/.config/decklog/accepted-settings"
    assert kept.exists() is (answer == "y")


def on_a_terminal(folder: Path, home: Path, answer: str) -> Iterator[str]:
    """Run the command on a terminal, answer its question, and yield what it shows."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "decklog", "accept", "--settings"]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm"}
    with subprocess.Popen(words, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True):
        os.close(theirs)
        os.write(ours, answer.encode() + b"\n")
        while select.select([ours], [], [], 30)[0]:
            try:
                yield os.read(ours, 65536).decode(errors="replace")
            except OSError:
                break
    os.close(ours)
