"""A repository with a log, in which an agent, a person and somebody unknown wrote lines."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.provenance.sessions import RecordedSession, record_text
from tests.provenance.text_repositories import TextFolder


@pytest.fixture
def folder(log_folder: Path) -> TextFolder:
    """Make the repository in the folder in which the program runs."""
    found = TextFolder(log_folder)
    (log_folder / ".git" / "info" / "exclude").write_text(".decklog\nhome\ndata\n")
    found.commit("First", a="one\ntwo\nthree\n")
    with Decklog.open(log_folder / ".decklog" / "decklog.db") as log:
        session = RecordedSession(log, found, "claude", "s1")
        log.ledger.charge("opus", run_id=session.run_id, cost_microdollars=420_000)
        session.prompt("Count in German")
        session.say("I begin with the second line.")
        session.edit("a", "one\nzwei\nthree\n")
        session.bash("pytest -q")
        found.commit("By the agent")
        record_text(log, found, "a", "one\nzwei\n3\n", kind="person", person="Bo <bo@example.org>")
        found.commit("By Bo")
    found.commit("By somebody", a="1\nzwei\n3\n")
    return found
