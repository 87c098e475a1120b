"""The fast encodings of entries and payloads equal the plain ones."""

import random
from typing import Any

import pytest

from decklog import Decklog, Invalid, Task
from decklog.journal import chain
from decklog.journal.rows import COLUMNS
from decklog.records.values import to_json
from tests.stores.claiming import claimed

OFTEN: dict[str, tuple[Any, ...]] = {
    "kind": ("change", "interaction"),
    "key": (None, None, 'a "key"', "ключ"),
    "record_id": (None, "task_1"),
    "task_id": (None, "task_1"),
    "body": (None, "done", "é" * 70),
    "payload": (None, '{"a":1}'),
    "iteration": (None, None, 2),
    "redacted": (0, 0, 1),
}


def test_every_entry_is_written_down_as_its_canonical_text() -> None:
    chance = random.Random(11)
    for seq in range(1, 2000):
        entry = dict.fromkeys(COLUMNS) | {name: chance.choice(values) for name, values in OFTEN.items()}
        entry |= {"pos": seq, "stream": "run_1", "seq": seq, "at": "2026-01-01T00:00:00.000000Z"}
        digests = {name: chain.digest(entry[name]) for name in ("body", "payload")}
        hashed = entry | digests | {"redacted": entry["redacted"] or None}
        canonical = to_json({name: hashed[name] for name in chain.FIELDS if hashed[name] is not None})
        assert (
            chain.hash_row("before", tuple(entry.values()))
            == chain.digest("before" + canonical)
            == chain.hash_entry("before", entry)
        )


@pytest.mark.parametrize(("column", "value"), [("body", b"done"), ("payload", 7), ("body", 1.5), ("payload", b"{}")])
def test_a_damaged_text_does_not_follow(column: str, value: object) -> None:
    entry = dict.fromkeys(COLUMNS) | {"pos": 1, "stream": "run_1", "seq": 1, "at": "2026-01-01T00:00:00.000000Z", "redacted": 0}
    entry |= {"kind": "change", "record_table": "tasks", "record_id": "task_1", "body": "done", "payload": "{}"}
    assert chain.find_mismatch("", tuple((entry | {column: value}).values())) == column


def test_image_is_canonical_json_or_refused() -> None:
    names = ("title", "id", "fence", "removed")
    for row in (('a "title"', "é", 1, True), ("", "t", 2**62, False), ("\n", "t", 1.5, None)):
        values = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        assert Task.image_of(names, row) == to_json(values)
    for wrong in (b"bytes", float("nan")):
        with pytest.raises(Invalid, match="JSON"):
            Task.image_of(("id", "fence"), ("t", wrong))


def test_record_is_equal_before_and_after_decoding(log: Decklog, run_id: str) -> None:
    added = log.tasks.add(run_id, "one", tags=["a"])
    claim = claimed(log, run_id, worker="w")
    assert claim.task.raw("state") == "running"
    assert (claim.task.id, claim.task.fence, claim.task.worker) == (added.id, 1, "w")
    assert claim.task == log.tasks.get(added.id)
    assert claim.task.raw("tags") == '["a"]'
    assert claim.task.raw("fence") == 1
    with pytest.raises(AttributeError, match="has no 'colour'"):
        claim.task.colour  # noqa: B018
