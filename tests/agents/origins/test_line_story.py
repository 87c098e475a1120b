from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.line_story import explain_line
from decklog.core.errors import Invalid, NotFound
from tests.provenance.sessions import RecordedSession, record_text
from tests.provenance.text_repositories import AUTHOR, TextFolder


@pytest.fixture
def folder(tmp_path: Path) -> TextFolder:
    found = TextFolder(tmp_path / "repo")
    found.commit("First", a="one\ntwo\nthree\n")
    return found


def test_line_of_an_agent_has_prompt_words_call_and_commit(log: Decklog, folder: TextFolder) -> None:
    session = RecordedSession(log, folder, "claude", "s1")
    session.prompt("Count in German")
    session.say("I begin with the second line.")
    session.edit("a", "one\nzwei\nthree\n")
    session.say("Done.")
    session.bash("pytest -q", outcome="failed")
    commit = folder.commit("Translate")
    found = explain_line(folder.repository, log, "a", 2)
    (story,) = found.stories
    assert found.origin.sessions == ("claude:s1",)
    assert (found.line.commit, found.line.text) == (commit, "zwei")
    assert story.prompt is not None
    assert story.prompt.body == "Count in German"
    assert story.said is not None
    assert story.said.body == "I begin with the second line."
    assert story.call is not None
    assert story.call.body == "Edit a"
    assert (story.program, story.model) == ("claude", "opus")
    assert story.test is not None
    assert (story.test.command, story.test.outcome) == ("pytest -q", "failed")
    assert [one.text for one in found.previous] == ["two"]


def test_line_of_a_task_has_review_approval_and_cost(log: Decklog, folder: TextFolder) -> None:
    run = log.runs.start("Translate everything")
    task = log.tasks.add(run.id, "Translate the numbers")
    session = RecordedSession(log, folder, "codex", "s2")
    session.edit("a", "uno\ntwo\nthree\n", task_id=task.id)
    log.reviews.record(run.id, "pass", base="b", head="h", tree="t", patch="p", settings="s", confidence=90, task_id=task.id)
    asked = log.approvals.ask(run.id, "Land it?", by="conductor", task_id=task.id, about="the change")
    log.approvals.decide(asked.id, "granted", by="ana", subject_digest=asked.subject_digest)
    folder.commit("Translate")
    (story,) = explain_line(folder.repository, log, "a", 1).stories
    assert story.task is not None
    assert story.task.title == "Translate the numbers"
    assert [one.verdict.value for one in story.reviews] == ["pass"]
    assert [one.decided_by for one in story.approvals] == ["ana"]


def test_session_without_a_task_has_its_own_cost(log: Decklog, folder: TextFolder) -> None:
    session = RecordedSession(log, folder, "codex", "s2")
    session.edit("a", "uno\ntwo\nthree\n")
    log.ledger.charge("opus", run_id=session.run_id, cost_microdollars=420_000)
    (story,) = explain_line(folder.repository, log, "a", 1).stories
    assert story.cost.microdollars == 420_000


def test_line_of_a_known_person_names_the_person(log: Decklog, folder: TextFolder) -> None:
    record_text(log, folder, "a", "one\n2\nthree\n", kind="person", person="Bo <bo@example.org>")
    folder.commit("By hand")
    found = explain_line(folder.repository, log, "a", 2)
    assert (found.origin.kind, found.origin.person) == ("person", "Bo <bo@example.org>")
    assert [story.prompt for story in found.stories] == [None]


def test_line_without_evidence_is_unknown_and_has_its_commit(log: Decklog, folder: TextFolder) -> None:
    found = explain_line(folder.repository, log, "a", 2)
    data = found.as_dict()
    assert (found.origin.kind, found.stories) == ("unknown", [])
    assert (data["author"], data["summary"]) == (AUTHOR, "First")


def test_line_that_is_not_committed_has_no_commit(log: Decklog, folder: TextFolder) -> None:
    session = RecordedSession(log, folder, "claude", "s1")
    session.edit("a", "one\nzwei\nthree\n")
    found = explain_line(folder.repository, log, "a", 2)
    assert not found.is_committed
    assert found.as_dict()["commit"] is None
    assert found.origin.sessions == ("claude:s1",)
    assert [one.text for one in found.previous] == ["two"]


def test_later_change_by_a_person_is_named(log: Decklog, folder: TextFolder) -> None:
    session = RecordedSession(log, folder, "claude", "s1")
    session.edit("a", "one\nzwei\nthree\n")
    agent = folder.commit("By the agent")
    folder.commit("Other lines", a="one\nzwei\ndrei\n")
    later = folder.commit("By hand", a="one\n2\ndrei\n")
    folder.commit("And more", a="0\n2\ndrei\n")
    found = explain_line(folder.repository, log, "a", 2, rev=agent)
    assert found.origin.sessions == ("claude:s1",)
    assert found.later is not None
    assert (found.later.commit, found.later.author, found.later.subject) == (later, AUTHOR, "By hand")
    assert explain_line(folder.repository, log, "a", 2, rev="HEAD").later is None


def test_previous_version_has_its_own_origin(log: Decklog, folder: TextFolder) -> None:
    session = RecordedSession(log, folder, "claude", "s1")
    session.edit("a", "one\nzwei\nthree\n")
    folder.commit("By the agent")
    folder.commit("By hand", a="one\n2\nthree\n")
    found = explain_line(folder.repository, log, "a", 2)
    assert found.origin.kind == "unknown"
    assert [(one.text, one.origin.sessions) for one in found.previous] == [("zwei", ("claude:s1",))]


def test_edit_whose_session_is_not_in_the_log_yet_is_still_named(log: Decklog, folder: TextFolder) -> None:
    record_text(log, folder, "a", "eins\ntwo\nthree\n", session="claude:s9", run_id="claude-s9", call_id="c1")
    found = explain_line(folder.repository, log, "a", 1)
    (story,) = found.stories
    assert (found.origin.sessions, story.run, story.prompt, story.program) == (("claude:s9",), None, None, "claude")


@pytest.mark.parametrize(("path", "line", "rev"), [("a", 9, None), ("b", 1, None), ("a", 1, "nowhere")])
def test_line_that_is_not_there_is_not_found(log: Decklog, folder: TextFolder, path: str, line: int, rev: str | None) -> None:
    with pytest.raises(NotFound):
        explain_line(folder.repository, log, path, line, rev)


def test_line_zero_is_refused(log: Decklog, folder: TextFolder) -> None:
    with pytest.raises(Invalid):
        explain_line(folder.repository, log, "a", 0)


def test_line_of_a_renamed_file_has_the_name_of_now(log: Decklog, folder: TextFolder) -> None:
    folder.git("mv", "a", "b")
    folder.commit("Rename")
    found = explain_line(folder.repository, log, "b", 1)
    assert (found.path, found.line.path, found.as_dict()["path"]) == ("b", "a", "b")
