from datetime import UTC, datetime
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.core.errors import TooLarge
from decklog.stores.artifacts.states import InvestigationStatus


def test_a_document_comes_back_as_it_was_saved(log: Decklog, run_id: str, clock: ManualClock) -> None:
    document = {"phase": "build", "groups": [{"id": "A", "done": False}], "ratio": 0.5, "none": None, "text": "ü"}
    saved = log.states.save(run_id, "pm", document, agent="pm")
    assert (saved.version, saved.group_id, saved.agent, saved.saved_at) == (1, "global", "pm", clock.now())
    assert saved.document == document
    got = log.states.get(run_id, "pm")
    assert got == saved
    assert got.document == document
    assert got.as_dict()["document"] == document


@pytest.mark.parametrize("document", [None, "text", 'a {"quoted"} one', 0, 1.5, True, [], {}, [1, "two", None]])
def test_any_json_value_is_a_document(log: Decklog, run_id: str, document: object) -> None:
    log.states.save(run_id, "any", document)
    assert log.states.get(run_id, "any").as_dict()["document"] == document


def test_every_version_is_kept(log: Decklog, run_id: str) -> None:
    for number in range(5):
        assert log.states.save(run_id, "pm", {"step": number}).version == number + 1
    for number in range(5):
        assert log.states.get(run_id, "pm", version=number + 1).document == {"step": number}
    page = log.states.versions(run_id, "pm", limit=3)
    assert [each.version for each in page] == [5, 4, 3]
    assert [each.version for each in log.states.versions(run_id, "pm", limit=3, after=page.next)] == [2, 1]
    assert log.states.find(run_id)[0].version == 5
    assert "document" not in page[0].as_dict()


def test_the_same_content_again_is_no_new_version(log: Decklog, run_id: str) -> None:
    first = log.states.save(run_id, "pm", {"a": 1, "b": 2})
    again = log.states.save(run_id, "pm", {"b": 2, "a": 1}, expected_version=0)
    assert again == first
    assert again.already
    assert again.document == {"a": 1, "b": 2}
    assert log.states.save(run_id, "pm", {"a": 2}).version == 2
    back = log.states.save(run_id, "pm", {"a": 1, "b": 2})
    assert (back.version, back.digest, back.already) == (3, first.digest, False)


def test_who_saved_meanwhile_is_not_overwritten(log: Decklog, run_id: str) -> None:
    log.states.save(run_id, "pm", {"a": 1}, expected_version=0)
    log.states.save(run_id, "pm", {"a": 2}, expected_version=1)
    with pytest.raises(Conflict, match="version 2, not 1") as caught:
        log.states.save(run_id, "pm", {"a": 3}, expected_version=1)
    assert caught.value.details == {"expected_version": 1, "version": 2}
    with pytest.raises(Conflict):
        log.states.save(run_id, "pm", {"a": 3}, expected_version=0)
    with pytest.raises(Conflict, match="version 0, not 1"):
        log.states.save(run_id, "new", {"a": 3}, expected_version=1)
    assert log.states.get(run_id, "pm").document == {"a": 2}


def test_runs_groups_and_names_are_apart(log: Decklog, run_id: str) -> None:
    other = log.runs.start("another", run_id="run_2").id
    log.states.save(run_id, "group_status", 1)
    log.states.save(run_id, "group_status", 2, group_id="A")
    log.states.save(run_id, "pm", 3, group_id="A")
    log.states.save(other, "pm", 4, group_id="A")
    assert log.states.get(run_id, "group_status").document == 1
    assert log.states.get(run_id, "group_status", group_id="A").document == 2
    assert log.states.get(other, "pm", group_id="A").document == 4
    assert [(each.group_id, each.name) for each in log.states.find(run_id)] == [
        ("A", "group_status"),
        ("A", "pm"),
        ("global", "group_status"),
    ]
    assert [each.name for each in log.states.find(run_id, group_id="A", name="pm")] == ["pm"]
    with pytest.raises(NotFound):
        log.states.get(other, "pm")


@pytest.mark.parametrize("name", ["", " ", "a b", "x" * 65, "pm\n", "ü", "a/b"])
def test_a_bad_name_or_group_is_refused(log: Decklog, run_id: str, name: str) -> None:
    with pytest.raises(Invalid):
        log.states.save(run_id, name, {})
    with pytest.raises(Invalid):
        log.states.save(run_id, "pm", {}, group_id=name)
    with pytest.raises(Invalid):
        log.states.get(run_id, "pm", group_id=name)
    assert len(log.journal.find(run_id)) == 1


@pytest.mark.parametrize("group_id", ["global", "Global", "GLOBAL"])
def test_an_investigation_belongs_to_a_group(log: Decklog, run_id: str, group_id: str) -> None:
    with pytest.raises(Invalid, match="one group"):
        log.states.save(run_id, "investigation", {}, group_id=group_id)
    with pytest.raises(Invalid), log.transaction():
        log.db.rows(
            """
            insert into states (run_id, group_id, name, version, digest, updated_at)
            values (:run_id, :group_id, 'investigation', 1, 'x', '2026')
            """,
            {"run_id": run_id, "group_id": group_id},
        )
    assert log.states.save(run_id, "investigation", {}, group_id="A").version == 1


def test_unknown_things_are_not_found(log: Decklog, run_id: str) -> None:
    log.states.save(run_id, "pm", 1)
    for call in (
        lambda: log.states.get(run_id, "pm", version=2),
        lambda: log.states.get(run_id, "other"),
        lambda: log.states.diff(run_id, "pm", 1, 2),
        lambda: log.states.save("nobody", "pm", 1),
        lambda: log.states.get_checkpoint("chk_nothing"),
        lambda: log.states.checkpoint("nobody"),
        lambda: log.states.get_snapshot(run_id, "task_1"),
        lambda: log.states.save_snapshot("nobody", "t", {"task_id": "t", "paused_at": "2026-01-01T00:00:00Z", "reason": "x"}),
        lambda: log.states.record_investigation("nobody", "A", 1, InvestigationStatus.BLOCKED, {}, {}),
    ):
        with pytest.raises(NotFound):
            call()
    assert log.states.find("nobody") == []
    assert log.states.versions(run_id, "other") == []


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": "a\x00b"}, {"x": object()}, "half \ud800"])
def test_what_is_not_json_is_refused(log: Decklog, run_id: str, bad: object) -> None:
    with pytest.raises(Invalid):
        log.states.save(run_id, "pm", bad)
    assert len(log.journal.find(run_id)) == 1


def test_a_document_over_the_limit_is_refused(target: str) -> None:
    with Decklog.open(target, limit_bytes=1000) as log:
        log.runs.start("small", run_id="r")
        with pytest.raises(TooLarge):
            log.states.save("r", "pm", {"x": "y" * 1000})


def test_a_dropped_document_is_said_to_be_dropped(log: Decklog, run_id: str) -> None:
    saved = log.states.save(run_id, "pm", {"a": 1})
    with log.transaction():
        log.db.count("delete from blobs where digest = :digest", {"digest": saved.digest})
    with pytest.raises(NotFound, match="no longer kept"):
        log.states.get(run_id, "pm")


# Differences


def test_a_diff_names_what_was_added_removed_and_changed(log: Decklog, run_id: str) -> None:
    log.states.save(run_id, "pm", {"a": 1, "b": [1, 2, 3], "c": {"x": True, "y/z": "s"}, "same": [0]})
    log.states.save(run_id, "pm", {"a": 2, "b": [1, 9], "c": {"x": 1, "n~": None}, "same": [0]})
    assert log.states.diff(run_id, "pm", 1, 2) == [
        {"path": "/a", "change": "changed", "before": 1, "after": 2},
        {"path": "/b/1", "change": "changed", "before": 2, "after": 9},
        {"path": "/b/2", "change": "removed", "before": 3, "after": None},
        {"path": "/c/n~0", "change": "added", "before": None, "after": None},
        {"path": "/c/x", "change": "changed", "before": True, "after": 1},
        {"path": "/c/y~1z", "change": "removed", "before": "s", "after": None},
    ]
    assert log.states.diff(run_id, "pm", 2, 2) == []
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    back = log.states.diff(run_id, "pm", 2, 1)
    assert [(each["path"], turned[str(each["change"])]) for each in back] == [
        (each["path"], each["change"]) for each in log.states.diff(run_id, "pm", 1, 2)
    ]


# Investigations


def _investigate(log: Decklog, iteration: int, status: str = "under_investigation", group_id: str = "A") -> dict[str, Any]:
    return log.states.record_investigation(
        "run_1",
        group_id,
        iteration,
        status,  # type: ignore[arg-type]
        {"iteration": iteration, "status": status},
        {"found": f"something {iteration}"},
    )


def test_an_iteration_writes_its_state_and_its_event_together(log: Decklog, run_id: str) -> None:
    got = _investigate(log, 1)
    assert (got["state_saved"], got["event_saved"], got["version"], got["already"]) == (True, True, 1, False)
    saved = log.states.get(run_id, "investigation", group_id="A")
    assert saved.document == {"iteration": 1, "status": "under_investigation"}
    (event,) = log.journal.find(run_id, subtype="investigation_iteration")
    assert (event.id, event.group_id, event.agent, event.iteration) == (got["event_id"], "A", "investigator", 1)
    assert event.key == "run_1|A|investigation_iteration|1"
    assert event.body == "Investigation iteration 1: under_investigation"
    assert event.payload == {"found": "something 1"}


def test_neither_or_both(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid):
        log.states.record_investigation(run_id, "A", 1, InvestigationStatus.BLOCKED, {"x": float("nan")}, {"found": "x"})
    assert len(log.journal.find(run_id)) == 1
    assert log.states.find(run_id) == []


def test_a_repeated_or_older_iteration_never_takes_the_state_back(log: Decklog, run_id: str) -> None:
    _investigate(log, 1)
    third = _investigate(log, 3, "root_cause_found")
    again = _investigate(log, 1, "blocked")
    assert (again["already"], again["event_saved"], again["state_saved"], again["version"]) == (True, False, False, 2)
    late = _investigate(log, 2)
    assert (late["already"], late["event_saved"], late["state_saved"], late["version"]) == (False, True, False, 2)
    repeated = _investigate(log, 3, "blocked")
    assert (repeated["already"], repeated["event_id"]) == (True, third["event_id"])
    state = log.states.get(run_id, "investigation", group_id="A")
    assert state.document == {"iteration": 3, "status": "root_cause_found"}
    assert [event.iteration for event in log.journal.find(run_id, subtype="investigation_iteration")] == [2, 3, 1]
    assert _investigate(log, 4)["version"] == 3
    assert _investigate(log, 1, group_id="B")["state_saved"] is True
    assert log.journal.verify().ok


def test_an_iteration_whose_event_was_taken_over_from_elsewhere_does_not_write_the_state(log: Decklog, run_id: str) -> None:
    log.states.save(run_id, "investigation", {"taken": "over"}, group_id="A")
    event = {"kind": "event", "subtype": "investigation_iteration", "group_id": "A", "key": "run_1|A|investigation_iteration|2"}
    log.journal.append(run_id, "taken over", **event)  # type: ignore[arg-type]
    assert _investigate(log, 2)["state_saved"] is False
    assert log.states.get(run_id, "investigation", group_id="A").document == {"taken": "over"}


def test_a_plain_save_does_not_make_an_iteration_forgotten(log: Decklog, run_id: str) -> None:
    _investigate(log, 2)
    log.states.save(run_id, "investigation", {"by": "hand"}, group_id="A")
    assert _investigate(log, 1)["state_saved"] is False
    assert log.states.get(run_id, "investigation", group_id="A").document == {"by": "hand"}
    assert _investigate(log, 3)["state_saved"] is True


@pytest.mark.parametrize(
    "bad",
    [
        *({"iteration": iteration} for iteration in (0, 21, True, "1")),
        *({"status": "lost"}, {"group_id": "global"}, {"group_id": "A B"}, {"event": "text"}),
        {"event": None, "state": {"x": float("inf")}},
    ],
)
def test_a_bad_iteration_is_refused(log: Decklog, run_id: str, bad: dict[str, Any]) -> None:
    given: dict[str, Any] = {"group_id": "A", "iteration": 1, "status": "blocked", "state": {}, "event": {"found": 1}}
    with pytest.raises(Invalid):
        log.states.record_investigation(run_id, **(given | bad))
    assert len(log.journal.find(run_id)) == 1


# Checkpoints


def test_a_checkpoint_stands_at_an_entry(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.journal.append(run_id, "work")
    first = log.states.checkpoint(run_id, name="before merge", status="active", payload={"task": "t1"})
    assert (first.seq, first.number, first.name, first.status) == (2, 1, "before merge", "active")
    assert first.id.startswith("chk_")
    assert first.created_at == clock.now()
    log.journal.append(run_id, "more work")
    second = log.states.checkpoint(run_id)
    assert (second.seq, second.payload) == (4, {})
    assert log.states.get_checkpoint(first.id) == first
    assert log.states.get_checkpoint(first.id).payload == {"task": "t1"}
    assert [each.id for each in log.states.checkpoints(run_id)] == [second.id, first.id]
    assert [each.id for each in log.states.checkpoints(run_id, status="active")] == [first.id]
    assert [each.id for each in log.states.checkpoints(run_id, name="before merge")] == [first.id]
    assert log.journal.verify().ok


@pytest.mark.parametrize("payload", [{"x": "long " * 5000}, "text", 7, ["a"], None])
def test_a_payload_of_any_kind_and_length_is_kept(log: Decklog, run_id: str, payload: object) -> None:
    checkpoint = log.states.checkpoint(run_id, payload=payload)
    expected = {} if payload is None else payload
    assert checkpoint.payload == expected
    assert log.states.get_checkpoint(checkpoint.id).payload == expected


def test_a_checkpoint_with_a_known_key_or_id_is_not_made_again(log: Decklog, run_id: str) -> None:
    first = log.states.checkpoint(run_id, key="k", payload={"a": 1})
    again = log.states.checkpoint(run_id, key="k", payload={"a": 2})
    assert again == first
    assert again.already
    at = datetime(2025, 1, 1, tzinfo=UTC)
    imported = log.states.checkpoint(run_id, checkpoint_id="0a1b", created_at=at)
    assert (imported.id, imported.created_at) == ("0a1b", at)
    assert log.states.checkpoint(run_id, checkpoint_id="0a1b").already
    other = log.runs.start("another", run_id="run_2").id
    with pytest.raises(Conflict):
        log.states.checkpoint(other, checkpoint_id="0a1b")


# Paused tasks

PAUSED = {
    "task_id": "task_1",
    "paused_at": "2026-01-01T08:30:00Z",
    "reason": "a critical message came in",
    "tool_call_history": [{"tool": "grep", "args": {"pattern": "x"}, "result": "3 lines"}],
    "context_hash": "sha256-0a",
}


def test_a_snapshot_comes_back_whole(log: Decklog, run_id: str) -> None:
    saved = log.states.save_snapshot(run_id, "task_1", PAUSED)
    assert (saved.pauses, saved.reason) == (1, "a critical message came in")
    assert saved.paused_at == datetime(2026, 1, 1, 8, 30, tzinfo=UTC)
    got = log.states.get_snapshot(run_id, "task_1")
    assert got == saved
    assert got.document == PAUSED
    assert log.states.save_snapshot(run_id, "task_1", PAUSED).already
    second = log.states.save_snapshot(run_id, "task_1", PAUSED | {"reason": "lunch"})
    assert (second.pauses, second.reason, second.document) == (2, "lunch", PAUSED | {"reason": "lunch"})
    log.states.save_snapshot(run_id, "task_0", PAUSED | {"task_id": "task_0"})
    assert [each.task_id for each in log.states.snapshots()] == ["task_0", "task_1"]
    assert [each.pauses for each in log.states.snapshots(task_id="task_1")] == [2]
    assert log.states.snapshots(run_id="nobody") == []
    assert "document" not in log.states.snapshots()[0].as_dict()


@pytest.mark.parametrize(
    "bad",
    [
        {"paused_at": None},
        {"paused_at": "soon"},
        {"reason": " "},
        {"reason": 7},
        {"task_id": "task_2"},
        {"task_id": None},
        {"tool_call_history": "grep"},
        {"tool_call_history": [{"args": {}}]},
    ],
)
def test_a_snapshot_that_could_not_be_resumed_is_refused(log: Decklog, run_id: str, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.states.save_snapshot(run_id, "task_1", PAUSED | bad)
    assert log.states.snapshots() == []


@pytest.mark.parametrize("task_id", ["", " ", ".", "..", "a/b", "a\\b", "a\x00b", "a\nb", "x" * 201])
def test_a_task_that_could_not_name_a_file_is_refused(log: Decklog, run_id: str, task_id: str) -> None:
    with pytest.raises(Invalid):
        log.states.save_snapshot(run_id, task_id, PAUSED | {"task_id": task_id})
    with pytest.raises(Invalid):
        log.states.get_snapshot(run_id, task_id)


def test_a_snapshot_is_an_object(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid):
        log.states.save_snapshot(run_id, "task_1", ["task_1"])  # type: ignore[arg-type]


# The journal


def test_checkpoints_of_elsewhere_are_kept_together_as_each_would_be(log: Decklog, clock: ManualClock) -> None:
    secret = "ghp_" + "Zk3" * 12
    payloads: list[Any] = [{"a": 1}, {"said": f"Use {secret}"}, {"long": "x" * 10_000}, [1, "two"], None, "text"]
    for run_id in ("one", "other"):
        log.runs.start("Import", run_id=run_id)

    def build_row(run_id: str, number: int, payload: object) -> dict[str, Any]:
        named = {"id": f"{run_id}-{number}", "run_id": run_id, "status": f"step {number}"}
        return {**named, "payload": payload, "created_at": clock.now()}

    for number, payload in enumerate(payloads):
        given = build_row("one", number, payload)
        given["checkpoint_id"] = given.pop("id")
        log.states.checkpoint(given.pop("run_id"), **{**given, "payload": {} if payload is None else payload})
    batch = [build_row("other", number, {} if payload is None else payload) for number, payload in enumerate(payloads)]
    with log.transaction():
        assert log.states.import_checkpoints([*batch, batch[0]]) == [True] * len(payloads) + [False]

    def shown(run_id: str) -> list[dict[str, Any]]:
        found = [log.states.get_checkpoint(each.id).as_dict() for each in log.states.checkpoints(run_id)]
        return [{**each, "id": each["id"].removeprefix(run_id), "run_id": ""} for each in found]

    assert shown("one") == shown("other")
    assert secret not in str(shown("other"))
    assert log.journal.verify().ok
    with log.transaction():
        assert log.states.import_checkpoints(batch) == [False] * len(payloads)
    with pytest.raises(Conflict, match="belongs to run other"), log.transaction():
        log.states.import_checkpoints([{**batch[0], "run_id": "one"}])
