"""A word that there is not gets the one that was meant."""

import pytest

from tests.cli.conftest import Program


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tasks", "clam", "r"], "unknown command: tasks clam (did you mean claim?)"),
        (["task", "find"], "unknown command: task (did you mean tasks?)"),
        (["tasks", "view", "t"], "unknown command: tasks view (did you mean show?)"),
        (["tasks", "baord", "r"], "unknown command: tasks baord (did you mean board?)"),
        (["self-edits", "fnid"], "unknown command: self-edits fnid (did you mean find?)"),
        (["tasks", "add", "r", "t", "--tittle", "x"], "Did you mean --title?"),
        (["ledger", "charge", "m", "--run-id", "r"], "Did you mean --run?"),
        (["journal", "append", "r", "x", "--tsk", "t"], "Did you mean --task?"),
        (["runs", "finish", "r", "--status", "complete"], "Did you mean completed?"),
        (["runs", "finish", "r", "--status", "zzz"], "must be one of planning|active|paused|completed|failed|cancelled"),
        (["tasks", "undo", "t"], "decklog journal undo tasks ID"),
        (["zzz"], "See: decklog --help"),
        (["tasks", "zzz"], "Commands: add,"),
    ],
)
def test_a_word_that_there_is_not_gets_the_one_that_was_meant(decklog: Program, words: list[str], told: str) -> None:
    said = decklog(*words)
    assert said.code == 2
    assert told in said.err
    assert decklog(*words, "--json").envelope["error"]["code"] == "usage"
