import shlex
from pathlib import Path

import pytest

from decklog.cli import run
from decklog.cli.call import SHORTCUTS
from decklog.cli.groups import EXAMPLES
from decklog.cli.main import COMMANDS, menu
from decklog.log import STORES, store_class
from tests.cli.conftest import Program


def first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_menu_says_of_a_command_what_its_help_says(name: str) -> None:
    assert first_line(menu.get_command(None, name).help) == COMMANDS[name][1]  # type: ignore[arg-type,union-attr]


@pytest.mark.parametrize("name", STORES)
def test_the_menu_says_of_a_store_what_the_store_says(name: str) -> None:
    assert first_line(store_class(name).__doc__) == STORES[name]


@pytest.mark.slow
def test_the_first_screen_of_the_help_has_six_groups_of_existing_commands(decklog: Program) -> None:
    page = decklog("--help")
    assert page.out == decklog("help").out
    groups = [line for line in page.out.splitlines()[1:] if line.isalpha()]
    assert groups == ["Start", "Record", "See", "Work", "Control", "Check"]
    assert len(page.out.splitlines()) <= 35
    lines = [line.split()[1:] for line in page.out.splitlines() if line.startswith("  decklog ")]
    assert {"start", "setup", "import", "now", "cost", "serve", "run", "next", "budgets", "verify"} <= {one[0] for one in lines}
    for words in lines:
        named = [word for word in words[:2] if word.islower() and word.isalpha()]
        assert decklog(*named, "--help").code == 0, words
    everything = decklog("help", "all").out
    assert all(f"  {name} " in everything for name in COMMANDS)
    assert decklog("help", "tasks", "claim").out == decklog("tasks", "claim", "--help").out


def test_no_page_of_help_that_people_begin_with_is_wider_than_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["help", "all"], *([name, "--help"] for name in (*SHORTCUTS, *COMMANDS, "tasks") if name != "bazinga")):
        run(words)
        lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  $ ")]
        assert max(map(len, lines)) <= 80, words


def test_no_list_of_commands_cuts_a_summary_off(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("export", "import", "notify", "report", "setup", "tools"):
        run([name, "--help"])
        assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.slow
def test_help_begins_with_examples(decklog: Program) -> None:
    lines = decklog("next", "--help").out.splitlines()
    assert lines[2:4] == ["  $ decklog next", "  $ decklog next --wait 600 --role tester"]
    assert "$ decklog export html commas" in decklog("export", "html", "--help").out


# What comes before an example so that it has something to do, and examples that need what a test has not.
BEFORE = {"fail": ["next"], "block": ["next"], "restore": ["backup", "copy.db", "--overwrite"]}
ELSEWHERE = ("critical", "top", "demo", "watch")
NOT_HERE = ("postgresql", "archive", "--wait")


@pytest.mark.slow
def test_every_example_can_be_typed_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "project").mkdir()
    monkeypatch.chdir(folder)
    for name, value in {"HOME": str(tmp_path), "DECKLOG_WORKER": "dev-1", "DECKLOG_RUN_ID": "commas"}.items():
        monkeypatch.setenv(name, value)
    for path, lines in EXAMPLES.items():
        assert run(BEFORE[path]) == 0 if path in BEFORE else True
        for line in lines:
            words = shlex.split(line.partition(">")[0])
            if path in ELSEWHERE or any(part in line for part in NOT_HERE):
                continue
            if words[0] == "decklog":
                assert run(words[1:]) in (0, 7), line
