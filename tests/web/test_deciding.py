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
from tests.web.asking import PASSWORD, Browser, made
from tests.web.test_admission import SENT
from tests.web.test_pages import Read

THING = "git push origin feature/commas"


@pytest.fixture
def asked(log: Decklog, run_id: str) -> Approval:
    log.trust.bind("ana", "cli", password=PASSWORD)
    return log.approvals.ask(run_id, "Push it?", by="dev-1", about=THING)


def form(browser: Browser, approval: Approval, verdict: str = "granted", **more: str) -> dict[str, str]:
    token = browser.session.form_token("approvals.decide", approval.id)
    given = {"token": token, "digest": approval.subject_digest or "", "verdict": verdict, "reason": "", "proof": PASSWORD}
    return given | more


def url(approval: Approval) -> str:
    return f"/inbox/approval/{approval.id}/decide"


def state(log: Decklog, approval: Approval) -> str:
    return log.approvals.get(approval.id).state.value


@pytest.mark.parametrize(("wanted", "label"), [("denied", "Deny"), ("granted", "Approve exactly this, once")])
def test_decision_form_submits_only_its_intent(browser: Browser, asked: Approval, wanted: str, label: str) -> None:
    text = browser.get(f"/inbox/approval/{asked.id}?verdict={wanted}").text
    answer = text[text.index('<form class="answer"') :].partition("</form>")[0]
    assert re.findall(r"<button[^>]*>([^<]*)</button>", answer) == [label]
    assert re.findall(r'name="verdict" value="(\w+)"', answer) == [wanted]


def test_decision_form_without_intent_has_one_button_and_no_default(browser: Browser, asked: Approval) -> None:
    text = browser.get(f"/inbox/approval/{asked.id}").text
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
def test_the_owner_approves_exactly_what_the_page_showed(log: Decklog, browser: Browser, asked: Approval) -> None:
    page = Read(browser.get(f"/inbox/approval/{asked.id}").text)
    assert THING in page.text
    assert "The digest matches" in page.text
    answer = browser.post(url(asked), form(browser, asked, reason="It only adds"))
    assert (answer.status, answer.headers["location"]) == (303, f"/inbox/approval/{asked.id}")
    decided = log.approvals.get(asked.id)
    assert (decided.state.value, decided.decided_by, decided.rationale, decided.is_proven) == (
        "granted",
        "ana",
        "It only adds",
        True,
    )
    assert log.approvals.granted_for(asked.run_id, asked.subject_digest or "") is not None
    entry = log.journal.history("approvals", asked.id)[-1]
    assert (entry.agent, entry.agent_id) == ("ana", browser.session.name)
    assert log.journal.verify().ok
    after = Read(browser.get(f"/inbox/approval/{asked.id}").text)
    assert ", signed" in after.text
    assert ("form", "class", "answer") not in after.attributes


@on_both
def test_a_form_that_is_sent_twice_decides_once(log: Decklog, browser: Browser, asked: Approval) -> None:
    given = form(browser, asked)
    assert [browser.post(url(asked), given).status for _ in range(2)] == [303, 303]
    assert len(log.journal.history("approvals", asked.id)) == 2


def test_to_deny_takes_a_reason_and_nothing_typed_is_lost(log: Decklog, browser: Browser, asked: Approval) -> None:
    answer = browser.post(url(asked), form(browser, asked, "denied"))
    assert answer.status == 400
    assert state(log, asked) == "open"
    assert browser.post(url(asked), form(browser, asked, "denied", reason="Not on a Friday")).status == 303
    assert (state(log, asked), log.approvals.get(asked.id).rationale) == ("denied", "Not on a Friday")


def test_a_wrong_password_decides_nothing_and_keeps_the_reason(log: Decklog, browser: Browser, asked: Approval) -> None:
    answer = browser.post(url(asked), form(browser, asked, proof="wrong", reason="It <b>only</b> adds"))
    assert answer.status == 403
    assert "It &lt;b&gt;only&lt;/b&gt; adds" in answer.text
    assert PASSWORD not in answer.text
    assert state(log, asked) == "open"


@pytest.mark.parametrize("missing", ["token", "digest", "verdict", "proof"])
def test_a_form_without_one_of_its_parts_decides_nothing(log: Decklog, browser: Browser, asked: Approval, missing: str) -> None:
    given = form(browser, asked)
    del given[missing]
    assert browser.post(url(asked), given).status in (400, 403, 409)
    assert state(log, asked) == "open"


def test_a_token_of_another_record_another_verb_or_another_session_is_none(
    log: Decklog, browser: Browser, asked: Approval
) -> None:
    other = log.approvals.ask(asked.run_id, "And this?", by="dev-1", about="another")
    foreign = browser.site.sessions.log_in(browser.site.sessions.new_link())
    assert foreign is not None
    tokens = (
        browser.session.form_token("approvals.decide", other.id),
        browser.session.form_token("effects.reconcile", asked.id),
        foreign.form_token("approvals.decide", asked.id),
    )
    for token in tokens:
        assert browser.post(url(asked), form(browser, asked, token=token)).status == 403
    assert state(log, asked) == "open"


def test_a_page_of_another_origin_decides_nothing(log: Decklog, browser: Browser, asked: Approval) -> None:
    for headers in ({"sec_fetch_site": "same-site"}, {"sec_fetch_site": "cross-site"}, {"origin": "http://127.0.0.1:9999"}):
        assert browser.post(url(asked), form(browser, asked), **headers).status == 403
    assert state(log, asked) == "open"


def test_after_five_wrong_proofs_none_is_taken_for_a_minute(log: Decklog, browser: Browser, asked: Approval) -> None:
    for _ in range(MOST_WRONG):
        assert browser.post(url(asked), form(browser, asked, proof="wrong")).status == 403
    assert browser.post(url(asked), form(browser, asked)).status == 429
    assert state(log, asked) == "open"
    browser.seconds.now += PAUSE_SECONDS
    assert browser.post(url(asked), form(browser, asked)).status == 303


def test_what_changed_since_it_was_read_is_not_decided(log: Decklog, browser: Browser, asked: Approval) -> None:
    answer = browser.post(url(asked), form(browser, asked, digest="0" * 64, reason="typed for long"))
    assert answer.status == 409
    assert "typed for long" in answer.text
    assert state(log, asked) == "open"


def test_what_somebody_else_decided_meanwhile_is_told_and_nothing_typed_is_lost(
    log: Decklog, browser: Browser, asked: Approval
) -> None:
    given = form(browser, asked, reason="typed for long")
    with log.proving(password=PASSWORD):
        log.approvals.decide(asked.id, "denied", by="ana", rationale="no")  # type: ignore[arg-type]
    answer = browser.post(url(asked), given)
    assert answer.status == 409
    assert "denied by ana" in Read(answer.text).text


def test_what_lapsed_while_it_was_open_says_so_and_has_no_form(
    log: Decklog, clock: ManualClock, browser: Browser, asked: Approval
) -> None:
    late = log.approvals.ask(
        asked.run_id,
        "Quick?",
        by="dev-1",
        about="x",
        expires_in_seconds=300,
        default_verdict="denied",  # type: ignore[arg-type]
    )
    assert "counts as denied" in Read(browser.get(f"/inbox/approval/{late.id}").text).text
    clock.advance(minutes=6)
    page = Read(browser.get(f"/inbox/approval/{late.id}").text)
    assert ("form", "class", "answer") not in page.attributes
    assert browser.post(url(late), form(browser, late)).status == 409


def test_earlier_answers_to_exactly_this_are_answers(log: Decklog, browser: Browser, asked: Approval) -> None:
    other = log.approvals.ask(asked.run_id, "Push it now?", by="dev-2", about=THING)
    assert "to exactly this" not in browser.get(f"/inbox/approval/{asked.id}").text
    with log.proving(password=PASSWORD):
        log.approvals.decide(other.id, "denied", by="ana", rationale="not on a Friday")  # type: ignore[arg-type]
    page = Read(browser.get(f"/inbox/approval/{asked.id}").text).text
    assert "1 earlier answer to exactly this Push it now? denied by ana, 0 s ago : not on a Friday" in page


@on_both
def test_what_was_decided_last_is_listed_however_much_was_asked_since(
    log: Decklog, browser: Browser, asked: Approval, clock: ManualClock
) -> None:
    with log.proving(password=PASSWORD):
        log.approvals.decide(asked.id, "denied", by="ana", rationale="no")  # type: ignore[arg-type]
    for number in range(20):
        clock.advance(seconds=1)
        log.approvals.ask(asked.run_id, f"And this, {number}?", by="dev-1", about=f"rm {number}")
    assert "Decided Push it? denied by ana" in Read(browser.get("/inbox").text).text


def test_who_asked_can_not_approve(log: Decklog, browser: Browser, run_id: str) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    own = log.approvals.ask(run_id, "Mine?", by="ana", about="x")
    assert browser.post(url(own), form(browser, own)).status == 403
    assert state(log, own) == "open"


def test_what_is_not_in_the_log_is_approved_by_its_typed_digest_alone(log: Decklog, browser: Browser, asked: Approval) -> None:
    far = log.approvals.ask(asked.run_id, "That file?", by="dev-1", subject_digest="ab" * 32)
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
    given = {"token": token, "verdict": "yes", "reason": "", "proof": PASSWORD}
    place = f"/inbox/effect/{effect.id}/decide"
    assert browser.post(place, given).status == 400
    assert browser.post(place, given | {"reason": "seen", "proof": "wrong"}).status == 403
    assert browser.post(place, given | {"reason": "The page is up"}).status == 303
    settled = log.effects.get(effect.id)
    assert (settled.state.value, settled.reconciled_by) == ("done", "ana")


def test_everything_else_that_waits_is_shown_with_its_command(log: Decklog, browser: Browser, run_id: str) -> None:
    message = log.inbox.post("dev-1", "Which branch?", severity="question", run_id=run_id)  # type: ignore[arg-type]
    page = Read(browser.get(f"/inbox/question/{message.id}").text)
    assert f"decklog inbox answer {message.id}" in page.text
    assert browser.get("/inbox/question/nothing").status == 404
    assert browser.post(f"/inbox/question/{message.id}/decide", {"token": "x"}).status == 404


@pytest.mark.slow
def test_a_key_decides_by_its_passphrase_where_the_server_was_given_it(log: Decklog, run_id: str, tmp_path: Path) -> None:
    from decklog.stores.approvals.trust.signatures import make_key_file

    phrase = " ".join(("open", "the", "key"))
    log.trust.bind("ana", "cli", make_key_file(str(tmp_path / "key"), phrase))
    one = log.approvals.ask(run_id, "Push it?", by="dev-1", about=THING)
    without, browser = made(log), made(log, key=str(tmp_path / "key"))
    with without.runner, browser.runner:
        assert without.log_in().post(url(one), form(without, one, proof=phrase)).status == 403
        browser.log_in()
        wrong = browser.post(url(one), form(browser, one, proof="wrong"))
        assert wrong.status == 403
        assert str(tmp_path) not in wrong.text
        assert browser.post(url(one), form(browser, one, proof=phrase)).status == 303
    assert state(log, one) == "granted"


def test_of_what_only_the_owner_does_the_web_has_these_two_and_each_asks_for_the_proof() -> None:
    owners = {
        f"{store}.{operation.name}" for store in STORES for operation in operations_of(store_class(store)) if operation.owner_only
    }
    assert set(VERBS.values()) < owners


def test_a_log_that_is_only_read_has_nothing_to_send_a_decision_to(target: str, clock: ManualClock) -> None:
    with Decklog.open(target, clock=clock) as log:
        log.runs.start("x", run_id="r")
        log.trust.bind("ana", "cli", password=PASSWORD)
        one = log.approvals.ask("r", "Push it?", by="dev-1", about=THING)
    with Decklog.open(target, clock=clock, read_only=True) as log:
        browser = made(log)
        with browser.runner:
            browser.log_in()
            for page in ("/now", "/runs", "/inbox", "/runs/r/overview", "/search?q=push", "/memory?q=push"):
                assert browser.get(page).status == 200
            shown = Read(browser.get(f"/inbox/approval/{one.id}").text)
            assert "open for reading only" in shown.text
            assert ("form", "class", "answer") not in shown.attributes
            assert browser.post(url(one), form(browser, one)).status in (404, 405)


def posts(browser: Browser) -> set[str]:
    inner = application(browser.site)._app._app  # type: ignore[attr-defined]
    return {route.path for route in inner.routes if route.methods and "POST" in route.methods}


def test_what_can_be_sent_is_known_and_a_log_that_may_only_be_read_takes_nothing_of_it(
    browser: Browser, target: str, clock: ManualClock
) -> None:
    # Who is logged in, and whether the log is whole: neither is the log.
    of_the_server = {"/login", "/logout", "/system/sessions/{name}/end", "/system/verify"}
    of_the_log = {"/inbox/{kind}/{id:path}/decide", "/tasks/{task_id:path}/change", "/act/{verb}/{id:path}"}
    assert posts(browser) == of_the_server | of_the_log | {"/views/save", "/views/remove"}
    # Each has an address in the matrix of what is let in.
    assert len(posts(browser)) == len({"/login", *SENT})
    with Decklog.open(target, clock=clock, read_only=True) as log:
        assert posts(made(log)) == of_the_server
