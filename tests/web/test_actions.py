"""What a person does from the dashboard: runs, tasks, budgets and questions, each under the owner's signature if it needs one."""

import re
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.web.actions import ACTIONS
from decklog.web.forms import token_of
from decklog.web.sessions import MOST_WRONG
from tests.stores.claiming import claimed
from tests.web.client import PASSWORD, Answer, Browser, logged_in
from tests.web.payloads import PAYLOADS
from tests.web.test_every_column import HIDDEN
from tests.web.test_text_of_agents import shape


def send(browser: Browser, verb: str, subject: str, **form: str) -> Answer:
    return browser.post(f"/act/{verb}/{subject}", {"token": browser.session.form_token(token_of(verb), subject), **form})


@pytest.fixture
def owned(log: Decklog) -> Decklog:
    log.trust.bind("ana", "cli", password=PASSWORD)
    return log


def test_a_run_is_paused_resumed_stopped_and_tried_again_under_signature(owned: Decklog, browser: Browser, run_id: str) -> None:
    task = owned.tasks.add(run_id, "Change the lexer")
    owned.tasks.claim(run_id, worker="dev-1", lease_seconds=600)
    for verb, status in (("pause", "paused"), ("resume", "active"), ("stop", "cancelled"), ("retry", "active")):
        assert send(browser, f"{verb}-run", run_id, reason="wrong branch", proof=PASSWORD).status == 303, verb
        assert owned.runs.get(run_id).status == status
        entry = owned.journal.history("runs", run_id)[-1]
        assert (entry.agent, entry.agent_id) == ("ana", browser.session.name)
        assert any(ref.startswith("proof:") for ref in entry.refs or ())
        expected = {"stop": "paused", "retry": "pending"}.get(verb, "running")
        assert owned.tasks.get(task.id).state == expected, verb
    assert {proof.operation for proof in owned.proofs.find()} == {
        f"web.{verb}-run" for verb in ("pause", "resume", "stop", "retry")
    }
    assert owned.journal.verify().ok


def test_nothing_happens_without_the_owner_s_signature(owned: Decklog, browser: Browser, run_id: str) -> None:
    for form in ({"reason": "x"}, {"reason": "x", "proof": "wrong"}, {"reason": " ", "proof": PASSWORD}):
        assert send(browser, "stop-run", run_id, **form).status in (400, 403)
    assert send(browser, "stop-run", run_id, reason="x", proof=PASSWORD, token="none").status == 403
    assert browser.post(f"/act/stop-run/{run_id}", {"reason": "x", "proof": PASSWORD}).status == 403
    assert send(browser, "resume-run", run_id, proof=PASSWORD).status == 409
    assert send(browser, "fly-run", run_id, proof=PASSWORD).status == 404
    for _ in range(MOST_WRONG):
        send(browser, "stop-run", run_id, reason="x", proof="wrong")
    assert send(browser, "stop-run", run_id, reason="x", proof=PASSWORD).status == 429
    assert owned.runs.get(run_id).status == "active"


def test_a_wrong_password_gives_the_form_again_with_what_was_typed(owned: Decklog, browser: Browser, run_id: str) -> None:
    again = send(browser, "stop-run", run_id, reason="half typed", proof="wrong")
    assert "Wrong password." in again.text
    assert ">half typed</textarea>" in again.text
    assert PASSWORD not in again.text
    assert f"decklog runs finish {run_id} --status cancelled" in again.text


def test_a_form_for_another_state_of_the_run_is_refused(owned: Decklog, browser: Browser, run_id: str) -> None:
    text = browser.get(f"/act/stop-run/{run_id}").text
    assert re.findall('name="state" value="([^"]*)"', text) == ["active"]
    owned.runs.update(run_id, status="paused")
    assert send(browser, "stop-run", run_id, reason="x", proof=PASSWORD, state="active").status == 409
    assert owned.runs.get(run_id).status == "paused"


def test_stop_without_an_owner_is_recorded_under_the_session(log: Decklog, browser: Browser, run_id: str) -> None:
    assert 'name="proof"' not in browser.get(f"/act/stop-run/{run_id}").text
    assert send(browser, "stop-run", run_id, reason="wrong branch").status == 303
    assert log.runs.get(run_id).status == "cancelled"
    entry = log.journal.history("runs", run_id)[-1]
    assert (entry.agent, entry.agent_id) == ("dashboard", browser.session.name)


def test_a_lapsed_lease_is_requeued_and_a_live_one_is_not(
    owned: Decklog, clock: ManualClock, browser: Browser, run_id: str
) -> None:
    task = owned.tasks.add(run_id, "Change the lexer")
    owned.tasks.claim(run_id, worker="dev-1", lease_seconds=60)
    assert "Requeue…" not in browser.get(f"/tasks/{task.id}").text
    assert browser.get(f"/act/requeue-task/{task.id}").status == 409
    clock.advance(seconds=90)
    assert "Requeue…" in browser.get(f"/tasks/{task.id}").text
    assert send(browser, "requeue-task", task.id, reason="dev-1 is gone", proof=PASSWORD).status == 303
    assert (owned.tasks.get(task.id).state, owned.tasks.get(task.id).worker) == ("pending", None)
    again = claimed(owned, run_id, worker="dev-2")
    assert again.task.id == task.id


def test_a_blocked_task_is_tried_again_with_the_reason_as_a_comment(owned: Decklog, browser: Browser, run_id: str) -> None:
    task = owned.tasks.add(run_id, "Change the lexer")
    claim = claimed(owned, run_id, worker="dev-1")
    claim.block("no network")
    assert "no network" in browser.get(f"/act/retry-task/{task.id}").text
    assert send(browser, "retry-task", task.id, reason="the network is back", proof=PASSWORD).status == 303
    assert owned.tasks.get(task.id).state == "pending"
    assert "the network is back" in browser.get(f"/tasks/{task.id}").text


def test_a_budget_is_raised_in_dollars_and_keeps_everything_else(owned: Decklog, browser: Browser, run_id: str) -> None:
    with owned.proving(password=PASSWORD):
        budget = owned.budgets.set("run", scope_id=run_id, period="day", limit_microdollars=5_000_000, warn_percent=60)
    assert "now 5.00" in browser.get(f"/act/raise-budget/{budget.id}").text
    assert f'href="/act/raise-budget/{budget.id}"' in browser.get("/spend").text
    for wrong in ("", "five", "-1", "0", "1e400", "nan"):
        assert send(browser, "raise-budget", budget.id, limit=wrong, proof=PASSWORD).status == 400, wrong
    assert send(browser, "raise-budget", budget.id, limit="12.50", proof="wrong").status == 403
    assert send(browser, "raise-budget", budget.id, limit="$12.50", proof=PASSWORD).status == 303
    (raised,) = owned.budgets.find()
    assert (raised.ceiling, raised.period, raised.warn_percent, raised.scope_id) == (12_500_000, "day", 60, run_id)


def test_a_run_without_a_budget_gets_one(owned: Decklog, browser: Browser, run_id: str) -> None:
    assert f'href="/act/set-budget/{run_id}"' in browser.get(f"/runs/{run_id}/spend").text
    assert send(browser, "set-budget", run_id, limit="0.25", proof=PASSWORD).status == 303
    assert [(one.scope, one.ceiling) for one in owned.budgets.find()] == [("run", 250_000)]


def test_a_question_is_answered_and_a_message_sent_without_a_signature(owned: Decklog, browser: Browser, run_id: str) -> None:
    question = owned.inbox.post("dev-1", "Which branch?", severity="question", run_id=run_id)
    assert "Answer…" in browser.get(f"/inbox/question/{question.id}").text
    assert send(browser, "answer-question", question.id, text="main").status == 303
    answered = owned.inbox.get(question.id)
    assert (answered.answer, answered.answered_by) == ("main", "ana")
    assert browser.get(f"/act/answer-question/{question.id}").status == 409
    task = owned.tasks.add(run_id, "Change the lexer")
    assert send(browser, "message-run", run_id, text="Stop at noon.").status == 303
    assert send(browser, "message-task", task.id, text="Use a set.").status == 303
    assert {(one.body, one.task_id) for one in owned.inbox.find(state="pending")} == {
        ("Stop at noon.", None),
        ("Use a set.", task.id),
    }


def test_a_run_s_page_offers_what_fits_its_state(owned: Decklog, browser: Browser, run_id: str) -> None:
    def offered() -> set[str]:
        return set(re.findall(r'href="/act/([a-z]+)-run/', browser.get(f"/runs/{run_id}/overview").text))

    assert offered() == {"pause", "stop", "message"}
    owned.runs.update(run_id, status="paused")
    assert offered() == {"resume", "stop", "message"}
    # A question that is open does not hide that the run is paused.
    owned.approvals.ask(run_id, "May I?", by="dev-1", about="git push")
    assert offered() == {"resume", "stop", "message"}
    owned.runs.finish(run_id, status="failed")
    assert offered() == {"retry"}
    assert "/act/" not in browser.get(f"/runs/{run_id}/overview?at=1").text


def test_read_only_log_offers_no_action(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        run_id = log.runs.start("x").id
        task_id = log.tasks.add(run_id, "Change the lexer").id
    with Decklog.open(tmp_path / "log.db", read_only=True) as log, logged_in(log) as browser:
        for place in (f"/runs/{run_id}/overview", f"/runs/{run_id}/spend", f"/tasks/{task_id}", "/spend"):
            assert "/act/" not in browser.get(place).text
        assert "<form class" not in browser.get(f"/act/stop-run/{run_id}").text
        for verb in ACTIONS:
            assert send(browser, verb, run_id).status == 405


@pytest.mark.slow
def test_what_agents_wrote_is_text_in_every_form(log: Decklog, clock: ManualClock, browser: Browser) -> None:
    known: set[tuple[str, str]] = set()
    for text in ("plain words", *(text for text in PAYLOADS if text.isprintable())):
        run = log.runs.start(text)
        task = log.tasks.add(run.id, text)
        blocked = log.tasks.add(run.id, text)
        claim = claimed(log, run.id, worker=text, task_id=blocked.id)
        claim.block(text)
        log.tasks.claim(run.id, worker=text, task_id=task.id, lease_seconds=60)
        clock.advance(seconds=90)
        question = log.inbox.post("dev", text, severity="question")
        budget = log.budgets.set("agent", scope_id=text, limit_microdollars=1)
        forms = {"stop-run": run.id, "message-run": run.id, "set-budget": run.id, "requeue-task": task.id}
        forms |= {"retry-task": blocked.id, "answer-question": question.id, "raise-budget": budget.id}
        for verb, subject in forms.items():
            answer = browser.get(f"/act/{verb}/{subject}")
            assert answer.status == 200, (verb, answer.text)
            known = known | shape(answer.text) if text == "plain words" else known
            assert shape(answer.text) <= known, (verb, text)
            assert not HIDDEN.search(answer.text)


def test_stalled_run_in_the_inbox_leads_to_its_page(owned: Decklog, clock: ManualClock, browser: Browser, run_id: str) -> None:
    owned.tasks.add(run_id, "Port it")
    owned.tasks.claim(run_id, worker="dev-1", lease_seconds=60)
    clock.advance(minutes=5)
    assert f'href="/runs/{run_id}/overview">Open the run</a>' in browser.get(f"/inbox/stalled/{run_id}").text


@pytest.mark.parametrize("verb", ACTIONS)
def test_no_action_is_taken_for_a_form_of_another_one(owned: Decklog, browser: Browser, run_id: str, verb: str) -> None:
    """The token of a form is for one action and one subject."""
    before = owned.journal.verify().entries
    others = (token_of("logout"), next(token_of(other) for other in ACTIONS if token_of(other) != token_of(verb)))
    tokens = [browser.session.form_token(other, run_id) for other in others]
    for token in (*tokens, browser.session.form_token(token_of(verb), "another"), ""):
        form = {"token": token, "reason": "x", "text": "x", "limit": "5", "proof": PASSWORD}
        assert browser.post(f"/act/{verb}/{run_id}", form).status == 403
    assert owned.journal.verify().entries == before


def _subjects(log: Decklog, clock: ManualClock, run_id: str) -> dict[str, str]:
    """Bring a log into a state in which every action is possible; return the subject of each by verb."""
    tags = {"role": "work", "tags": ["item:lexer"]}
    for name, more in (("lost", {}), ("stuck", {}), ("w1", tags), ("w2", tags), ("w3", tags)):
        log.tasks.add(run_id, name, task_id=name, **more)
    log.tasks.add(run_id, "Land: lexer", task_id="land", role="land", tags=["item:lexer"])
    log.tasks.claim(run_id, worker="dev-1", task_id="lost", lease_seconds=60)
    for name in ("stuck", "w1"):
        claim = claimed(log, run_id, worker="dev-2", task_id=name)
        claim.block("no network")
    log.tasks.pause("w2", reason="later")
    clock.advance(minutes=5)
    paused, failed = log.runs.start("Wait"), log.runs.start("Fail")
    log.runs.update(paused.id, status="paused")
    log.runs.finish(failed.id, status="failed")
    budget = log.budgets.set("run", scope_id=run_id, limit_microdollars=1)
    items = dict.fromkeys(("pause-item", "resume-item", "retry-item", "stop-item"), f"{run_id}.lexer")
    runs = dict.fromkeys(("pause-run", "stop-run", "set-budget"), run_id) | {"resume-run": paused.id, "retry-run": failed.id}
    return runs | items | {"requeue-task": "lost", "retry-task": "stuck", "raise-budget": budget.id}


# Messages, comments and answers need no signature. Landing needs a repository: tests/web/test_work_items.py.
_UNSIGNED = {"message-run", "message-task", "message-item", "comment-item", "answer-question"}


@pytest.mark.slow
def test_every_action_that_changes_something_needs_the_owner_s_signature(
    log: Decklog, clock: ManualClock, browser: Browser, run_id: str
) -> None:
    subjects = _subjects(log, clock, run_id)
    log.trust.bind("ana", "cli", password=PASSWORD)
    assert subjects.keys() | _UNSIGNED | {"land-run"} == ACTIONS.keys()
    before = log.journal.verify().entries
    for verb, subject in subjects.items():
        assert 'name="proof"' in browser.get(f"/act/{verb}/{subject}").text, verb
        for proof in ({}, {"proof": ""}, {"proof": "wrong"}):
            browser.site.sessions.proofs.forget_wrong()
            answer = send(browser, verb, subject, reason="x", text="x", limit="5", **proof)
            assert answer.status in (400, 403), (verb, answer.status)
    assert log.journal.verify().entries == before


def test_stalled_run_can_be_requeued_from_its_pages(owned: Decklog, clock: ManualClock, browser: Browser, run_id: str) -> None:
    task = owned.tasks.add(run_id, "Port it")
    owned.tasks.claim(run_id, worker="dev-1", lease_seconds=60)
    requeue = f'href="/act/requeue-task/{task.id}"'
    assert requeue not in browser.get(f"/runs/{run_id}/overview").text
    clock.advance(minutes=5)
    for place in (f"/runs/{run_id}/overview", f"/inbox/stalled/{run_id}"):
        assert requeue in browser.get(place).text, place
    overview = browser.get(f"/runs/{run_id}/overview").text
    assert re.search(r"<b>Stalled</b> for\s+<time", overview)
    assert send(browser, "requeue-task", task.id, reason="dev-1 is gone", proof=PASSWORD).status == 303
    assert requeue not in browser.get(f"/runs/{run_id}/overview").text


def test_a_blocked_task_is_tried_again_from_the_inbox(owned: Decklog, browser: Browser, run_id: str) -> None:
    task = owned.tasks.add(run_id, "Port it")
    claim = claimed(owned, run_id, worker="dev-1")
    claim.block("no network")
    assert f'href="/act/retry-task/{task.id}">Retry…' in browser.get(f"/inbox/blocked/{task.id}").text


def test_a_stalled_stage_of_a_work_item_is_requeued_from_its_page(
    owned: Decklog, clock: ManualClock, browser: Browser, run_id: str
) -> None:
    for name, role in (("work", "work"), ("landing", "land")):
        owned.tasks.add(run_id, f"{name} it", task_id=name, role=role, tags=["item:lexer"])
    owned.tasks.claim(run_id, worker="dev-1", task_id="work", lease_seconds=60)
    page = f"/runs/{run_id}/items/lexer"
    assert "requeue-task" not in browser.get(page).text
    clock.advance(minutes=5)
    text = browser.get(page).text
    assert 'href="/act/requeue-task/work"' in text
    assert len(re.findall(r"stalled</span>", text)) == 2, "the item and its stage"
