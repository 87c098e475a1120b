import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decklog import Decklog, Denied, Invalid, Unproven
from decklog.stores.approvals.trust import signatures
from decklog.stores.approvals.trust.proofs import Proofs
from decklog.stores.approvals.trust.signatures import is_signed
from tests.passwords import REAL_COST
from tests.registry import operations
from tests.stores.approvals.trust.trust_desk import Desk, Key

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
PASSWORD = "correct horse " + "battery staple"


def asked(log: Decklog, about: str = "rm -r build") -> str:
    return log.approvals.ask("run_1", f"May I {about}?", by="dev", about=about).id


def doubtful(log: Decklog) -> str:
    effect = log.effects.intend("run_1", "push", "git", key=f"k{len(log.effects.find('run_1'))}", actor="host:1")
    return log.effects.doubt(effect.id, actor="host:1").id


# What only the owner does, each as an attempt on a log where everything is prepared.
ACTS: dict[str, Callable[[Decklog], Callable[[], object]]] = {
    "approvals.decide": lambda log: _of(asked(log), lambda it: log.approvals.decide(it, "granted", by="ana")),
    "budgets.set": lambda log: lambda: log.budgets.set("run", scope_id="run_1", limit_microdollars=10),
    "budgets.lift": lambda log: _of(log.budgets.set("all", limit_microdollars=10).id, log.budgets.lift),
    "prices.set": lambda log: lambda: log.prices.set("m", 1, 2),
    "prices.load": lambda log: (
        lambda: log.prices.load([{"model": "m", "valid_from": "2026-01-01T00:00:00Z", "input_price": 1, "output_price": 2}])
    ),
    "prices.withdraw": lambda log: _of(
        log.prices.set("old", 1, 2, valid_from=JANUARY).model, lambda it: log.prices.withdraw(it, JANUARY)
    ),
    "workflow.load": lambda log: lambda: log.workflow.load(by="ana"),
    "notices.add_rule": lambda log: lambda: log.notices.add_rule("done", "command", target=["true"]),
    "notices.remove_rule": lambda log: _of(
        log.notices.add_rule("failure", "command", target=["true"]).id, log.notices.remove_rule
    ),
    "effects.reconcile": lambda log: _of(doubtful(log), lambda it: log.effects.reconcile(it, "no", by="ana")),
}


def _of(thing: str, act: Callable[[str], object]) -> Callable[[], object]:
    return lambda: act(thing)


@pytest.mark.parametrize("name", sorted(ACTS))
def test_with_an_owner_bound_only_the_owners_proof_lets_it_happen(desk: Desk, name: str) -> None:
    act = ACTS[name](desk.log)
    desk.bind()
    with pytest.raises(Unproven, match="ana alone"):
        act()
    with desk.proving("mallory"), pytest.raises(Unproven, match="not the key of ana"):
        act()
    assert desk.log.proofs.find() == []
    with desk.proving():
        act()
    (proof,) = desk.log.proofs.find()
    assert proof.operation == name
    assert is_signed(proof.statement, proof.signature, desk.keys["owner"].public)
    assert desk.log.journal.verify().ok


# Steps of trust have signed statements of their own; tests/stores/approvals/trust/test_forged_trust.py forges each of them.
STEPS_OF_TRUST = {"trust.bind", "trust.apply"}


def owner_only() -> set[str]:
    return {f"{store}.{operation.name}" for store, operation in operations() if operation.owner_only}


def tables_written(log: Decklog, act: Callable[[], object]) -> set[str]:
    """Name the tables that an act writes, as its entries tell."""

    def count() -> Counter[str]:
        sql = "select record_table, count(*) from entries where record_table is not null group by record_table"
        return Counter(dict(log.db.read(lambda: log.db.rows(sql, {})[1])))

    before = count()
    act()
    return set(count() - before)


def test_every_owner_only_verb_is_tried_here() -> None:
    assert owner_only() == {*ACTS, *STEPS_OF_TRUST}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(owner_only() - STEPS_OF_TRUST))
def test_every_table_an_owner_only_verb_writes_needs_a_signature(desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each verb unsigned, as a program can that leaves the check out: verify names every table it wrote."""
    act = ACTS[name](desk.log)
    desk.bind()
    monkeypatch.setattr(Proofs, "run_signed", lambda _self, _operation, _arguments, act: act())
    written = tables_written(desk.log, act)
    assert written, f"{name} writes nothing"
    unmanaged = {table for table in written if not desk.log.record_classes()[table].is_managed}
    assert unmanaged == set(), f"{name} writes tables that need no signature"
    reported = {problem.table for problem in desk.log.journal.verify().problems}
    assert written <= reported, f"{name} unsigned is not reported in {written - reported}"


def test_every_table_that_needs_a_signature_is_written_by_an_owner_only_verb(desk: Desk) -> None:
    written = {table for name in ACTS for table in tables_written(desk.log, ACTS[name](desk.log))}
    managed = {table for table, record_class in desk.log.record_classes().items() if record_class.is_managed}
    assert managed == written


def test_without_an_owner_the_verbs_work_and_say_that_nothing_is_proven(desk: Desk) -> None:
    for act in ACTS.values():
        act(desk.log)()
    assert [approval.as_dict()["is_proven"] for approval in desk.log.approvals.find()] == [False]
    assert all(not budget.as_dict()["is_proven"] for budget in desk.log.budgets.find())
    assert desk.log.journal.verify().ok


@pytest.mark.slow
def test_what_was_decided_before_the_binding_stays_and_needs_no_proof(desk: Desk) -> None:
    for act in ACTS.values():
        act(desk.log)()
    desk.bind()
    assert desk.log.journal.verify().ok
    with desk.proving():
        desk.log.budgets.set("run", scope_id="run_1", limit_microdollars=20)
    assert desk.log.journal.verify().ok


def test_a_proof_names_the_log_the_operation_and_exactly_what_changed(desk: Desk) -> None:
    desk.bind()
    with desk.proving():
        budget = desk.log.budgets.set("run", scope_id="run_1", limit_microdollars=10)
    said = json.loads(desk.log.proofs.get(budget.proof or "").statement)
    assert (said["purpose"], said["operation"], said["owner"]) == ("decklog-proof-1", "budgets.set", "ana")
    assert (said["log"], said["nonce"]) == (desk.trust.show()["log_id"], budget.proof)
    assert len(said["changes"]) == 1
    assert budget.as_dict()["is_proven"]


def test_what_changes_nothing_leaves_no_proof(desk: Desk) -> None:
    approval = asked(desk.log)
    desk.bind()
    with desk.proving():
        desk.log.approvals.decide(approval, "granted", by="ana")
        assert desk.log.approvals.decide(approval, "granted", by="ana").already
    assert len(desk.log.proofs.find()) == 1


def test_an_act_that_fails_leaves_neither_change_nor_proof(desk: Desk) -> None:
    desk.bind()
    with desk.proving(), pytest.raises(Invalid):
        desk.log.prices.load([{"model": "m", "valid_from": "2026-01-01T00:00:00Z", "input_price": 1, "output_price": 2}, {}])
    assert desk.log.proofs.find() == []
    assert desk.log.journal.verify().ok


# Passwords


@pytest.mark.slow
def test_a_password_proves_what_the_owner_does_and_is_nowhere_kept(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = desk.log
    monkeypatch.setattr(signatures, "_SCRYPT", REAL_COST)
    contract = log.trust.bind("ana", "cli", password=PASSWORD)
    assert contract.phrase is not None
    assert contract.phrase.startswith("scrypt 32768 8 1 ")
    approval = asked(log)
    with log.proving(password="not the " + "right one"), pytest.raises(Unproven, match="not the password of ana"):
        log.approvals.decide(approval, "granted", by="ana")
    with log.proving(password=PASSWORD):
        assert log.approvals.decide(approval, "granted", by="ana").is_proven
    assert log.journal.verify().ok
    shown = json.dumps([entry.as_dict() for entry in log.journal.find("@desk", limit=100)])
    assert PASSWORD not in shown
    assert "battery" not in shown


def test_a_password_is_not_too_short_and_not_beside_a_key(desk: Desk, keys: dict[str, Key]) -> None:
    with pytest.raises(Invalid, match="12 characters"):
        desk.trust.bind("ana", "cli", password="too short")
    with pytest.raises(Invalid, match="or a password"):
        desk.trust.bind("ana", "cli", keys["owner"].public, password=PASSWORD)
    with pytest.raises(Invalid, match="or a password"):
        desk.trust.bind("ana", "cli")
    with pytest.raises(Invalid, match="a key or a password"), desk.log.proving():
        pass
    desk.bind()
    with desk.log.proving(password=PASSWORD), pytest.raises(Denied, match="not a password"):
        desk.log.budgets.set("all", limit_tokens=5)


@pytest.mark.slow
def test_who_takes_over_from_a_password_proves_with_a_key(desk: Desk) -> None:
    log = desk.log
    log.trust.bind("ana", "cli", password=PASSWORD)
    over = log.trust.propose("hand-over", "on leave", handle="ben", channel="cli", public_key=desk.keys["next"].public)
    with log.proving(password=PASSWORD):
        contract = log.trust.apply(over.statement)
    assert (contract.handle, contract.phrase) == ("ben", None)
    with log.proving(password=PASSWORD), pytest.raises(Denied):
        log.budgets.set("all", limit_tokens=5)
    with desk.proving("next"):
        log.budgets.set("all", limit_tokens=5)
    assert log.journal.verify().ok


# Approvals are used up


def test_a_grant_is_good_for_one_use(desk: Desk) -> None:
    approval = desk.log.approvals.get(asked(desk.log))
    digest = approval.subject_digest or ""
    assert desk.log.approvals.use("run_1", digest) is None
    desk.log.approvals.decide(approval.id, "granted", by="ana")
    assert desk.log.approvals.granted_for("run_1", digest) is not None
    used = desk.log.approvals.use("run_1", digest)
    assert used is not None
    assert (used.id, used.uses, used.uses_left) == (approval.id, 1, 0)
    assert desk.log.approvals.use("run_1", digest) is None
    assert desk.log.approvals.granted_for("run_1", digest) is None
    assert desk.log.journal.verify().ok


def test_a_grant_may_be_for_several_uses_or_for_a_time(desk: Desk) -> None:
    log, now = desk.log, desk.clock.now()
    several, timed = log.approvals.get(asked(log)), log.approvals.get(asked(log, "other"))
    log.approvals.decide(several.id, "granted", by="ana", uses=2)
    assert [log.approvals.use("run_1", several.subject_digest or "") is not None for _ in range(3)] == [True, True, False]
    assert log.approvals.decide(timed.id, "granted", by="ana", valid_seconds=600).valid_until > now
    assert [log.approvals.use("run_1", timed.subject_digest or "") is not None for _ in range(3)] == [True] * 3
    desk.clock.advance(minutes=10)
    assert log.approvals.use("run_1", timed.subject_digest or "") is None


@pytest.mark.parametrize("bad", [{"uses": 0}, {"valid_seconds": 0}, {"valid_seconds": -1}, {"uses": 10**7}])
def test_a_grant_for_no_use_or_no_time_is_refused(desk: Desk, bad: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        desk.log.approvals.decide(asked(desk.log), "granted", by="ana", **bad)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="only a grant"):
        desk.log.approvals.decide(asked(desk.log, "x"), "denied", by="ana", uses=2)


def test_a_grant_from_before_the_binding_lets_nothing_pass_any_more(desk: Desk) -> None:
    approval = desk.log.approvals.get(asked(desk.log))
    desk.log.approvals.decide(approval.id, "granted", by="ana")
    desk.bind()
    assert desk.log.approvals.use("run_1", approval.subject_digest or "") is None


@pytest.mark.slow
def test_a_proven_grant_is_used_and_a_fork_has_no_copy_that_counts(desk: Desk) -> None:
    log = desk.log
    desk.bind()
    approval = log.approvals.get(asked(log))
    with desk.proving():
        log.approvals.decide(approval.id, "granted", by="ana")
    fork = log.runs.fork("run_1")
    assert log.approvals.find(fork.id) == []
    assert log.approvals.use(fork.id, approval.subject_digest or "") is None
    assert log.approvals.use("run_1", approval.subject_digest or "") is not None
    (copy,) = log.approvals.find(log.runs.fork("run_1").id)
    assert (copy.state, copy.is_proven) == ("granted", False)
    assert log.approvals.use(copy.run_id, approval.subject_digest or "") is None
    assert log.journal.verify().ok


def test_proofs_move_with_the_log(desk: Desk, tmp_path: Path) -> None:
    from decklog.transfer.move import Move

    desk.bind()
    with desk.proving():
        desk.log.budgets.set("run", scope_id="run_1", limit_microdollars=10)
        desk.log.prices.set("m", 1, 2, valid_from=JANUARY)
    with Decklog.open(str(tmp_path / "moved.db")) as target:
        Move(desk.log, target).run()
        assert target.journal.verify().ok
        with pytest.raises(Unproven):
            target.budgets.set("run", scope_id="run_1", limit_microdollars=20)


def test_what_is_signed_is_kept_whatever_its_digests_look_like(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random letters look like a secret once in some hundred times; here they do every time."""
    taken = "hunter2" * 5

    def scan(text: str) -> tuple[str, bool]:
        clean = re.sub(r"[A-Za-z0-9+/=]{32,}", "[redacted:secret]", text)
        return clean, clean != text

    desk.bind()
    monkeypatch.setattr("decklog.redaction.scan", scan)
    desk.promote()
    with desk.proving():
        desk.log.budgets.set("run", scope_id="run_1", limit_microdollars=10)
    over = desk.trust.propose(
        "hand-over", f"on leave {taken}", handle="ben", channel=f"mail {taken}", public_key=desk.keys["next"].public
    )
    assert taken not in over.statement
    desk.trust.apply(over.statement, desk.sign(over.statement))
    with desk.proving("next"):
        desk.log.budgets.set("run", scope_id="run_1", limit_microdollars=20)
    assert desk.log.journal.verify().problems == []
    assert desk.tier() == 1
