"""The workflow page: tasks of each agent by state, in a table and in the picture."""

import re

from decklog import Decklog, ManualClock
from decklog.web.pages.others import notes_of, stations_of
from tests.conftest import on_both
from tests.stores.claiming import claimed
from tests.web.client import Browser


def cells(text: str, row: str) -> list[str]:
    found = re.search(rf'<tr id="at-{row}">(.*?)</tr>', text)
    assert found, row
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", found[1])]


@on_both
def test_tasks_of_each_agent_are_counted_by_state(log: Decklog, clock: ManualClock, browser: Browser) -> None:
    log.runs.start("goal", run_id="r")
    assert "No agent has a task or a group" in browser.get("/workflow").text
    for role, count in (("developer", 3), ("qa_expert", 2), ("poet", 1)):
        log.tasks.add_many("r", [{"title": "one", "role": role, "max_attempts": 1} for _ in range(count)])
    log.tasks.claim("r", worker="developer-1", role="developer")
    failing = claimed(log, "r", worker="qa-1", role="qa_expert")
    failing.fail("no")
    log.groups.add("r", "A", name="parser", assigned_to="developer_2")
    log.approvals.ask("r", "Push?", by="dev", about="git push")
    page = browser.get("/workflow").text
    assert cells(page, "developer") == ["developer", "2", "1", "–", "–", "1"]
    assert cells(page, "qa_expert") == ["qa expert", "1", "–", "–", "1", "–"]
    assert cells(page, "poet") == ["poet not in the workflow", "1", "–", "–", "–", "–"]
    assert cells(page, "person") == ["a person", "▲ 1 decision waits"]
    picture = browser.get("/workflow.svg").text
    for note in ("○ 2  ▶ 1", "○ 1  ⊗ 1", "▲ 1"):
        assert f">{note}</text>" in picture
    stations = {one["who"]: one for one in browser.get("/workflow.json").data["data"]["stations"]}
    assert (stations["developer"]["to_do"], stations["developer"]["groups"], stations["poet"]["is_known"]) == (2, 1, False)
    # Another picture has another address: an open page shows it.
    clock.advance(minutes=1)
    before = re.search(r'src="(/workflow.svg[^"]+)"', page)
    log.tasks.claim("r", worker="developer-2", role="developer")
    after = re.search(r'src="(/workflow.svg[^"]+)"', browser.get("/workflow").text)
    assert before
    assert after
    assert before[1] != after[1]


def test_workers_of_a_role_are_one_agent_and_unassigned_tasks_have_their_own_row() -> None:
    nothing = dict.fromkeys(("to_do", "working", "blocked_or_paused", "failed", "groups", "failed_groups"), 0)
    found = [{**nothing, "who": who, "working": 1} for who in ("developer", "Developer-2", "developer_3", None)]
    stations = stations_of(["developer"], found)
    assert [(one["who"], one["working"], one["is_known"]) for one in stations] == [("developer", 3, True), (None, 1, False)]
    assert notes_of(stations, 0) == {"developer": "▶ 3"}
    assert notes_of([{**stations[0], "to_do": 1000}], 2) == {"developer": "○ 1000+  ▶ 3", "a person": "▲ 2"}


def test_only_steps_of_roles_in_use_are_shown_by_default(log: Decklog, browser: Browser) -> None:
    def roles(address: str) -> set[str]:
        return {row.partition("-")[0] for row in re.findall(r'<tr id="step-([^"]+)"', browser.get(address).text)}

    everybody = roles("/workflow")
    assert {"developer", "qa_expert"} < everybody
    log.runs.start("goal", run_id="r")
    log.tasks.add("r", "one", role="developer")
    assert roles("/workflow") == {"developer"}
    assert roles("/workflow?roles=all") == everybody
