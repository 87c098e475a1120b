"""The shipped roles on a real server: who reads, who works and who decides, and what each is kept from by the server itself."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from decklog import Decklog, DecklogError, Denied, ManualClock, ReadOnly
from decklog.db.postgres import roles
from decklog.transfer.projects import roles_sql
from decklog.transfer.prune import Prune, parse_age
from tests.db import whole_log
from tests.db.processes import ROOT
from tests.registry import arguments, operations
from tests.stores.approvals.trust.trust_desk import Key, make_keys
from tests.stores.claiming import claimed

LOGINS = dict(zip(("reads", "works", "decides"), roles.role_names(), strict=True))
# Agents' verbs that an agent's role may not call: lowering the tier is writing it.
NEEDS_THE_MANAGER = {"trust.demote", "trust.stop_dev_mode"}


# SQL statements that an agent's role may not run.
NOT_FOR_AGENTS = [
    "update entries set body = 'nothing happened'",
    "delete from entries",
    "truncate entries",
    "alter table entries disable trigger all",
    "drop trigger entries_never_go on entries",
    "update blobs set bytes = ''",
    "delete from blobs",
    "update charges set cost_microdollars = 0",
    "delete from charges",
    "update streams set name = 'other'",
    "delete from streams",
    "update budgets set ceiling = 1000000000",
    "delete from budgets",
    "insert into budgets select * from budgets",
    "insert into prices select * from prices",
    "update trust_contract set tier = 5",
    "insert into trust_changes select * from trust_changes",
    "insert into proofs select * from proofs",
    "insert into notify_rules select * from notify_rules",
    "delete from workflow_transitions",
    "insert into workflow_rules select * from workflow_rules",
    "delete from tasks",
    "delete from approvals",
    "update schema_steps set checksum = ''",
    "create table mine (a int)",
    "set session_replication_role = replica",
]


@pytest.fixture
def owner(postgres_url: str, clock: ManualClock) -> Iterator[Decklog]:
    """A log whose owner has run the shipped statements, twice."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for _ in range(2):
            connection.execute(roles_sql().encode())
        for login, role in LOGINS.items():
            connection.execute(
                f"do $$ begin create role {login} login; exception when duplicate_object then null; end $$".encode()
            )
            connection.execute(f"grant {role} to {login}".encode())
    with Decklog.open(postgres_url, clock=clock) as log:
        yield log


def address(log: Decklog, login: str) -> str:
    return re.sub(r"//[^@/]*@", f"//{login}@", log.db.target)


@pytest.fixture
def agent(owner: Decklog, clock: ManualClock) -> Iterator[Decklog]:
    with Decklog.open(address(owner, "works"), clock=clock) as log:
        yield log


def refusal_of(log: Decklog, store: str, verb: str, arguments_of_call: dict[str, Any]) -> str | None:
    """Call a verb; give what the server had against it."""
    try:
        result = getattr(getattr(log, store), verb)(**arguments_of_call)
        if hasattr(result, "__next__"):
            list(result)
    except DecklogError as problem:
        return problem.message if "PostgreSQL role" in problem.message or isinstance(problem, ReadOnly) else None
    return None


@pytest.mark.slow
def test_an_agent_can_use_every_verb_of_agents(owner: Decklog, agent: Decklog, clock: ManualClock) -> None:
    run_id = agent.runs.start("work", run_id="run_1").id
    agent.tasks.add(run_id, "one", task_id="task_1", tags=["t"])
    owner.budgets.set("run", scope_id=run_id, limit_tokens=10**9)
    claim = claimed(agent, run_id, worker="w", lease_seconds=10_000)
    known = {"run_id": run_id, "stream": run_id, "task_id": "task_1", "fence": claim.task.fence}
    found = []
    for store, operation in operations():
        if operation.owner_only or f"{store}.{operation.name}" in NEEDS_THE_MANAGER:
            continue
        for ids in (known, {}):
            for given in arguments(operation, "words", ids):
                ending = {"follow": False} if operation.name == "tail" else {}
                if problem := refusal_of(agent, store, operation.name, {**given, **ending}):
                    found.append(f"{store}.{operation.name}: {problem}")
    assert found == []


@pytest.mark.slow
def test_agent_role_suffices_for_whole_runs(owner: Decklog, agent: Decklog, clock: ManualClock) -> None:
    agent.runs.start("first", run_id="run_1")
    agent.runs.start("another", run_id="run_2", key="second")
    owner.prices.set("m", 1_000_000, 2_000_000)
    owner.budgets.set("run", scope_id="run_2", limit_tokens=10**6, period="day")
    whole_log._journal(agent, clock)
    whole_log._work(agent, clock)
    whole_log._memory(agent)
    whole_log._tools(agent)
    agent.ledger.charge("m", input_tokens=7, run_id="run_2")
    agent.budgets.rebuild()
    agent.runs.fork("run_2", new_run_id="run_3")
    assert agent.journal.search("fields")
    assert owner.journal.verify().ok


def test_the_server_keeps_an_agent_from_what_is_not_its_own(owner: Decklog) -> None:
    with psycopg.connect(address(owner, "works"), autocommit=True) as connection:
        for statement in NOT_FOR_AGENTS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_an_agent_decides_nothing_that_is_the_managers(owner: Decklog, agent: Decklog, keys: dict[str, Key]) -> None:
    agent.runs.start("work", run_id="run_1")
    for call in (
        lambda: agent.budgets.set("all", limit_tokens=9),
        lambda: agent.prices.set("m", 1, 1),
        lambda: agent.trust.bind("agent", "cli", keys["owner"].public),
    ):
        with pytest.raises(Denied, match="PostgreSQL role may not"):
            call()
    owner.trust.bind("ana", "cli", keys["owner"].public)
    approval = agent.approvals.ask("run_1", "May I?", by="dev", about="the diff")
    # The table of questions is the agents' too: here it is the proof that is missing, not the right.
    with pytest.raises(Denied, match="ana"):
        agent.approvals.decide(approval.id, "granted", by="ana")


def test_grant_written_by_sql_does_not_count(owner: Decklog, agent: Decklog, keys: dict[str, Key]) -> None:
    agent.runs.start("work", run_id="run_1")
    owner.trust.bind("ana", "cli", keys["owner"].public)
    approval = agent.approvals.ask("run_1", "May I?", by="dev", about="the diff")
    with psycopg.connect(address(owner, "works"), autocommit=True) as connection:
        connection.execute(
            "update approvals set state = 'granted', verdict = 'granted', decided_by = 'ana', decided_at = asked_at"
        )
    assert agent.approvals.granted_for("run_1", str(approval.subject_digest)) is None
    assert not owner.journal.verify().ok


@pytest.mark.slow
def test_a_manager_decides_and_prunes(owner: Decklog, clock: ManualClock, keys: dict[str, Key]) -> None:
    with Decklog.open(address(owner, "decides"), clock=clock) as log:
        log.runs.start("work", run_id="run_1")
        log.trust.bind("ana", "cli", keys["owner"].public)
        approval = log.approvals.ask("run_1", "May I?", by="dev", about="the diff")
        log.journal.append("run_1", "an old story " * 9000)
        with log.proving(key=keys["owner"].path):
            log.trust.apply(log.trust.propose("promote", "good work").statement)
            log.approvals.decide(approval.id, "granted", by="ana")
            log.budgets.lift(log.budgets.set("all", limit_tokens=9).id)
            log.prices.set("m", 1, 1)
        log.trust.demote(reason="not yet")
        clock.advance(days=60)
        Prune(log, parse_age("30d")).run(apply=True)
    assert owner.journal.verify().ok
    with psycopg.connect(address(owner, "decides")) as connection, pytest.raises(psycopg.errors.RaiseException):
        connection.execute("update entries set body = 'nothing happened'")


@pytest.mark.slow
def test_reader_reads_everything_and_writes_nothing(owner: Decklog, clock: ManualClock) -> None:
    owner.runs.start("work", run_id="run_1")
    owner.tasks.add("run_1", "one", task_id="task_1")
    owner.journal.append("run_1", "a comma is a token")
    owner.memory.add_topic("birds", "What flies")
    owner.memory.remember("birds", "Herons fish alone before dawn")
    with Decklog.open(address(owner, "reads"), clock=clock) as log:
        known = {"run_id": "run_1", "stream": "run_1", "task_id": "task_1"}
        for store, operation in operations():
            if not operation.writes:
                for given in arguments(operation, "words", known):
                    ending = {"follow": False} if operation.name == "tail" else {}
                    assert refusal_of(log, store, operation.name, {**given, **ending}) is None, f"{store}.{operation.name}"
        assert [entry.body for entry in log.journal.search("comma")] == ["a comma is a token"]
        assert log.memory.peek("where do herons fish")
        with pytest.raises(ReadOnly, match="reading only"):
            log.journal.append("run_1", "and I write")


def test_managed_tables_are_closed_to_agents(owner: Decklog) -> None:
    managed = {table for table, kind in owner.record_classes().items() if kind.is_managed}
    # Agents write these rows too; a decision needs a signature.
    assert managed - {"approvals", "effects"} <= set(roles._OF_THE_MANAGER)


def test_no_verb_needs_more_than_the_roles_give() -> None:
    """Verbs that a test with made-up arguments does not reach show in their statements what they need."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/decklog/stores").rglob("*.py"))
    # Kept by SQLite alone.
    deleted_from = set(re.findall(r"delete from ([a-z]\w+)", source)) - {"lesson_places"}
    assert deleted_from <= {*roles._TAKEN_OUT, *roles._OF_THE_MANAGER}
    assert not set(re.findall(r"update ([a-z]\w+) set", source)) & (set(roles._WRITTEN_ONCE) - set(roles._CORRECTED))


def test_tables_of_the_roles_exist(owner: Decklog) -> None:
    with psycopg.connect(owner.db.target) as connection:
        sql = "select relname from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace"
        sql += " and not relispartition order by relname"
        assert [name for (name,) in connection.execute(sql)] == roles.tables()
    tables = {*roles._WRITTEN_ONCE, *roles._OF_THE_MANAGER, *roles._TAKEN_OUT, *roles._LOCKED_BY, roles._OF_THE_OWNER}
    assert tables <= set(roles.tables())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Key]:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some verbs write a file that they are given the name of."""
    monkeypatch.chdir(tmp_path)
