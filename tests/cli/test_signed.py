"""The owner sees what a command signs, and a file that is not there is not taken for a text."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import Program
from tests.cli.screens import Terminal
from tests.waiting import wait_until

PASSWORD = "correct " + "horse battery"


@pytest.mark.slow
def test_decide_on_a_terminal_shows_what_is_signed_before_it_asks_for_the_password(target: str, tmp_path: Path) -> None:
    with Decklog.open(target) as log:
        log.runs.start("Teach the parser", run_id="run_1")
        log.trust.bind("ana", "cli", password=PASSWORD)
        asked = log.approvals.ask("run_1", "Push feature/commas?", by="dev-1", about="git push origin feature/commas").id
    words = ("approvals", "decide", asked, "granted", "--by", "ana", "--uses", "2", "--db", target)
    with Terminal(*words, cwd=tmp_path, columns=120) as terminal:
        wait_until(lambda: terminal.shows("Password of ana"))
        assert terminal.shows("Push feature/commas?", "git push origin feature/commas", "digest matches")
        assert terminal.shows("You sign: approvals.decide", "verdict=granted", "uses=2")
        terminal.press(f"{PASSWORD}\n")
        terminal.process.wait(20)
    with Decklog.open(target) as log:
        assert log.approvals.get(asked).is_proven


@pytest.mark.slow
def test_other_owner_only_verbs_show_what_is_signed_too(target: str, tmp_path: Path) -> None:
    with Decklog.open(target) as log:
        log.runs.start("Teach the parser", run_id="run_1")
        effect = log.effects.intend("run_1", "push", "git", key="k", actor="one", arguments={"command": "git push"})
        log.effects.doubt(effect.id, actor="one", note="the machine went away")
        log.trust.bind("ana", "cli", password=PASSWORD)
    for words, shown in (
        (("effects", "reconcile", effect.id, "yes", "--by", "ana"), ("git push", "You sign: effects.reconcile")),
        (("budgets", "set", "all", "--limit-tokens", "77"), ("You sign: budgets.set scope=all", "limit_tokens=77")),
    ):
        with Terminal(*words, "--db", target, cwd=tmp_path, columns=120) as terminal:
            wait_until(lambda terminal=terminal: terminal.shows("Password of ana"))  # type: ignore[misc]
            assert terminal.shows(*shown)


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["@nowhere.patch", "@", "@a folder/that is not there"])
def test_about_a_file_that_is_not_there_is_a_wrong_call(decklog: Program, tmp_path: Path, missing: str) -> None:
    place = ("--db", str(tmp_path / "log.db"))
    with Decklog.open(place[1]) as log:
        log.runs.start("Build", run_id="run_1")
    asked = decklog("approvals", "ask", "run_1", "Merge?", "--by", "dev", "--about", missing, *place)
    assert asked.code == 2
    assert "can't be read" in asked.err
    assert decklog("approvals", "find", "--json", *place).data == []
