"""Moving a task on the web: with a reason and the owner's proof, which its entry carries; and not otherwise."""

import pytest

from decklog import Decklog
from decklog.web.pages.tasks import FORM
from decklog.web.sessions import MOST_WRONG
from tests.web.client import PASSWORD, Browser


@pytest.fixture
def task_id(log: Decklog, run_id: str) -> str:
    log.trust.bind("ana", "cli", password=PASSWORD)
    return log.tasks.add(run_id, "Change the lexer").id


def send(browser: Browser, task_id: str, verb: str, **more: str) -> int:
    form = {"token": browser.session.form_token(FORM, task_id), "verb": verb, "reason": "the owners are away", "proof": PASSWORD}
    return browser.post(f"/tasks/{task_id}/change", form | more).status


def test_a_task_is_moved_by_the_owner_and_its_entry_proves_it(log: Decklog, browser: Browser, task_id: str) -> None:
    for verb, state in (("pause", "paused"), ("resume", "pending"), ("priority", "pending"), ("abandon", "abandoned")):
        assert send(browser, task_id, verb, priority="77") == 303
        task = log.tasks.get(task_id)
        assert task.state.value == state
        entry = log.journal.history("tasks", task_id)[-1]
        assert (entry.agent, entry.agent_id) == ("ana", browser.session.name)
        assert any(ref.startswith("proof:") for ref in entry.refs or ())
    assert {proof.operation for proof in log.proofs.find()} == {
        f"tasks.{verb}" for verb in ("pause", "resume", "priority", "abandon")
    }
    assert log.tasks.get(task_id).priority == 77
    assert log.journal.verify().ok


def test_without_the_owner_s_proof_nothing_is_moved(log: Decklog, browser: Browser, task_id: str) -> None:
    before = log.tasks.get(task_id)
    assert send(browser, task_id, "pause", proof="") == 400
    assert send(browser, task_id, "pause", proof="wrong") == 403
    assert send(browser, task_id, "pause", reason=" ") == 400
    assert send(browser, task_id, "finish") == 400
    assert send(browser, task_id, "priority", priority="high") == 400
    assert send(browser, task_id, "resume") in (303, 409)
    assert send(browser, task_id, "pause", token=browser.session.form_token(FORM, "another")) == 403
    assert send(browser, task_id, "pause", token=browser.session.form_token("approvals.decide", task_id)) == 403
    for _ in range(MOST_WRONG):
        send(browser, task_id, "pause", proof="wrong")
    assert send(browser, task_id, "pause") == 429
    assert log.tasks.get(task_id).state == before.state


def test_form_fits_the_state_and_keeps_typed_text(log: Decklog, browser: Browser, task_id: str) -> None:
    assert 'value="pause"' in browser.get(f"/tasks/{task_id}/change").text
    form = {"token": browser.session.form_token(FORM, task_id), "verb": "abandon", "reason": "a half typed", "proof": "wrong"}
    again = browser.post(f"/tasks/{task_id}/change", form).text
    assert "a half typed" in again
    assert 'value="abandon" required checked' in again
    log.tasks.abandon(task_id, reason="x")
    assert "The task has ended" in browser.get(f"/tasks/{task_id}/change").text


def test_task_change_without_an_owner_is_recorded_under_the_session(log: Decklog, browser: Browser, run_id: str) -> None:
    task_id = log.tasks.add(run_id, "Change the lexer").id
    assert 'name="proof"' not in browser.get(f"/tasks/{task_id}/change").text
    assert send(browser, task_id, "pause") == 303
    assert log.tasks.get(task_id).state.value == "paused"
    entry = log.journal.history("tasks", task_id)[-1]
    assert (entry.agent, entry.agent_id) == ("dashboard", browser.session.name)
