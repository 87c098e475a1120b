"""Deciding on the web: exactly what was read, with a reason, and only with the owner's signature."""

import re
from pathlib import Path

import pytest

from decklog import Approval, Decklog, ManualClock
from decklog.log import STORES, store_class
from decklog.records.operations import operations_of
from decklog.web.application import application
from decklog.web.pages.inbox import VERBS
from decklog.web.sessions import MOST_WRONG, PAUSE_SECONDS
from tests.conftest import on_both
from tests.web.client import PASSWORD, Browser, logged_in, make_browser
from tests.web.test_admission import SENT
from tests.web.test_pages import Read

THING = "git push origin feature/commas"


@pytest.fixture
def approval(log: Decklog, run_id: str) -> Approval:
    log.trust.bind("ana", "cli", password=PASSWORD)
    return log.approvals.ask(run_id, "Push it?", by="dev-1", about=THING)


def form(browser: Browser, approval: Approval, verdict: str = "granted", **more: str) -> dict[str, str]:
    token = browser.session.form_token("approvals.decide", approval.id)
    fields = {"token": token, "digest": approval.subject_digest or "", "verdict": verdict, "reason": "", "proof": PASSWORD}
    return fields | more


def url(approval: Approval) -> str:
    return f"/inbox/approval/{approval.id}/decide"


def state(log: Decklog, approval: Approval) -> str:
    return log.approvals.get(approval.id).state.value


@pytest.mark.parametrize(("verdict", "label"), [("denied", "Deny"), ("granted", "Approve exactly this, once")])
def test_decision_form_submits_only_its_intent(browser: Browser, approval: Approval, verdict: str, label: str) -> None:
    text = browser.get(f"/inbox/approval/{approval.id}?verdict={verdict}").text
    answer = text[text.index('<form class="answer"') :].partition("</form>")[0]
    assert re.findall(r"<button[^>]*>([^<]*)</button>", answer) == [label]
    assert re.findall(r'name="verdict" value="(\w+)"', answer) == [verdict]


def test_decision_form_without_intent_has_one_button_and_no_default(browser: Browser, approval: Approval) -> None:
    text = browser.get(f"/inbox/approval/{approval.id}").text
    answer = text[text.index('<form class="answer"') :].partition("</form>")[0]
    assert len(re.findall("<button", answer)) == 1
    assert re.findall(r'type="radio" name="verdict" value="(\w+)" required>', answer) == ["granted", "denied"]
    assert "checked" not in answer


def test_side_effect_form_submits_only_its_intent(log: Decklog, browser: Browser, run_id: str) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    effect = log.effects.intend(run_id, "deploy", "run", key="k", actor="p1", arguments={"command": "./deploy"})
    log.effects.doubt(effect.id, actor="p1", note="its process died")
    text = browser.get(f"/inbox/effect/{effect.id}?verdict=no").text
    answer = text[text.index('<form class="answer"') :].partition("</form>")[0]
    assert re.findall(r'name="verdict" value="(\w+)"', answer) == ["no"]
    assert len(re.findall("<button", answer)) == 1


@on_both
def test_the_owner_approves_exactly_what_the_page_showed(log: Decklog, browser: Browser, approval: Approval) -> None:
    page = Read(browser.get(f"/inbox/approval/{approval.id}").text)
    assert THING in page.text
    assert "The digest matches" in page.text
    answer = browser.post(url(approval), form(browser, approval, reason="It only adds"))
    assert (answer.status, answer.headers["location"]) == (303, f"/inbox/approval/{approval.id}")
    decided = log.approvals.get(approval.id)
    assert (decided.state.value, decided.decided_by, decided.rationale, decided.is_proven) == (
        "granted",
        "ana",
        "It only adds",
        True,
    )
    assert log.approvals.granted_for(approval.run_id, approval.subject_digest or "") is not None
    entry = log.journal.history("approvals", approval.id)[-1]
    assert (entry.agent, entry.agent_id) == ("ana", browser.session.name)
    assert log.journal.verify().ok
    after = Read(browser.get(f"/inbox/approval/{approval.id}").text)
    assert ", signed" in after.text
    assert ("form", "class", "answer") not in after.attributes


@on_both
def test_a_form_that_is_sent_twice_decides_once(log: Decklog, browser: Browser, approval: Approval) -> None:
    fields = form(browser, approval)
    assert [browser.post(url(approval), fields).status for _ in range(2)] == [303, 303]
    assert len(log.journal.history("approvals", approval.id)) == 2


def test_denial_needs_a_reason(log: Decklog, browser: Browser, approval: Approval) -> None:
    answer = browser.post(url(approval), form(browser, approval, "denied"))
    assert answer.status == 400
    assert state(log, approval) == "open"
    assert browser.post(url(approval), form(browser, approval, "denied", reason="Not on a Friday")).status == 303
    assert (state(log, approval), log.approvals.get(approval.id).rationale) == ("denied", "Not on a Friday")


def test_a_wrong_password_decides_nothing_and_keeps_the_reason(log: Decklog, browser: Browser, approval: Approval) -> None:
    answer = browser.post(url(approval), form(browser, approval, proof="wrong", reason="It <b>only</b> adds"))
    assert answer.status == 403
    assert "It &lt;b&gt;only&lt;/b&gt; adds" in answer.text
    assert PASSWORD not in answer.text
    assert state(log, approval) == "open"


@pytest.mark.parametrize("missing", ["token", "digest", "verdict", "proof"])
def test_a_form_without_one_of_its_parts_decides_nothing(
    log: Decklog, browser: Browser, approval: Approval, missing: str
) -> None:
    fields = form(browser, approval)
    del fields[missing]
    assert browser.post(url(approval), fields).status in (400, 403, 409)
    assert state(log, approval) == "open"


def test_token_of_another_record_verb_or_session_is_refused(log: Decklog, browser: Browser, approval: Approval) -> None:
    other = log.approvals.ask(approval.run_id, "And this?", by="dev-1", about="another")
    foreign = browser.site.sessions.log_in(browser.site.sessions.new_link())
    assert foreign is not None
    tokens = (
        browser.session.form_token("approvals.decide", other.id),
        browser.session.form_token("effects.reconcile", approval.id),
        foreign.form_token("approvals.decide", approval.id),
    )
    for token in tokens:
        assert browser.post(url(approval), form(browser, approval, token=token)).status == 403
    assert state(log, approval) == "open"


def test_a_page_of_another_origin_decides_nothing(log: Decklog, browser: Browser, approval: Approval) -> None:
    for headers in ({"sec_fetch_site": "same-site"}, {"sec_fetch_site": "cross-site"}, {"origin": "http://127.0.0.1:9999"}):
        assert browser.post(url(approval), form(browser, approval), **headers).status == 403
    assert state(log, approval) == "open"


def test_after_five_wrong_proofs_none_is_taken_for_a_minute(log: Decklog, browser: Browser, approval: Approval) -> None:
    for _ in range(MOST_WRONG):
        assert browser.post(url(approval), form(browser, approval, proof="wrong")).status == 403
    assert browser.post(url(approval), form(browser, approval)).status == 429
    assert state(log, approval) == "open"
    browser.seconds.now += PAUSE_SECONDS
    assert browser.post(url(approval), form(browser, approval)).status == 303


def test_changed_request_is_not_decided(log: Decklog, browser: Browser, approval: Approval) -> None:
    answer = browser.post(url(approval), form(browser, approval, digest="0" * 64, reason="typed for long"))
    assert answer.status == 409
    assert "typed for long" in answer.text
    assert state(log, approval) == "open"


def test_decision_made_meanwhile_is_shown(log: Decklog, browser: Browser, approval: Approval) -> None:
    fields = form(browser, approval, reason="typed for long")
    with log.proving(password=PASSWORD):
        log.approvals.decide(approval.id, "denied", by="ana", rationale="no")
    answer = browser.post(url(approval), fields)
    assert answer.status == 409
    assert "denied by ana" in Read(answer.text).text


def test_expired_request_has_no_form(log: Decklog, clock: ManualClock, browser: Browser, approval: Approval) -> None:
    late = log.approvals.ask(
        approval.run_id,
        "Quick?",
        by="dev-1",
        about="x",
        expires_in_seconds=300,
        default_verdict="denied",
    )
    assert "counts as denied" in Read(browser.get(f"/inbox/approval/{late.id}").text).text
    clock.advance(minutes=6)
    page = Read(browser.get(f"/inbox/approval/{late.id}").text)
    assert ("form", "class", "answer") not in page.attributes
    assert browser.post(url(late), form(browser, late)).status == 409


def test_earlier_answers_to_the_same_request_are_listed(log: Decklog, browser: Browser, approval: Approval) -> None:
    other = log.approvals.ask(approval.run_id, "Push it now?", by="dev-2", about=THING)
    assert "to exactly this" not in browser.get(f"/inbox/approval/{approval.id}").text
    with log.proving(password=PASSWORD):
        log.approvals.decide(other.id, "denied", by="ana", rationale="not on a Friday")
    page = Read(browser.get(f"/inbox/approval/{approval.id}").text).text
    assert "1 earlier answer to exactly this Push it now? denied by ana, 0 s ago : not on a Friday" in page


@on_both
def test_last_decision_is_listed_below_many_new_requests(
    log: Decklog, browser: Browser, approval: Approval, clock: ManualClock
) -> None:
    with log.proving(password=PASSWORD):
        log.approvals.decide(approval.id, "denied", by="ana", rationale="no")
    for number in range(20):
        clock.advance(seconds=1)
        log.approvals.ask(approval.run_id, f"And this, {number}?", by="dev-1", about=f"rm {number}")
    assert "Decided Push it? denied by ana" in Read(browser.get("/inbox").text).text


def test_who_asked_can_not_approve(log: Decklog, browser: Browser, run_id: str) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    own = log.approvals.ask(run_id, "Mine?", by="ana", about="x")
    assert browser.post(url(own), form(browser, own)).status == 403
    assert state(log, own) == "open"


def test_subject_outside_of_the_log_is_approved_by_its_typed_digest(log: Decklog, browser: Browser, approval: Approval) -> None:
    far = log.approvals.ask(approval.run_id, "That file?", by="dev-1", subject_digest="ab" * 32)
    assert "Not in the log" in Read(browser.get(f"/inbox/approval/{far.id}").text).text
    assert browser.post(url(far), form(browser, far)).status == 400
    assert browser.post(url(far), form(browser, far, typed_digest="cd" * 32)).status == 409
    assert state(log, far) == "open"
    assert browser.post(url(far), form(browser, far, typed_digest="ab" * 32)).status == 303


def test_a_log_without_an_owner_decides_nothing_on_the_web(log: Decklog, browser: Browser, run_id: str) -> None:
    free = log.approvals.ask(run_id, "Push it?", by="dev-1", about=THING)
    page = Read(browser.get(f"/inbox/approval/{free.id}").text)
    assert "This log has no owner yet" in page.text
    assert ("form", "class", "answer") not in page.attributes
    assert browser.post(url(free), form(browser, free)).status == 403
    assert state(log, free) == "open"


def test_an_effect_of_unknown_outcome_is_settled_with_a_reason_and_the_proof(log: Decklog, browser: Browser, run_id: str) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    effect = log.effects.intend(run_id, "deploy-3", "run", key="k", actor="p1", arguments={"command": "./deploy"})
    log.effects.doubt(effect.id, actor="p1", note="its process died")
    assert "Did this happen?" in Read(browser.get("/inbox").text).text
    token = browser.session.form_token("effects.reconcile", effect.id)
    fields = {"token": token, "verdict": "yes", "reason": "", "proof": PASSWORD}
    place = f"/inbox/effect/{effect.id}/decide"
    assert browser.post(place, fields).status == 400
    assert browser.post(place, fields | {"reason": "seen", "proof": "wrong"}).status == 403
    assert browser.post(place, fields | {"reason": "The page is up"}).status == 303
    settled = log.effects.get(effect.id)
    assert (settled.state.value, settled.reconciled_by) == ("done", "ana")


def test_question_has_a_page_with_its_command(log: Decklog, browser: Browser, run_id: str) -> None:
    message = log.inbox.post("dev-1", "Which branch?", severity="question", run_id=run_id)
    page = Read(browser.get(f"/inbox/question/{message.id}").text)
    assert f"decklog inbox answer {message.id}" in page.text
    assert browser.get("/inbox/question/nothing").status == 404
    assert browser.post(f"/inbox/question/{message.id}/decide", {"token": "x"}).status == 404


@pytest.mark.slow
def test_key_of_the_server_signs_with_its_passphrase(log: Decklog, run_id: str, tmp_path: Path) -> None:
    from decklog.stores.approvals.trust.signatures import make_key_file

    phrase = " ".join(("open", "the", "key"))
    log.trust.bind("ana", "cli", make_key_file(str(tmp_path / "key"), phrase))
    one = log.approvals.ask(run_id, "Push it?", by="dev-1", about=THING)
    without, browser = make_browser(log), make_browser(log, key=str(tmp_path / "key"))
    with without.runner, browser.runner:
        assert without.log_in().post(url(one), form(without, one, proof=phrase)).status == 403
        browser.log_in()
        wrong = browser.post(url(one), form(browser, one, proof="wrong"))
        assert wrong.status == 403
        assert str(tmp_path) not in wrong.text
        assert browser.post(url(one), form(browser, one, proof=phrase)).status == 303
    assert state(log, one) == "granted"


def test_decisions_on_the_web_are_verbs_of_the_owner() -> None:
    owners = {
        f"{store}.{operation.name}" for store in STORES for operation in operations_of(store_class(store)) if operation.owner_only
    }
    assert set(VERBS.values()) < owners


def test_read_only_log_takes_no_decision(target: str, clock: ManualClock) -> None:
    with Decklog.open(target, clock=clock) as log:
        log.runs.start("x", run_id="r")
        log.trust.bind("ana", "cli", password=PASSWORD)
        one = log.approvals.ask("r", "Push it?", by="dev-1", about=THING)
    with Decklog.open(target, clock=clock, read_only=True) as log, logged_in(log) as browser:
        for page in ("/now", "/runs", "/inbox", "/runs/r/overview", "/search?q=push", "/memory?q=push"):
            assert browser.get(page).status == 200
        page_text = Read(browser.get(f"/inbox/approval/{one.id}").text)
        assert "read-only" in page_text.text
        assert ("form", "class", "answer") not in page_text.attributes
        assert browser.post(url(one), form(browser, one)).status in (404, 405)


def posts(browser: Browser) -> set[str]:
    inner = application(browser.site)._app._app
    return {route.path for route in inner.routes if route.methods and "POST" in route.methods}


def test_read_only_log_has_no_routes_that_write(browser: Browser, target: str, clock: ManualClock) -> None:
    # Sessions and verification do not change the log.
    of_the_server = {"/login", "/logout", "/system/sessions/{name}/end", "/system/verify"}
    of_the_log = {"/inbox/{kind}/{id:path}/decide", "/tasks/{task_id:path}/change", "/act/{verb}/{id:path}"}
    assert posts(browser) == of_the_server | of_the_log | {"/views/save", "/views/remove"}
    # Each is in the matrix of test_admission.
    assert len(posts(browser)) == len({"/login", *SENT})
    with Decklog.open(target, clock=clock, read_only=True) as log:
        assert posts(make_browser(log)) == of_the_server
