"""The overview of a run: how it ended and why, what it is doing now, and milestones."""

import re

import pytest

from decklog import Decklog, ManualClock
from tests.conftest import on_both
from tests.pictures import sample_parts
from tests.stores.claiming import claimed
from tests.web.client import Browser
from tests.web.test_pages import Read, read


def outcome(browser: Browser, run_id: str) -> str:
    text = browser.get(f"/runs/{run_id}/overview").text
    found = re.search(r'<p class="outcome.*?</p>', text, re.DOTALL)
    return Read(found[0]).text if found else ""


@on_both
def test_failed_run_shows_its_cause_in_a_red_strip(log: Decklog, browser: Browser, run_id: str) -> None:
    log.runs.finish(run_id, status="failed", summary="The build broke on ARM")
    assert 'class="outcome o-fail"' in browser.get(f"/runs/{run_id}/overview").text
    assert re.fullmatch(r"Failed 0 s ago ?: The build broke on ARM", outcome(browser, run_id))


@on_both
def test_failed_run_without_summary_names_the_blocked_task_or_the_failed_check(
    log: Decklog, browser: Browser, run_id: str
) -> None:
    tree = {"tree": "7c" * 20, "definition": "d" * 64, "environment": "e" * 64}
    log.verdicts.record(run_id, "tests", "fail", findings=[{"kind": "test", "text": "test_x fails"}], **tree)
    log.runs.start("other", run_id="other")
    log.tasks.add("other", "Sign it")
    claim = claimed(log, "other", worker="dev-1")
    claim.block("no key")
    for one in (run_id, "other"):
        log.runs.finish(one, status="failed", force=True, reason="given up")
    assert "tests: test_x fails" in outcome(browser, run_id)
    assert f'href="/runs/{run_id}/checks">tests' in browser.get(f"/runs/{run_id}/overview").text
    assert "Sign it: no key" in outcome(browser, "other")


@on_both
def test_running_task_is_shown_among_many_tasks(log: Decklog, browser: Browser, run_id: str) -> None:
    log.tasks.add_many(run_id, [{"title": f"Task {number}", "priority": 90} for number in range(80)])
    last = log.tasks.add(run_id, "The last one", priority=1)
    claim = claimed(log, run_id, worker="ada", task_id=last.id, lease_seconds=600)
    log.tasks.extend(last.id, fence=claim.task.fence, stage="pytest -q", lease_seconds=600)
    text = browser.get(f"/runs/{run_id}/overview").text
    working = Read(text[text.index('<ul class="working">') :].partition("</ul>")[0]).text
    assert "The last one ada · pytest -q" in working
    assert "lease for 10 min" in working
    assert f'<li id="task-{last.id}"' in text


def test_stalled_run_names_the_lease_that_ended(log: Decklog, browser: Browser, clock: ManualClock, run_id: str) -> None:
    log.tasks.add(run_id, "Port it")
    log.tasks.claim(run_id, worker="dev-3", lease_seconds=60)
    clock.advance(minutes=5)
    assert "The lease of dev-3 on “Port it” ended." in outcome(browser, run_id)
    text = browser.get(f"/runs/{run_id}/overview").text
    tasks = Read(text[text.index('<ul class="tasks">') :].partition("</ul>")[0]).text
    assert "stalled Port it" in tasks
    assert "running" not in tasks


@pytest.mark.slow
@on_both
def test_run_of_the_conductor_shows_its_work_items_in_a_table_red_first(filled: Browser) -> None:
    text = filled.get(f"/runs/{sample_parts.ITEMS}/overview").text
    assert re.findall(r'<tr id="item-(\w+)"', text) == ["errors", "tables", "tokens"]
    assert re.findall(r'<tr id="item-(\w+)" class="red"', text) == ["errors"]
    assert "tests: test_errors fails" in Read(text).text
    assert text.index('id="item-errors"') < text.index('id="tail"')


def test_milestones_lead_to_their_entries_and_come_before_the_journal(sample: Browser) -> None:
    text = sample.get("/runs/commas/overview").text
    found = re.findall(r'<li id="milestone-(\d+)" class="m-(\w+)">.*?href="([^"]+)"', text, re.DOTALL)
    assert {what for _, what, _ in found} >= {"failure", "question"}
    assert [int(seq) for seq, _, _ in found] == sorted((int(seq) for seq, _, _ in found), reverse=True)
    assert all(place == f"/runs/commas/entries/{seq}" for seq, _, place in found)
    assert text.index('class="milestones"') < text.index('id="tail"')
    # As of an earlier entry, none of a later one is listed.
    newest = int(found[0][0])
    past = re.findall(r'<li id="milestone-(\d+)"', sample.get(f"/runs/commas/overview?at={newest - 1}").text)
    assert past
    assert max(map(int, past)) < newest


def test_done_run_shows_its_summary(log: Decklog, browser: Browser, run_id: str) -> None:
    log.runs.finish(run_id, summary="The suite takes 3 minutes")
    assert "Done 0 s ago" in outcome(browser, run_id)
    assert "The suite takes 3 minutes" in read(browser, f"/runs/{run_id}/overview").text


@on_both
def test_run_names_its_own_decisions_with_links_to_their_forms(log: Decklog, browser: Browser, run_id: str) -> None:
    other = log.runs.start("Another run")
    log.approvals.ask(other.id, "Not of this run?", by="dev-2", about="git tag")
    approval = log.approvals.ask(run_id, "May I push?", by="conductor-host-1-22-333", about="git push")
    effect = log.effects.intend(run_id, "deploy", "run", key="k", actor="dev-1", arguments={"command": "./deploy"})
    log.effects.doubt(effect.id, actor="dev-1", note="its process died")
    text = browser.get(f"/runs/{run_id}/overview").text
    asks = text[text.index('<section id="asks"') :].partition("</section>")[0]
    assert re.findall('href="(/inbox/[^"]+verdict=[^"]+)"', asks) == [
        *(f"/inbox/approval/{approval.id}?verdict={verdict}" for verdict in ("granted", "denied")),
        *(f"/inbox/effect/{effect.id}?verdict={verdict}" for verdict in ("yes", "no")),
    ]
    assert "May I push?" in asks
    assert "asked by conductor ·" in Read(asks).text
    assert "Not of this run?" not in text
    assert f'href="/runs/{run_id}/overview#asks">2 questions open</a>' in browser.get(f"/runs/{run_id}/journal").text
    assert outcome(browser, run_id) == ""
    # The form belongs to now: an earlier entry shows none.
    assert 'id="asks"' not in browser.get(f"/runs/{run_id}/overview?at=2").text
