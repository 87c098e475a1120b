"""One redactor everywhere: a repository's rules, and what its user consented to, hold for every way into a log."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.spool import Spool
from decklog.conductor.git.changes import DiffLine
from decklog.models.composer import Composer, PromptSettings
from decklog.plugins.importers.beads import BeadsImport
from decklog.plugins.legacy.bazinga import scan_and_redact
from decklog.redaction import default_redactor
from decklog.review.deterministic import find_line_secrets
from tests.conductor.repositories import consent, make_repository
from tests.programs import call
from tests.waiting import wait_until

_TOKEN = "acme_" + "a1b2c3d4e5" * 2
_ALLOWED = "password=tulip-" + "Harbour-41x"
_SETTINGS = """
[[redaction.rule]]
id = "acme-token"
keywords = ["acme_"]
pattern = '(acme_[a-z0-9]{20})'

[redaction]
allow = ["tulip-[A-Za-z0-9-]+"]
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with redaction settings that nobody has consented to."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = make_repository(tmp_path / "repository", {"decklog.toml": _SETTINGS})
    (tmp_path / "home/.config/decklog/accepted-settings").unlink()
    monkeypatch.chdir(folder)
    default_redactor.cache_clear()
    yield folder
    default_redactor.cache_clear()


def by_the_journal(text: str, folder: Path) -> str:
    with Decklog.open(folder.parent / "log.db") as log:
        return log.runs.start(text).goal


def by_json(text: str, folder: Path) -> str:
    with Decklog.open(folder.parent / "log.db") as log:
        run = log.runs.start("a goal")
        return json.dumps(log.tasks.add(run.id, "a task", inputs={"note": text}).inputs)


def by_an_import(text: str, folder: Path) -> str:
    issue = {"id": "a-1", "title": text, "status": "open", "priority": 1, "issue_type": "task"}
    (folder.parent / "issues.jsonl").write_text(json.dumps(issue) + "\n", encoding="utf-8")
    with Decklog.open(folder.parent / "log.db") as log:
        BeadsImport(log, str(folder.parent / "issues.jsonl"), run_id="beads").run()
        return log.tasks.find("beads")[0].title


def by_a_hook(text: str, folder: Path) -> str:
    assert call(["init"], cwd=folder, variables=_new_process(folder)).code == 0
    event = {"session_id": "s1", "cwd": str(folder), "hook_event_name": "UserPromptSubmit", "prompt": text}
    assert call(["hook", "claude"], cwd=folder, variables=_new_process(folder), stdin=json.dumps(event).encode()).code == 0
    with Decklog.open(folder / ".decklog" / "decklog.db") as log:
        wait_until(lambda: Spool(str(folder / ".decklog" / "decklog.db-spool")).is_empty)
        return " ".join(entry.body or "" for entry in log.journal.find("claude-s1", limit=1000))


def by_the_command(text: str, folder: Path) -> str:
    return call(["redact"], cwd=folder, variables=_new_process(folder), stdin=text.encode()).out.decode()


def _new_process(folder: Path) -> dict[str, str]:
    # A forked one would have the redactor of the process that it was forked from; a variable of Python's has one started anew.
    return {"HOME": str(folder.parent / "home"), "PYTHONUTF8": "1"}


def by_bazinga(text: str, _folder: Path) -> str:
    return scan_and_redact(text)[0]


def by_a_prompt(text: str, _folder: Path) -> str:
    return str(Composer(PromptSettings(), lambda _path: None).compose("review.3", task=text))


_WAYS = [by_the_journal, by_json, by_an_import, by_a_hook, by_the_command, by_bazinga, by_a_prompt]


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.__name__)
def test_settings_of_a_repository_hold_on_every_way(way: Callable[[str, Path], str], repository: Path) -> None:
    text = f"{_TOKEN} and {_ALLOWED}"
    output = way(text, repository)
    assert _TOKEN not in output
    assert _ALLOWED not in output
    assert "[redacted:acme-token]" in output


@pytest.mark.slow
@pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.__name__)
def test_an_allow_list_that_a_person_consented_to_holds_on_every_way(way: Callable[[str, Path], str], repository: Path) -> None:
    consent(repository)
    output = way(f"{_TOKEN} and {_ALLOWED}", repository)
    assert _TOKEN not in output
    assert _ALLOWED in output


def test_a_review_goes_by_the_consented_allow_list(repository: Path) -> None:
    def found(text: str) -> list[str]:
        return [one.text for one in find_line_secrets("a.txt", [DiffLine("a.txt", "+", 1, text)], is_test=False)]

    assert found(_TOKEN) == ["a secret: acme-token"]
    assert found(_ALLOWED)
    consent(repository)
    default_redactor.cache_clear()
    assert found(_ALLOWED) == []
