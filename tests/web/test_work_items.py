"""A work item on the web: its steps and change are shown, comments and messages reach its agent, and its run is landed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.web.forms import token_of
from tests.conductor.conftest import first_checked as first_checked
from tests.conductor.plans import landed, work_item
from tests.conductor.repositories import copied, git
from tests.web.client import PASSWORD, Answer, Browser
from tests.web.conducted import conduct, two_items
from tests.web.payloads import PAYLOADS
from tests.web.test_every_column import HIDDEN
from tests.web.test_text_of_agents import shape

AGAIN = [["append", "calc.py", "\n\nWHY = 'because'\n"]]
GOOD = ["append", "calc.py", "\n\ndef triple(a):\n    return a * 3\n"]


@pytest.fixture
def folder(first_checked: Path, tmp_path: Path) -> Path:
    return copied(first_checked, tmp_path)


@pytest.fixture
def log(empty_log_file: Path, tmp_path: Path) -> Iterator[Decklog]:
    with Decklog.open(shutil.copy(empty_log_file, tmp_path / "decklog.db")) as log:
        yield log


@pytest.fixture
def site(log: Decklog, folder: Path) -> RunContext:
    """A run whose one item has landed, and has something to do in a second round."""
    return conduct(log, folder, work_item("triple", ["print", "I add it."], GOOD, again=AGAIN))


def page(site: RunContext, name: str = "triple") -> str:
    return f"/runs/{site.run_id}/items/{name}"


def send(browser: Browser, verb: str, subject: str, **form: str) -> Answer:
    return browser.post(f"/act/{verb}/{subject}", {"token": browser.session.form_token(token_of(verb), subject), **form})


def messages(log: Decklog) -> list[Any]:
    return list(log.inbox.find())


@pytest.mark.slow
def test_the_page_of_an_item_shows_its_stages_steps_and_change(browser: Browser, site: RunContext) -> None:
    text = browser.get(page(site)).text
    assert "I add it." in text
    assert '<td class="sg">+</td><td class="code">def triple(a):</td>' in text
    assert f'href="{page(site)}?on=calc.py:9#comment"' in text
    assert text.count("st-done") >= 4
    data = browser.get(f"{page(site)}.json").data["data"]
    assert data["files"] == [{"path": "calc.py", "notes": [], "added": 4, "removed": 0}]
    assert data["state"]["state"] == "landed"


@pytest.mark.slow
def test_a_change_is_shown_side_by_side(browser: Browser, site: RunContext) -> None:
    text = browser.get(f"{page(site)}?view=split").text
    row = '<td class="no"></td><td class="code d-none"></td><td class="no"><a class="on"'
    assert row in text
    assert '<td class="code d-add"><span class="unseen">added: </span>def triple(a):</td>' in text


@pytest.mark.slow
def test_a_comment_on_a_line_is_worked_on_in_another_round(log: Decklog, browser: Browser, site: RunContext) -> None:
    text = browser.get(f"{page(site)}?on=calc.py:9").text
    assert 'name="where" value="calc.py:9"' in text
    assert send(browser, "comment-item", f"{site.run_id}.triple", where="calc.py:9", text="Say why.").status == 303
    (message,) = messages(log)
    assert (message.body, message.context_url) == ("calc.py:9: Say why.\n> def triple(a):", "calc.py#L9")
    assert "not delivered yet" in browser.get(page(site)).text
    Conductor(site).run()
    assert "WHY = 'because'" in landed(site, "calc.py")
    assert log.inbox.get(message.id).state == "answered"
    assert "landed as " in browser.get(page(site)).text


@pytest.mark.slow
def test_comment_outside_of_the_change_is_refused_and_kept(log: Decklog, browser: Browser, site: RunContext) -> None:
    for where, status in (("none.py:1", 404), ("calc.py:999", 400), ("calc.py", 400), ("../x:1", 404)):
        answer = send(browser, "comment-item", f"{site.run_id}.triple", where=where, text="Say why.")
        assert (answer.status, "Say why." in answer.text) == (status, True), where
    assert send(browser, "comment-item", f"{site.run_id}.triple", where="calc.py:9", text=" ").status == 400
    assert messages(log) == []


@pytest.mark.slow
def test_a_message_reaches_the_item_under_the_name_of_the_owner(log: Decklog, browser: Browser, site: RunContext) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    assert send(browser, "message-item", f"{site.run_id}.triple", text="Use a set here.").status == 303
    (message,) = messages(log)
    assert (message.from_handle, message.is_authorised, message.body) == ("ana", True, "Use a set here.")
    entry = log.journal.find(site.run_id, subtype="conductor.message")[0]
    assert entry.agent_id == browser.session.name


@pytest.mark.slow
def test_a_form_of_another_item_or_session_writes_nothing(log: Decklog, browser: Browser, site: RunContext) -> None:
    token = browser.session.form_token(token_of("message-item"), f"{site.run_id}.other")
    assert browser.post(f"/act/message-item/{site.run_id}.triple", {"token": token, "text": "x"}).status == 403
    token = browser.session.form_token(token_of("comment-item"), f"{site.run_id}.triple")
    assert browser.post(f"/act/message-item/{site.run_id}.triple", {"token": token, "text": "x"}).status == 403
    assert messages(log) == []


@pytest.mark.slow
def test_a_run_is_landed_with_the_owner_s_signature_and_not_without(
    log: Decklog, browser: Browser, site: RunContext, folder: Path
) -> None:
    log.trust.bind("ana", "cli", password=PASSWORD)
    before, form = git(folder, "rev-parse", "main"), browser.get(f"/act/land-run/{site.run_id}").text
    state = re.findall('name="state" value="([^"]*)"', form)[0]
    assert send(browser, "land-run", site.run_id, state=state, proof="wrong").status == 403
    assert send(browser, "land-run", site.run_id, state="main x y", proof=PASSWORD).status == 409
    assert git(folder, "rev-parse", "main") == before
    assert send(browser, "land-run", site.run_id, state=state, proof=PASSWORD).status == 303
    assert "def triple" in (folder / "calc.py").read_text()
    (granted,) = log.approvals.find(site.run_id, state="granted")
    assert (granted.source, granted.decided_by, granted.is_proven) == ("conductor.land", "ana", True)
    assert browser.get(f"/act/land-run/{site.run_id}").status == 409


@pytest.mark.slow
def test_everything_that_a_run_has_landed_is_one_change(browser: Browser, site: RunContext) -> None:
    text = browser.get(f"/runs/{site.run_id}/changes").text
    assert "def triple(a):" in text
    assert f'href="{page(site)}"' in text
    assert "?on=" not in text


@pytest.mark.slow
def test_machine_without_the_repository_names_the_command(log: Decklog, browser: Browser, site: RunContext) -> None:
    run = log.runs.get(site.run_id)
    facts: Any = run.metadata["conductor"]
    log.runs.update(run.id, metadata={**run.metadata, "conductor": {**facts, "machine": "0" * 16, "host_name": "build-7"}})
    text = browser.get(page(site)).text
    assert "The change can't be shown here." in text
    assert "build-7" in text
    assert f"decklog run diff {site.run_id}.triple" in text
    assert "I add it." in text


@pytest.mark.slow
def test_a_blocked_item_is_tried_again_and_given_up(log: Decklog, browser: Browser, folder: Path) -> None:
    site = conduct(log, folder, *two_items())
    assert "Retry…" in browser.get(page(site, "wrong")).text
    waiting = conduct(log, folder, work_item("first", ["sleep", 0]), work_item("later", GOOD, needs=["first"]), is_worked=False)
    assert "Nothing has changed yet." in browser.get(page(waiting, "later")).text
    subject = f"{site.run_id}.wrong"
    assert send(browser, "retry-item", subject).status == 303
    assert log.approvals.find(site.run_id, state="open") == []
    assert log.tasks.find(site.run_id, state="blocked") == []
    assert send(browser, "pause-item", subject, reason="wait").status == 303
    assert send(browser, "pause-item", subject, reason="wait").status == 409
    assert send(browser, "resume-item", subject).status == 303
    assert send(browser, "stop-item", subject, reason="not needed").status == 303
    assert log.tasks.get(f"{site.run_id}.wrong").state == "abandoned"


@pytest.mark.slow
def test_what_an_agent_writes_into_files_is_text_on_the_page(log: Decklog, browser: Browser, folder: Path) -> None:
    names = ["a<img src=x onerror=alert(1)>.py", 'b" onmouseover="alert(1).py', "c\u202egnp.py", "d?x=1&on=e#f.py"]
    texts = [text for text in PAYLOADS if "\n" not in text]
    steps = [["write", name, "\n".join(texts) + "\n"] for name in names]
    plain = conduct(
        log, folder, work_item("triple", *[["write", f"p{n}.py", "text\n"] for n in range(4)], ["print", "text " * 200])
    )
    known = shape(browser.get(page(plain)).text) | shape(browser.get(f"{page(plain)}?on=p0.py:1").text)
    hostile = conduct(log, folder, work_item("triple", *steps, ["print", " ".join(texts[:20])]), work_item("more", GOOD))
    for view in ("", "?view=split", f"?on={names[0]}:3"):
        text = browser.get(f"{page(hostile)}{view}").text
        assert shape(text) <= known | {("colgroup", ""), ("col", "class")}, shape(text) - known
        assert not HIDDEN.search(text)
