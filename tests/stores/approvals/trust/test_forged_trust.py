"""Attacks by somebody who can write to the database: entries that are chained well and rows that match them, but no key."""

import json
from datetime import UTC, datetime

import pytest

from decklog import Decklog, Record
from decklog.journal import chain
from decklog.journal.attribution import change_digest
from decklog.records.values import to_json
from decklog.stores.approvals.approval import Approval
from decklog.stores.approvals.trust.proofs import Proof
from decklog.stores.approvals.trust.records import ChangeKind, TrustChange, TrustContract
from decklog.stores.approvals.trust.signatures import fingerprint, sign
from decklog.stores.money.records import Budget
from tests.stores.approvals.trust.trust_desk import Desk

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
THEN = "2026-01-01T00:00:00.000000Z"
HUGE = 10**9


def problems(log: Decklog) -> list[str]:
    return [problem.what for problem in log.journal.verify().problems]


def forged_change(desk: Desk, change_id: str, kind: ChangeKind, revision: int, details: dict[str, object]) -> None:
    contract_id = desk.trust.show()["log_id"]
    same = {"id": change_id, "contract_id": contract_id, "revision": revision, "kind": kind, "details": details}
    with desk.log.transaction():
        desk.trust._add(TrustChange, from_tier=0, to_tier=0, handle="ana", reason="forged", at=EARLY, **same)


def raise_revision(desk: Desk, by: int) -> None:
    """Rewrite the real binding's row, with an entry, so that another can take its revision."""
    (bind,) = desk.trust.history(kind=ChangeKind.BIND)
    sql = "update trust_changes set revision = revision + :by where id = :id returning *"
    with desk.log.transaction():
        desk.trust._change_all(TrustChange, sql, id=bind.id, by=by)


def set_budget_unsigned(desk: Desk, proof: str | None = None) -> str:
    """Write a budget past the verb, as a program with the file in its hands can."""
    fields = {"scope": "all", "period": "forever", "unit": "tokens", "ceiling": HUGE, "action": "warn", "warn_percent": 80}
    with desk.log.transaction():
        budget = desk.log.budgets._add(Budget, id="budget_forged", set_at=desk.clock.now(), proof=proof, **fields)
    return budget.id


def test_forged_binding_with_huge_heads_does_not_excuse_unsigned_budgets(desk: Desk) -> None:
    desk.bind()
    raise_revision(desk, 500)
    forged_change(desk, "tc_0", ChangeKind.BIND, 1, {"heads": {"@ledger": HUGE, "run_1": HUGE}})
    budget_id = set_budget_unsigned(desk, proof="00" * 16)
    found = problems(desk.log)
    assert any(f"budgets {budget_id} was changed" in what for what in found)
    assert any("tc_0" in what and "no step of the contract" in what for what in found)


def test_forged_nonce_does_not_show_as_proven(desk: Desk) -> None:
    desk.bind()
    budget_id = set_budget_unsigned(desk, proof="00" * 16)
    assert not desk.log.budgets.get(budget_id).is_proven
    assert [budget.is_proven for budget in desk.log.budgets.find()] == [False]
    decision = {"state": "granted", "verdict": "granted", "decided_by": "ana", "decided_at": EARLY, "proof": "00" * 16}
    approval = write_approval(desk, **decision)
    assert not desk.log.approvals.get(approval.id).is_proven
    assert not desk.log.approvals.show(approval.id)["is_proven"]


def test_forged_binding_is_found_by_verify_with_an_anchor(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    anchor = str(tmp_path_factory.mktemp("anchor") / "anchors")
    desk.bind()
    assert desk.log.journal.verify(anchor=anchor).ok
    raise_revision(desk, 500)
    forged_change(desk, "tc_0", ChangeKind.BIND, 1, {"heads": {"@ledger": HUGE}})
    set_budget_unsigned(desk)
    assert not desk.log.journal.verify(anchor=anchor).ok


def test_binding_rewritten_by_a_later_entry_keeps_its_first_heads(desk: Desk) -> None:
    desk.bind()
    (bind,) = desk.trust.history(kind=ChangeKind.BIND)
    sql = "update trust_changes set details = :details where id = :id returning *"
    with desk.log.transaction():
        desk.trust._change_all(TrustChange, sql, id=bind.id, details={"heads": {"@ledger": HUGE}})
    budget_id = set_budget_unsigned(desk)
    found = problems(desk.log)
    assert any(f"budgets {budget_id} was changed without" in what for what in found)
    assert any(bind.id in what for what in found)


@pytest.mark.parametrize("kind", [ChangeKind.PROMOTE, ChangeKind.DEMOTE, ChangeKind.BIND])
def test_trust_change_without_a_step_of_the_contract_is_reported(desk: Desk, kind: ChangeKind) -> None:
    desk.bind()
    forged_change(desk, "tc_zzz", kind, 2, {})
    assert any("tc_zzz" in what for what in problems(desk.log))


def test_step_of_the_contract_without_its_trust_change_is_reported(desk: Desk) -> None:
    desk.bind()
    desk.promote()
    with desk.log.transaction():
        desk.trust._set(desk.trust._bound(), {"tier": 0}, "lowered past the verb")
    assert any("has no entry in trust_changes" in what for what in problems(desk.log))


@pytest.mark.slow
def test_every_lawful_step_replays_with_its_trust_change(desk: Desk) -> None:
    desk.bind()
    desk.promote(2)
    on = desk.trust.propose("dev-mode", "for a day", is_on=True).statement
    desk.trust.apply(on, desk.sign(on))
    desk.trust.stop_dev_mode()
    desk.trust.demote()
    desk.promote()
    hand_over(desk)
    assert problems(desk.log) == []


def hand_over(desk: Desk) -> None:
    over = desk.trust.propose("hand-over", "on leave", handle="ben", channel="cli", public_key=desk.keys["next"].public).statement
    desk.trust.apply(over, desk.sign(over))


def grant_by_old_key(desk: Desk, stream: str) -> str:
    """Grant a question under a statement that the replaced key signs, and record the statement in a stream."""
    log, key = desk.log, desk.keys["owner"]
    asked = log.approvals.ask("run_1", "May I?", by="dev", about="rm -r build")
    nonce = "ab" * 16
    decision = {"state": "granted", "verdict": "granted", "decided_by": "ana", "decided_at": THEN, "proof": nonce, "max_uses": 1}
    image = {**json.loads(newest_image(log, Approval, asked.id)), **decision}
    log_id, operation = desk.trust.show()["log_id"], "approvals.decide"
    said = {"purpose": "decklog-proof-1", "log": log_id, "revision": 1, "owner": "ana", "key": fingerprint(key.public)}
    changes = [change_digest("approvals", asked.id, to_json(image))]
    statement = to_json({**said, "operation": operation, "arguments": "", "changes": changes, "nonce": nonce, "at": THEN})
    signed = {"statement": statement, "signature": sign(statement, key.path), "proved_at": THEN}
    proof = {"nonce": nonce, "contract_id": log_id, "operation": operation, **signed}
    with log.transaction():
        columns = ", ".join(f"{name} = :{name}" for name in image)
        log.db.rows(f"update approvals set {columns} where id = :id returning id", image)
        write_entry(log, Approval, image, "run_1", refs=f'["proof:{nonce}"]')
        log.db.count(f"insert into proofs ({', '.join(proof)}) values ({', '.join(':' + name for name in proof)})", proof)
        write_entry(log, Proof, proof, stream)
    return asked.id


def newest_image(log: Decklog, record_class: type[Record], record_id: str) -> str:
    sql = "select payload from entries where record_table = :table and record_id = :id order by seq desc limit 1"
    row = log.db.read(lambda: log.db.one(sql, {"table": record_class.table, "id": record_id}))
    assert row is not None
    return str(row[0])


def write_entry(log: Decklog, record_class: type[Record], image: dict[str, object], stream: str, refs: str | None = None) -> None:
    """Append an entry about a record to any stream, chained as it should be."""
    writer = log.parts.writer
    columns = list(writer.build_change_entry(record_class, tuple(image), tuple(image.values()), "changed", None, False))
    columns[chain.STREAM] = stream
    columns[chain.REFS] = refs
    writer.write([columns])


@pytest.mark.parametrize("stream", ["run_2", "run_1", "@ledger", "@desk"])
def test_old_key_signature_does_not_count_in_any_stream_after_a_hand_over(desk: Desk, stream: str) -> None:
    desk.bind()
    hand_over(desk)
    desk.log.runs.start("Another", run_id="run_2")
    desk.log.journal.append("@ledger", "one")
    desk.log.journal.append("@ledger", "two")
    approval = desk.log.approvals.get(grant_by_old_key(desk, stream))
    assert approval.state == "granted"
    assert desk.log.approvals.granted_for("run_1", approval.subject_digest or "") is None
    assert any(f"approvals {approval.id} was changed" in what for what in problems(desk.log))


def test_old_key_signature_would_count_if_it_were_still_the_owners(desk: Desk) -> None:
    """Shows that only the hand-over takes the grant above away."""
    desk.bind()
    approval = desk.log.approvals.get(grant_by_old_key(desk, "@desk"))
    assert desk.log.approvals.granted_for("run_1", approval.subject_digest or "") is not None
    assert problems(desk.log) == []


def test_contract_entry_in_another_stream_neither_counts_nor_stops_the_owner(desk: Desk) -> None:
    desk.bind()
    image = json.loads(newest_image(desk.log, TrustContract, desk.trust.show()["log_id"]))
    with desk.log.transaction():
        write_entry(desk.log, TrustContract, {**image, "public_key": desk.keys["mallory"].public}, "run_1")
    assert desk.trust.show()["owner"] == "ana"
    with desk.proving():
        desk.log.budgets.set("all", limit_tokens=5)
    assert any("in a stream that is not its own" in what for what in problems(desk.log))


def test_decision_written_into_another_stream_is_reported(desk: Desk) -> None:
    desk.bind()
    with desk.proving():
        budget = desk.log.budgets.set("all", limit_tokens=5)
    image = json.loads(newest_image(desk.log, Budget, budget.id))
    with desk.log.transaction():
        write_entry(desk.log, Budget, image, "run_1")
    assert any("in a stream that is not its own" in what for what in problems(desk.log))


def write_approval(desk: Desk, **fields: object) -> Approval:
    """Add an approval past the verbs."""
    given = {"id": "apr_forged", "run_id": "run_1", "number": 1, "asked_by": "dev", "question": "May I?", "asked_at": EARLY}
    with desk.log.transaction():
        return desk.log.approvals._add(Approval, **{**given, "subject_digest": "0" * 64, **fields})


@pytest.mark.parametrize("good_for", [{}, {"max_uses": 5}, {"valid_until": datetime(2099, 1, 1, tzinfo=UTC)}])
def test_unsigned_grant_with_a_digest_is_reported(desk: Desk, good_for: dict[str, object]) -> None:
    desk.bind()
    decision = {"state": "granted", "verdict": "granted", "decided_by": "ana", "decided_at": EARLY}
    write_approval(desk, **decision, **good_for)
    assert desk.log.approvals.granted_for("run_1", "0" * 64) is None
    assert any("apr_forged was changed without a proof" in what for what in problems(desk.log))


@pytest.mark.parametrize("column", ["question", "rationale", "asked_by", "payload", "source", "about_digest", "default_verdict"])
def test_decided_question_that_is_reworded_is_reported(desk: Desk, column: str) -> None:
    desk.bind()
    asked = desk.log.approvals.ask("run_1", "May I tidy up?", by="dev", about="rm -r build", expires_in_seconds=300)
    with desk.proving():
        desk.log.approvals.decide(asked.id, "granted", by="ana", uses=2)
    assert desk.log.approvals.use("run_1", asked.subject_digest or "") is not None
    assert problems(desk.log) == []
    new = {"payload": '{"other":1}', "about_digest": None, "default_verdict": "granted"}.get(column, "another")
    sql = f"update approvals set {column} = :new where id = :id returning *"
    with desk.log.transaction():
        desk.log.approvals._change_all(Approval, sql, id=asked.id, new=new)
    assert any(f"approvals {asked.id} was changed without a proof" in what for what in problems(desk.log))
    assert desk.log.approvals.granted_for("run_1", asked.subject_digest or "") is None


def test_uses_of_a_grant_that_are_taken_back_are_reported(desk: Desk) -> None:
    desk.bind()
    asked = desk.log.approvals.ask("run_1", "May I?", by="dev", about="rm -r build")
    with desk.proving():
        desk.log.approvals.decide(asked.id, "granted", by="ana")
    assert desk.log.approvals.use("run_1", asked.subject_digest or "") is not None
    with desk.log.transaction():
        desk.log.approvals._change_all(Approval, "update approvals set uses = 0 where id = :id returning *", id=asked.id)
    assert desk.log.approvals.use("run_1", asked.subject_digest or "") is None
    assert problems(desk.log) != []


def test_fork_of_a_run_with_decisions_of_every_kind_verifies(desk: Desk) -> None:
    log = desk.log
    desk.bind()
    asked = [log.approvals.ask("run_1", f"May I {number}?", by="dev", about=f"act {number}") for number in range(4)]
    ways = ({}, {"uses": 3}, {"valid_seconds": 300})
    with desk.proving():
        for one, way in zip(asked, ways, strict=False):
            log.approvals.decide(one.id, "granted", by="ana", **way)
        log.approvals.decide(asked[3].id, "denied", by="ana")
    desk.clock.advance(minutes=6)
    fork = log.runs.fork("run_1")
    assert problems(log) == []
    assert [log.approvals.granted_for(fork.id, one.subject_digest or "") for one in asked] == [None] * 4
