"""Keys that hold a secret: it does not stay, and two that differ do not become one."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from decklog import Decklog, Invalid
from decklog.cli.parameters import list_parameters
from tests.registry import operations

SECRETS = ["ghp" + "_" + letter * 4 + "1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q" for letter in "AZ"]

CALLS: dict[str, Callable[[Decklog, str, str], Any]] = {
    "journal.append": lambda log, run, key: log.journal.append(run, "said", key=key),
    "runs.start": lambda log, _, key: log.runs.start("Go on", key=key),
    "tasks.add": lambda log, run, key: log.tasks.add(run, "Parse commas", key=key),
    "templates.use": lambda log, run, key: log.templates.use("review", run, key=key)[0],
    "approvals.ask": lambda log, run, key: log.approvals.ask(run, "May I?", by="ada", about="a push", key=key),
    "approvals.record": lambda log, run, key: log.approvals.record(run, "chat", "granted", by="ana", key=key),
    "states.checkpoint": lambda log, run, key: log.states.checkpoint(run, payload={"at": 1}, key=key),
    "outputs.save": lambda log, run, key: log.outputs.save(run, "lint", {"found": 1}, key=key),
    "reservations.reserve": lambda log, run, key: log.reservations.reserve(tokens=5, run_id=run, key=key),
    "ledger.charge": lambda log, run, key: log.ledger.charge("m", output_tokens=5, cost_microdollars=1, run_id=run, key=key),
    "memory.adopt": lambda log, _, key: log.memory.adopt(
        f"lesson_{key[4]}",
        "adr_decisions",
        f"Commas are tokens {key[4]}",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        key=key,
    ),
    "memory.remember": lambda log, _, key: log.memory.remember("adr_decisions", f"Commas are {key[4]}", key=key),
    "learnings.note": lambda log, run, key: log.learnings.note("task_1", f"Seen {key[4]}", run_id=run, key=key),
    "context.save": lambda log, run, key: log.context.save(
        run, "research", f"{key[4]}.md", "developer", "What is known", consumers=["qa_expert"], key=key
    ),
    "inbox.post": lambda log, _, key: log.inbox.post("ana", "Look at this", key=key),
    "feedback.file": lambda log, _, key: log.feedback.file("ana", f"Too slow, {key[4]}", key=key),
    "effects.intend": lambda log, run, key: log.effects.intend(run, "rotate", "vault", key=key, actor="host:1"),
    "notices.note": lambda log, run, key: log.notices.note(
        log.notices.add_rule("done", "command", target=["true"]).id, key, "it is done", run_id=run
    ),
}


def test_every_verb_that_takes_a_key_is_here() -> None:
    takes = {
        f"{store}.{operation.name}"
        for store, operation in operations()
        if any(parameter.name == "key" for parameter in list_parameters(operation))
    }
    assert takes - {"effects.known"} == CALLS.keys()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_keys_that_differ_by_a_secret_stay_distinct(log: Decklog, run_id: str, name: str) -> None:
    log.tasks.add(run_id, "Parse", task_id="task_1")
    log.templates.save("review", [{"title": "Look"}]) if name == "templates.use" else None
    first, second, again = (CALLS[name](log, run_id, key) for key in (*SECRETS, SECRETS[0]))
    assert not second.already
    assert again.already or name == "notices.note"
    rows = log.db.read(lambda: [str(row) for table in _tables(log) for row in log.db.rows(f"select * from {table}", {})[1]])
    assert not [row for row in rows for secret in SECRETS if secret[4:] in row]
    assert first != second
    assert log.journal.verify().ok


def _tables(log: Decklog) -> list[str]:
    return ["entries", *log.journal.record_classes()]


def test_effect_is_found_by_its_key(log: Decklog, run_id: str) -> None:
    keys = ["rotate-secret:prod-db-1", "rotate-secret:prod-db-2"]
    meant = log.effects.intend(run_id, "rotate", "vault", key=keys[0], actor="host:1")
    assert log.effects.known(run_id, keys[0]) == meant
    assert log.effects.known(run_id, keys[1]) is None


def test_id_with_a_secret_is_refused(log: Decklog) -> None:
    with pytest.raises(Invalid, match="the id of a run looks like a secret"):
        log.runs.start("Go on", run_id=SECRETS[0])
    assert log.runs.find() == []
