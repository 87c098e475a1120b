"""A reader who was not there understands what an entry says."""

import json
from typing import Any

import pytest

from decklog.journal.replication import FIELDS
from decklog.transfer.report.words import describe_entry


def entry(**given: Any) -> dict[str, Any]:
    payload = given.pop("payload", None)
    return {**dict.fromkeys(FIELDS), "kind": "event", "payload": payload and json.dumps(payload), **given}


def change(table: str, did: str, image: dict[str, Any], body: str | None = None) -> dict[str, Any]:
    return entry(kind="change", record_table=table, record_id="x", subtype=did, payload=image, body=body)


@pytest.mark.parametrize(
    ("given", "text", "tone"),
    [
        (entry(kind="interaction", body="hello"), "hello", ""),
        (entry(kind="reasoning", phase="decisions", body="Use RE2"), "Decisions: Use RE2", ""),
        (entry(subtype="deployed", payload={"host": "a", "took": 3, "deep": {}}), "deployed: host a, took 3", ""),
        (entry(subtype="budget_overdrawn", body="spent it"), "budget overdrawn: spent it", "bad"),
        (entry(kind="tool", body="looked around"), "looked around", ""),
        (entry(kind="tool", payload={"command": ["git", "log", "a b"], "exit_code": 0}), "$ git log 'a b' → exit 0", "good"),
        (
            entry(kind="tool", payload={"tool": "run", "arguments": {"command": "make"}, "error": {"message": "denied"}}),
            "$ make → refused or failed: denied",
            "bad",
        ),
        (
            entry(kind="tool", payload={"tool": "run", "arguments": {"command": "x"}, "result": {"signal": "SIGKILL"}}),
            "$ x → ended by SIGKILL",
            "bad",
        ),
        (
            entry(kind="tool", payload={"tool": "read_file", "arguments": {"path": "a.py"}, "result": "…"}),
            "read_file a.py → done",
            "good",
        ),
        (entry(kind="tool", payload_digest="ab"), "(a long text, kept apart or dropped; SHA-256 ab)", ""),
        (change("runs", "changed", {"status": "failed", "ended_at": "t", "summary": "no"}), "The run is failed: no", "bad"),
        (change("charges", "added", {"model": "m", "output_tokens": 1}), "Spent an unknown amount on m (1 token)", "money"),
        (
            change("charges", "added", {"model": "m", "cost_microdollars": 5000, "agent": "bo", "is_late": 1}),
            "bo spent $0.005 on m (0 tokens), after the task was lost",
            "bad",
        ),
        (change("tasks", "changed", {"title": "T", "state": "pending"}, "failed: boom"), "“T” failed: boom", "bad"),
        (
            change("tasks", "changed", {"title": "T", "worker": "bo", "attempts": 2}, "claimed by bo"),
            "bo took on “T”, attempt 2",
            "",
        ),
        (change("approvals", "changed", {"question": "Q", "state": "expired"}), "Nobody answered expired: Q", "bad"),
        (
            change("criteria", "changed", {"criterion": "C", "is_stale": 1, "stale_reason": "old"}),
            "No longer proven: C: old",
            "bad",
        ),
        (change("task_comments", "added", {"author": "ana", "body": "Why?"}), "ana remarked on a task: Why?", ""),
        (change("artifacts", "added", {"kind": "patch", "path": "a.diff"}), "Made patch: a.diff", ""),
    ],
)
def test_an_entry_is_told_in_words(given: dict[str, Any], text: str, tone: str) -> None:
    said = describe_entry(given)
    assert (said.text, said.tone, said.is_bookkeeping) == (text, tone, False)


@pytest.mark.parametrize(
    "given",
    [
        change("reservations", "added", {}),
        change("tasks", "changed", {"title": "T", "state": "running"}),
        change("approvals", "changed", {"question": "Q", "state": "granted"}, "used"),
        change("runs", "changed", {"status": "active"}),
        entry(subtype="imported.columns", body="kept"),
    ],
)
def test_what_only_keeps_the_books_is_folded_away(given: dict[str, Any]) -> None:
    assert describe_entry(given).is_bookkeeping


@pytest.mark.parametrize(
    "payload", ["[]", '"text"', "7", "not json", "null", '{"arguments": 7}', '{"arguments": {"command": 7}}']
)
@pytest.mark.parametrize("kind", ["tool", "event", "reasoning"])
def test_a_payload_of_any_shape_is_told(kind: str, payload: str) -> None:
    assert describe_entry({**entry(kind=kind), "payload": payload}).text
