"""What an agent of the owner's own system user can try, to give itself more: refused, or `verify` names what was touched.

The agent has the command line, Python with every private name, SQL on the open file, and the file itself. It has not the
owner's key.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from decklog import Approval, Budget, Decklog, DecklogError, ManualClock, Price, TrustContract, TrustProposal
from decklog.journal import chain
from decklog.journal.attribution import OwnerAct, owner_act
from decklog.journal.rows import COLUMNS
from decklog.stores.approvals.trust.proofs import Proof
from decklog.stores.approvals.trust.signatures import Signer, public_key_of, signer_of_file
from tests.stores.approvals.trust.trust_desk import Key

LATER = "2030-01-01T00:00:00.000000Z"
SAID = "the tests fail on main"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, Key]) -> Path:
    """A log with an owner, a tier, decisions that were proven, and questions that are open."""
    path = tmp_path_factory.mktemp("made") / "log.db"
    with Decklog.open(str(path), clock=ManualClock()) as log:
        log.runs.start("goal", run_id="run_1")
        log.prices.set("m", 1_000_000, 1_000_000)
        log.trust.bind("ana", "cli", keys["owner"].public)
        for name in ("open", "granted", "denied"):
            log.approvals.ask("run_1", f"May I {name}?", by="dev", about=name, subject=name, approval_id=f"apr_{name}")
        effect = log.effects.intend("run_1", "push", "git", key="k", actor="host:1")
        log.effects.doubt(effect.id, actor="host:1")
        with log.proving(key=keys["owner"].path):
            log.trust.apply(log.trust.propose("promote", "good work").statement)
            log.approvals.decide("apr_granted", "granted", by="ana")
            log.approvals.decide("apr_denied", "denied", by="ana")
            log.budgets.set("run", scope_id="run_1", limit_microdollars=1000)
            log.budgets.set("run", scope_id="run_1", limit_microdollars=10)
        log.journal.append("run_1", SAID)
        log.states.save("run_1", "pm", {"a": 1})
        log.ledger.charge("m", cost_microdollars=1, run_id="run_1")
        log.journal.index()
        assert log.journal.verify().ok
    return path


class Agent:
    """Has a copy of the log, and everything that a process of the same user has but the key."""

    def __init__(self, path: Path, keys: dict[str, Key]) -> None:
        self.path, self.keys = path, keys

    def open(self, **settings: object) -> Decklog:
        return Decklog.open(str(self.path), clock=ManualClock(), **settings)  # type: ignore[arg-type]

    def sql(self, *statements: str) -> None:
        connection = apsw.Connection(str(self.path))
        for statement in statements:
            connection.execute(statement)
        connection.close()

    def program(self, *words: str) -> None:
        environment = {**os.environ, "DECKLOG_DB": str(self.path)}
        done = subprocess.run(
            [sys.executable, "-m", "decklog", *words], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            raise DecklogError(done.stderr)

    @property
    def own(self) -> Signer:
        return signer_of_file(self.keys["mallory"].path)


Attempt = Callable[[Agent, Decklog], object]


def _forged(agent: Agent, log: Decklog, act: Callable[[], object], *, signature: str | None = None, **said: object) -> None:
    """Write under a proof of one's own making."""
    contract = log.trust._contract()
    assert contract is not None
    done = OwnerAct(os.urandom(16).hex())

    def attempt() -> None:
        token = owner_act.set(done)
        try:
            act()
        finally:
            owner_act.reset(token)
        statement = {
            "purpose": "decklog-proof-1",
            "log": contract.id,
            "revision": contract.revision,
            "nonce": done.nonce,
            "operation": "approvals.decide",
            "changes": done.changes,
            **said,
        }
        text = json.dumps(statement)
        fields = {"contract_id": contract.id, "operation": "approvals.decide", "proved_at": log.clock.now()}
        log.proofs._add(Proof, nonce=done.nonce, statement=text, signature=signature or agent.own.sign(text), **fields)

    log.db.write(attempt)


def _decide(log: Decklog, approval_id: str = "apr_open", proof: str | None = None) -> Approval:
    return log.db.write(
        lambda: log.approvals._change_all(
            Approval,
            """
            update approvals
               set state = 'granted', verdict = 'granted', decided_by = 'ana', decided_at = :now, proof = :proof, max_uses = 9
             where id = :id
            returning *
            """,
            id=approval_id,
            now=log.clock.now(),
            proof=proof,
        )[0]
    )


def _raise(log: Decklog) -> Budget:
    budget = log.budgets.find()[0]
    sql = "update budgets set ceiling = 1000000 where id = :id returning *"
    return log.db.write(lambda: log.budgets._change_all(Budget, sql, id=budget.id)[0])


def _set_contract(log: Decklog, terms: dict[str, object]) -> TrustContract:
    def change() -> TrustContract:
        contract = log.trust._contract()
        assert contract is not None
        return log.trust._set(contract, terms, "promote: it is fine")

    return log.db.write(change)


def _reused(log: Decklog, act: Callable[[], object]) -> None:
    """Write under a proof that the owner gave for something else."""
    done = OwnerAct(log.proofs.find(operation="approvals.decide")[0].nonce)
    token = owner_act.set(done)
    try:
        log.db.write(act)
    finally:
        owner_act.reset(token)


def _repeated(log: Decklog) -> None:
    """Write the very image once more that the owner proved before the budget was lowered."""
    first = log.proofs.find(operation="budgets.set")[-1]
    images = [entry for entry in log.journal.find("@ledger", limit=100) if f"proof:{first.nonce}" in (entry.refs or [])]
    image = images[0].payload
    assert isinstance(image, dict)
    token = owner_act.set(OwnerAct(first.nonce))
    sql = "update budgets set ceiling = :ceiling, set_at = :set_at, proof = :proof where id = :id returning *"
    same = {name: image[name] for name in ("ceiling", "set_at", "proof")}
    try:
        log.db.write(lambda: log.budgets._change_all(Budget, sql, id=image["id"], **same))
    finally:
        owner_act.reset(token)


def _swap_key(agent: Agent, log: Decklog) -> None:
    _set_contract(log, {"public_key": public_key_of(agent.keys["mallory"].public)})
    with log.proving(key=agent.keys["mallory"].path):
        log.trust.apply(log.trust.propose("promote", "by me").statement)


def _prolong(agent: Agent, log: Decklog) -> None:
    proposal = log.trust.propose("promote", "good work", expires_in_seconds=60)
    signature = log.trust.sign(proposal.statement, agent.keys["owner"].path)  # signed, and never used in its time
    agent.sql(f"update trust_proposals set expires_at = '{LATER}' where nonce = '{proposal.nonce}'")
    log.clock.advance(hours=2)  # type: ignore[attr-defined]
    log.trust.apply(proposal.statement, signature)


def _reapply(agent: Agent, log: Decklog) -> None:
    nonce = log.trust.history()[-1].nonce
    agent.sql(f"update trust_proposals set applied_at = null, signature = null where nonce = '{nonce}'")
    proposal = log.trust._fetch(TrustProposal, nonce or "")
    log.trust.demote()
    log.trust.apply(proposal.statement, "anything")


def _launder(agent: Agent, log: Decklog) -> None:
    agent.sql("update trust_contract set tier = 5")
    log.trust.demote(to_tier=4)


def _unbind(agent: Agent, log: Decklog) -> None:
    agent.sql("pragma foreign_keys = off", "delete from trust_contract")
    log.budgets.set("run", scope_id="run_1", limit_microdollars=10**6)


def _bind_again(agent: Agent, log: Decklog) -> None:
    agent.sql("pragma foreign_keys = off", "delete from trust_contract")
    log.trust.bind("mallory", "cli", agent.keys["mallory"].public)


def _use_twice(log: Decklog) -> None:
    digest = log.approvals.get("apr_granted").subject_digest or ""
    assert log.approvals.use("run_1", digest) is not None
    if log.approvals.use("run_1", digest) is None:
        raise DecklogError("it is used up")


def _back_dated(agent: Agent, _: Decklog) -> None:
    with Decklog.open(str(agent.path), clock=ManualClock(ManualClock().now() - timedelta(days=365))) as early:
        _decide(early)


def _use_what_is_forged(log: Decklog) -> None:
    _decide(log)
    if log.approvals.use("run_1", log.approvals.get("apr_open").subject_digest or "") is None:
        raise DecklogError("a grant without a proof lets nothing pass")


def _rewritten(agent: Agent) -> None:
    """Change what the journal says, the row with it, and every hash of the stream from there on."""
    connection = apsw.Connection(str(agent.path))
    names = "select name from sqlite_master where type = 'trigger' and tbl_name = 'entries'"
    for (name,) in connection.execute(names).fetchall():
        connection.execute(f"drop trigger {name}")
    connection.execute("update entries set payload = replace(payload, '\"ceiling\":10,', '\"ceiling\":9999,')")
    connection.execute("update budgets set ceiling = 9999")
    previous = chain.START
    sql = f"select {', '.join(COLUMNS)} from entries where stream = '@ledger' order by pos"
    for row in connection.execute(sql).fetchall():
        values = dict(zip(COLUMNS, row, strict=True))
        previous = chain.hash_entry(previous, values)
        connection.execute("update entries set hash_bytes = unhex(?) where pos = ?", (previous, values["pos"]))
    connection.close()


def _on_disk(agent: Agent, old: bytes, new: bytes) -> None:
    """Change a text wherever it stands in the file."""
    agent.sql("pragma wal_checkpoint(truncate)")
    agent.path.write_bytes(agent.path.read_bytes().replace(old, new))


def _copied_grant(log: Decklog) -> None:
    fork = log.runs.fork("run_1")
    if log.approvals.use(fork.id, log.approvals.get("apr_granted").subject_digest or "") is None:
        raise DecklogError("a copy lets nothing pass")


# The name of the attempt, and what `verify` names where it is not refused.
ATTEMPTS: list[tuple[str, str, Attempt]] = [
    # The command line
    ("cli: approve oneself", "", lambda a, _: a.program("approvals", "decide", "apr_open", "granted", "--by", "ana")),
    ("cli: approve with a key of one's own", "", lambda a, _: a.program(
        "approvals", "decide", "apr_open", "granted", "--by", "ana", "--key", a.keys["mallory"].path)),
    ("cli: raise a budget", "", lambda a, _: a.program("budgets", "set", "run", "--scope-id", "run_1", "--limit-tokens", "9")),
    ("cli: lift a budget", "", lambda a, log: a.program("budgets", "lift", log.budgets.find()[0].id)),
    ("cli: make a model cheap", "", lambda a, _: a.program("prices", "set", "m", "0", "0")),
    ("cli: load a workflow", "", lambda a, _: a.program("workflow", "load")),
    ("cli: clear an effect", "", lambda a, log: a.program("effects", "reconcile", log.effects.open()[0].id, "no", "--by", "ana")),
    ("cli: bind a second owner", "", lambda a, _: a.program("trust", "bind", "mallory", "cli", a.keys["mallory"].public)),
    ("cli: sign a promotion oneself", "", lambda a, log: a.program(
        "trust", "apply", log.trust.propose("promote", "me").statement, "--key", a.keys["mallory"].path)),
    # Python, with the verbs
    ("python: approve oneself", "", lambda _, log: log.approvals.decide("apr_open", "granted", by="ana")),
    ("python: turn a denial", "", lambda _, log: log.approvals.decide("apr_denied", "granted", by="ana")),
    ("python: use a grant twice", "", lambda _, log: _use_twice(log)),
    ("python: use the copy of a grant in a fork", "", lambda _, log: _copied_grant(log)),
    ("python: raise a budget", "", lambda _, log: log.budgets.set("run", scope_id="run_1", limit_microdollars=10**9)),
    ("python: make a model cheap", "", lambda _, log: log.prices.set("m", 0, 0)),
    ("python: withdraw a price", "", lambda _, log: log.prices.withdraw("m", log.prices.get("m").valid_from)),
    ("python: load prices", "", lambda _, log: log.prices.load([{**log.prices.get("m").as_dict(), "input_price": 0}])),
    ("python: load a workflow", "", lambda _, log: log.workflow.load()),
    ("python: clear an effect", "", lambda _, log: log.effects.reconcile(log.effects.open()[0].id, "no", by="ana")),
    ("python: spend on another day", "", lambda _, log: log.ledger.charge(
        "m", cost_microdollars=11, run_id="run_1", occurred_at=log.clock.now() - timedelta(days=9))),
    ("python: prove by a guessed password", "", lambda _, log: _guess(log)),
    ("python: sign a promotion oneself", "", lambda a, log: log.trust.apply(
        (said := log.trust.propose("promote", "me").statement), a.own.sign(said))),
    ("python: bind a second owner", "", lambda a, log: log.trust.bind("mallory", "cli", a.keys["mallory"].public)),
    # Python, with private names
    ("private: set the tier", "trust_contract", lambda _, log: _set_contract(log, {"tier": 5})),
    ("private: switch dev mode on", "trust_contract", lambda _, log: _set_contract(log, {"is_dev_mode": True})),
    ("private: list fix classes", "trust_contract", lambda _, log: _set_contract(log, {"auto_merge": ["doc"]})),
    ("private: name a reviewer", "trust_contract", lambda _, log: _set_contract(log, {"reviewers": ["mallory"]})),
    ("private: swap the key and sign", "trust_contract", _swap_key),
    ("private: grant without a proof", "approvals apr_open", lambda _, log: _decide(log)),
    ("private: use such a grant", "approvals apr_open", lambda _, log: _use_what_is_forged(log)),
    ("private: turn a denial", "approvals apr_denied", lambda _, log: _decide(log, "apr_denied")),
    ("private: grant more uses", "approvals apr_granted", lambda _, log: _decide(log, "apr_granted")),
    ("private: grant in the past", "approvals apr_open", _back_dated),
    ("private: grant under a forged proof", "approvals apr_open", lambda a, log: _forged(a, log, lambda: _decide(log))),
    ("private: grant under an old revision", "approvals apr_open", lambda a, log: _forged(
        a, log, lambda: _decide(log), revision=1)),
    ("private: grant under the proof of another", "approvals apr_open", lambda _, log: _reused(log, lambda: _decide(log))),
    ("private: raise a budget", "budgets", lambda _, log: _raise(log)),
    ("private: raise a budget under another proof", "budgets", lambda _, log: _reused(log, lambda: _raise(log))),
    ("private: bring a proven budget back", "budgets", lambda _, log: _repeated(log)),
    ("private: lift a budget", "budgets", lambda _, log: log.db.write(
        lambda: log.budgets._remove(Budget, "delete from budgets where scope = :scope returning *", scope="run"))),
    ("private: add a price", "prices", lambda _, log: log.db.write(
        lambda: log.prices._add(Price, model="n", valid_from=log.clock.now(), input_price=0, output_price=0))),
    # SQL on the open file
    ("sql: set the tier", "trust_contract", lambda a, _: a.sql("update trust_contract set tier = 5")),
    ("sql: set the tier, and launder it", "", _launder),
    ("sql: take the owner away, and raise a budget", "", _unbind),
    ("sql: take the owner away, and bind another", "", _bind_again),
    ("sql: bring a used statement back", "", _reapply),
    ("sql: prolong a signed statement", "", _prolong),
    ("sql: grant", "approvals apr_open", lambda a, _: a.sql(
        f"update approvals set state = 'granted', decided_by = 'ana', decided_at = '{LATER}' where id = 'apr_open'")),
    ("sql: grant again by using none", "approvals apr_granted", lambda a, _: a.sql(
        "update approvals set uses = 0, max_uses = 99 where id = 'apr_granted'")),
    ("sql: raise a budget", "budgets", lambda a, _: a.sql("update budgets set ceiling = 9999")),
    ("sql: raise a budget, and have a verb write it down", "", lambda a, log: (
        a.sql("update budgets set ceiling = 9999"), log.db.write(lambda: _raise(log)))),
    ("sql: remove a budget", "budgets", lambda a, _: a.sql("pragma foreign_keys = off", "delete from budgets")),
    ("sql: make a model cheap", "prices", lambda a, _: a.sql("update prices set input_price = 0")),
    ("sql: change what was signed", "proofs", lambda a, _: a.sql("update proofs set statement = '{}'")),
    ("sql: remove a proof", "proofs", lambda a, _: a.sql("delete from proofs")),
    ("sql: rewrite history, the row and every hash", "budgets", lambda a, _: _rewritten(a)),
    # History, and what is made of it
    ("sql: take a text out of the journal", "no event records that it was pruned", lambda a, _: a.sql(
        f"update entries set body_digest = '{chain.digest(SAID)}', body = null where body = '{SAID}'")),
    ("sql: delete what was kept of a document", "is gone", lambda a, _: a.sql("delete from blobs")),
    ("sql: delete an entry", "entries_never_go of entries was dropped", lambda a, _: a.sql(
        "drop trigger entries_never_go", "delete from entries where stream = 'run_1' and seq = 2")),
    ("sql: let entries be changed from now on", "entries_never_change of entries was dropped", lambda a, _: a.sql(
        "drop trigger entries_never_change")),
    ("sql: have a trigger undo every charge", "the trigger spy of charges was added", lambda a, _: a.sql(
        "create trigger spy after insert on charges begin delete from charges where id = new.id; end")),
    ("sql: spend a budget anew", "budget_days", lambda a, _: a.sql("update budget_days set microdollars = 0")),
    ("sql: let reservations seem to be over", "budget_days", lambda a, _: a.sql(f"update budget_days set as_of = '{LATER}'")),
    ("sql: hide an entry from every search", "the text index", lambda a, _: a.sql(
        "delete from entry_text where rowid = (select max(rowid) from entry_text_docsize)")),
    ("sql: have new entries never be found", "the text index", lambda a, _: a.sql("update entry_text_marks set pos = pos + 99")),
    ("sql: date a stream back", "begun at", lambda a, _: a.sql("update streams set created_at = '2020-01-01T00:00:00.000000Z'")),
    ("file: change what was asked", "approvals apr_denied", lambda a, _: _on_disk(a, b"May I denied?", b"May I d3nied?")),
]  # fmt: skip


def _guess(log: Decklog) -> None:
    with log.proving(password="a password that " + "is a guess"):
        log.approvals.decide("apr_open", "granted", by="ana")


@pytest.mark.parametrize(("touched", "attempt"), [row[1:] for row in ATTEMPTS], ids=[row[0] for row in ATTEMPTS])
def test_an_agent_gives_itself_nothing_unseen(
    made: Path, keys: dict[str, Key], tmp_path: Path, touched: str, attempt: Attempt
) -> None:
    path = tmp_path / "log.db"
    shutil.copy(made, path)
    agent, refused = Agent(path, keys), False
    with agent.open() as log:
        try:
            attempt(agent, log)
        except DecklogError:
            refused = True
    with agent.open() as log:
        problems = [problem.what for problem in log.journal.verify().problems]
    if touched:
        assert any(touched in what for what in problems), problems
    else:
        assert refused
