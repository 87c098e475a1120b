import copy
import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, NotFound
from decklog.stores.workflow.records import digest_of, shipped
from tests.every import every
from tests.stores.processes import shared_out


def small(**changes: Any) -> dict[str, Any]:
    """A workflow of two agents."""
    return {
        "name": "small",
        "transitions": {
            "writer": {
                "DONE": {"next_agent": "reader", "action": "spawn", "include_context": ["text"]},
                "STUCK": {"next_agent": "writer", "action": "respawn", "iteration_budget": 3, "exhausted_status": "DONE"},
            },
            "reader": {"FINE": {"next_agent": None, "action": "end_session"}},
        },
        "aliases": {"writer": {"FINISHED": "DONE"}},
        "rules": {"escalation_after_failures": {"config": {"threshold": 1, "escalation_agent": "reader"}}},
        "markers": {"writer": {"required": ["DONE"]}},
        "models": {"writer": "small-1", "reader": "large-1"},
        **changes,
    }


def test_a_new_log_routes_by_the_workflow_that_comes_with_it(log: Decklog) -> None:
    ready = log.workflow.ready()
    assert (ready["ready"], ready["source"], ready["name"]) == (True, "shipped", "default")
    assert (ready["transitions_count"], ready["markers_count"], ready["rules_count"]) == (47, 8, 5)
    assert ready["agents_without_markers"] == []
    assert log.workflow.versions() == []


def test_loading_it_makes_records_of_it(log: Decklog) -> None:
    version = log.workflow.load(by="ana")
    assert (version.number, version.name, version.loaded_by) == (1, "default", "ana")
    assert (version.transitions, version.aliases, version.rules, version.markers, version.models) == (47, 2, 5, 8, 10)
    assert version.digest == digest_of(shipped()) == log.workflow.ready()["digest"]
    assert log.workflow.ready()["source"] == "loaded"
    assert log.workflow.load().already
    assert len(log.workflow.versions()) == 1


def test_what_is_loaded_is_what_came_with_the_package(log: Decklog) -> None:
    def whole() -> list[list[Any]]:
        parts = (log.workflow.transitions(), log.workflow.rules(), log.workflow.markers(), log.workflow.models())
        return [sorted(part, key=str) for part in parts]

    before = whole()
    log.workflow.load()
    assert whole() == before


@pytest.mark.slow
def test_a_document_replaces_all_of_it(log: Decklog) -> None:
    log.workflow.load()
    version = log.workflow.load(small())
    assert (version.number, version.name, version.transitions) == (2, "small", 3)
    assert [(step.agent, step.status) for step in log.workflow.transitions()] == [
        ("reader", "FINE"),
        ("writer", "DONE"),
        ("writer", "STUCK"),
    ]
    assert [(m.agent, m.model) for m in log.workflow.models()] == [("reader", "large-1"), ("writer", "small-1")]
    assert [rule.name for rule in log.workflow.rules()] == ["escalation_after_failures"]
    assert log.workflow.route("writer", "FINISHED")["next_agent"] == "reader"
    assert log.workflow.ready()["agents_without_markers"] == ["reader"]
    with pytest.raises(NotFound):
        log.workflow.route("developer", "READY_FOR_QA")
    assert log.workflow.load().number == 3
    assert log.journal.verify().ok


def test_only_what_differs_leaves_an_entry(log: Decklog) -> None:
    log.workflow.load(small())
    before = len(log.journal.find("@workflow", limit=100))
    log.workflow.load(small(models={"writer": "small-2", "reader": "large-1"}))
    assert len(log.journal.find("@workflow", limit=100)) == before + 2  # the version and one model


def test_layout_and_remarks_do_not_make_another_version(log: Decklog) -> None:
    version = log.workflow.load(small())
    reordered = json.loads(json.dumps(small(_remark="draft"), indent=2, sort_keys=True))
    reordered["transitions"]["writer"]["_why"] = "because"
    assert log.workflow.load(reordered).already
    assert log.workflow.versions() == [version]


def transitions_file() -> dict[str, Any]:
    """Build bazinga's transitions.json: agents at the top, rules among the remarks, `then` for `then_action`."""
    steps = copy.deepcopy(shipped()["transitions"])
    for statuses in steps.values():
        for step in statuses.values():
            if "then_action" in step:
                step["then"] = step.pop("then_action")
            if "iteration_budget" in step:
                step.pop("iteration_budget"), step.pop("exhausted_status")
                step["iteration_budget_check"] = True
    rules = {name: {"description": "d", **rule["config"]} for name, rule in shipped()["rules"].items()}
    for rule in rules.values():
        rule.pop("words", None)
    return {"_version": "1.3.0", **steps, "_special_rules": rules}


def test_load_reads_a_bazinga_transitions_file(log: Decklog) -> None:
    document = transitions_file()
    document["developer"]["READY_FOR_QA"]["next_agent"] = "tech_lead"
    document["_special_rules"]["escalation_after_failures"]["threshold"] = 5

    version = log.workflow.load(document)

    assert (version.name, version.transitions, version.aliases, version.markers, version.models) == ("bazinga", 47, 2, 8, 10)
    assert log.workflow.route("developer", "READY_FOR_QA")["next_agent"] == "tech_lead"
    assert log.workflow.route("investigator", "INCOMPLETE")["next_agent"] == "tech_lead"
    assert log.workflow.route("investigator", "HYPOTHESIS_ELIMINATED", iteration=99)["budget_exhausted"] is True
    rules = {rule.name: rule.config for rule in log.workflow.rules()}
    assert rules["escalation_after_failures"]["threshold"] == 5
    assert "auth" in rules["security_sensitive"]["words"]
    del document["investigator"]
    assert log.workflow.load(document).aliases == 0


def test_load_fills_missing_sections_with_the_defaults(log: Decklog) -> None:
    step = {"next_agent": "tech_lead", "action": "spawn"}

    version = log.workflow.load({"name": "ours", "transitions": {"developer": {"READY_FOR_QA": step}}})

    assert (version.transitions, version.aliases, version.rules, version.markers, version.models) == (1, 0, 5, 8, 10)


def test_load_names_unknown_sections_in_a_fixed_order(log: Decklog) -> None:
    with pytest.raises(Invalid) as caught:
        log.workflow.load({**small(), **{name: {} for name in "zyxwvut"}})
    assert [text.split()[4].rstrip(";") for text in caught.value.details["problems"]] == list("tuvwxyz")


def _without(*path: str) -> dict[str, Any]:
    document = small()
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return document


def _with(value: Any, *path: str) -> dict[str, Any]:
    document = copy.deepcopy(small())
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return document


@pytest.mark.slow
@every(
    "bad",
    [
        {},
        _without("transitions"),
        _without("models"),
        _without("models", "reader"),
        _without("transitions", "writer", "DONE", "action"),
        _without("transitions", "writer", "STUCK", "exhausted_status"),
        _without("rules", "escalation_after_failures", "config", "threshold"),
        _without("markers", "writer", "required"),
        _with([], "transitions"),
        _with({}, "transitions"),
        _with({}, "transitions", "writer"),
        _with("x", "transitions", "writer"),
        _with("x", "transitions", "writer", "DONE"),
        _with(1, "name"),
        _with({"x": 1}, "extras"),
        _with("dance", "transitions", "writer", "DONE", "action"),
        _with("end_session", "transitions", "writer", "DONE", "action"),
        _with(None, "transitions", "writer", "DONE", "next_agent"),
        _with("nobody", "transitions", "writer", "DONE", "next_agent"),
        _with("Not An Agent", "transitions", "writer", "DONE", "next_agent"),
        _with("nobody", "transitions", "writer", "DONE", "fallback_agent"),
        _with(["x", 1], "transitions", "writer", "DONE", "include_context"),
        _with(0, "transitions", "writer", "DONE", "max_parallel"),
        _with(True, "transitions", "writer", "DONE", "max_parallel"),
        _with("yes", "transitions", "writer", "DONE", "bypass_qa"),
        _with("sing", "transitions", "writer", "DONE", "then_action"),
        _with("red", "transitions", "writer", "DONE", "colour"),
        _with({"next_agent": "reader", "action": "spawn"}, "transitions", "writer", "not done"),
        _with({"DONE": {"next_agent": "reader", "action": "spawn"}}, "transitions", "Wri ter"),
        _with("LOST", "aliases", "writer", "FINISHED"),
        _with("DONE", "aliases", "writer", "STUCK"),
        _with({"X": "Y"}, "aliases", "nobody"),
        _with({"config": {}}, "rules", "house_rule"),
        _with({"threshold": 0, "escalation_agent": "reader"}, "rules", "escalation_after_failures", "config"),
        _with({"threshold": 1, "escalation_agent": "nobody"}, "rules", "escalation_after_failures", "config"),
        _with({"threshold": 1, "escalation_agent": "reader", "x": 1}, "rules", "escalation_after_failures", "config"),
        _with("DONE", "markers", "writer", "required"),
        _with("", "models", "writer"),
        _with(7, "models", "writer"),
    ],
)
def test_a_wrong_document_changes_nothing(log: Decklog, bad: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="can't be used") as refused:
        log.workflow.load(bad)
    assert refused.value.details["problems"]
    assert log.workflow.versions() == []
    assert log.workflow.ready()["source"] == "shipped"


def test_a_bottomless_document_is_refused(log: Decklog) -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(Invalid, match="deep"):
        log.workflow.load(small(transitions=deep))


def test_every_mistake_is_named_at_once(log: Decklog) -> None:
    bad = _with("dance", "transitions", "writer", "DONE", "action")
    bad["models"]["writer"] = 7
    with pytest.raises(Invalid) as refused:
        log.workflow.load(bad)
    assert len(refused.value.details["problems"]) == 2


def _load(target: str, number: int) -> str:
    with Decklog.open(target) as log:
        try:
            return str(log.workflow.load(small(name=f"small {number}", models={"writer": f"w{number}", "reader": "r"})).number)
        except Conflict:
            return "conflict"


@pytest.mark.slow
def test_processes_that_load_at_once_leave_one_whole_workflow(log: Decklog, target: str) -> None:
    results = shared_out(_load, [(target, number) for number in range(4)])
    numbers = [int(result) for result in results if result != "conflict"]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    newest = log.workflow.versions()[0]
    assert log.workflow.models()[1].model == "w" + newest.name.removeprefix("small ")
    assert log.journal.verify().ok


# Markers


def test_a_prompt_must_hold_every_marker(log: Decklog) -> None:
    marker = next(marker for marker in log.workflow.markers() if marker.agent == "tech_lead")
    assert marker.required == ["APPROVED", "APPROVED_WITH_NOTES", "CHANGES_REQUESTED", "SPAWN_INVESTIGATOR"]
    whole = "\n".join(marker.required + marker.workflow)
    assert log.workflow.check_prompt("tech_lead", whole)["ok"]
    checked = log.workflow.check_prompt("tech_lead", whole.replace("CHANGES_REQUESTED", "").replace("Tech Lead → PM", ""))
    assert checked == {
        "agent": "tech_lead",
        "ok": False,
        "missing_required": ["CHANGES_REQUESTED"],
        "missing_workflow": ["Tech Lead → PM"],
    }


@pytest.mark.parametrize(
    ("agent", "text", "missing"),
    [
        ("qa_expert", "PASSWORD FAILURE BLOCKED Challenge Level", ["PASS", "FAIL"]),
        ("qa_expert", "pass PASS, FAIL. (BLOCKED) Challenge Level", []),
        ("tech_lead", "APPROVED_WITH_NOTES CHANGES_REQUESTED SPAWN_INVESTIGATOR", ["APPROVED"]),
    ],
)
def test_a_marker_stands_by_itself(log: Decklog, agent: str, text: str, missing: list[str]) -> None:
    assert log.workflow.check_prompt(agent, text)["missing_required"] == missing


def test_every_agent_that_reports_has_markers(log: Decklog) -> None:
    for agent in {step.agent for step in log.workflow.transitions()}:
        assert log.workflow.check_prompt(agent, "")["missing_required"]
    with pytest.raises(NotFound, match="janitor"):
        log.workflow.check_prompt("janitor", "x")


# Drawings


def test_the_drawing_shows_every_agent_and_every_report(log: Decklog) -> None:
    picture = log.workflow.draw(format="svg")
    root = ElementTree.fromstring(picture)
    words = " ".join(text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text"))
    for step in log.workflow.transitions():
        assert step.status in words
    arrows = [path for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("marker-end")]
    assert len(arrows) == 47
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_the_mermaid_text_has_an_arrow_for_each_pair(log: Decklog) -> None:
    text = log.workflow.draw()
    pairs = {(step.agent, step.next_agent, step.action == "pause_for_user") for step in log.workflow.transitions()}
    assert text.startswith("flowchart LR\n")
    assert text.count("-->") == len(pairs)
    assert 'n_qa_expert -->|"BLOCKED<br/>FLAKY<br/>PARTIAL<br/>PASS"| n_tech_lead' in text


def test_drawings_do_not_depend_on_where_the_workflow_is_kept(log: Decklog) -> None:
    before = log.workflow.draw(format="svg"), log.workflow.draw()
    log.workflow.load()
    assert (log.workflow.draw(format="svg"), log.workflow.draw()) == before
    with pytest.raises(Invalid):
        log.workflow.draw(format="oil")


def test_a_drawing_can_not_be_broken_by_a_name(log: Decklog) -> None:
    log.workflow.load(small(models={"writer": '<b>&"', "reader": "x"}))
    ElementTree.fromstring(log.workflow.draw(format="svg"))
    assert 'n_writer["writer (<b>&\')"]' in log.workflow.draw()
