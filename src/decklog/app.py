"""Opens a log and wires its stores. The only place that knows them all."""

import os
from contextlib import contextmanager
from importlib import import_module

from decklog.clock import Clock
from decklog.errors import Invalid, Unavailable
from decklog.ids import Ids
from decklog.records import DEFAULT_LIMIT_BYTES, Record, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from typing import Any, ParamSpec, Self, TypeVar

    from decklog.db.base import Database
    from decklog.stores.base import Store
    from decklog.stores.content.artifacts import Artifacts
    from decklog.stores.content.outputs import Outputs
    from decklog.stores.content.states import States
    from decklog.stores.desk.approvals import Approvals
    from decklog.stores.desk.feedback import FeedbackStore
    from decklog.stores.desk.inbox import Inbox
    from decklog.stores.desk.self_edits import SelfEdits
    from decklog.stores.desk.trust.trust import Trust
    from decklog.stores.effects.effects import Effects
    from decklog.stores.effects.processes import Processes
    from decklog.stores.flow.ci import Ci
    from decklog.stores.flow.context import Context
    from decklog.stores.flow.workflow import Workflow
    from decklog.stores.memory.learnings import Learnings
    from decklog.stores.memory.memory import Memory
    from decklog.stores.memory.patterns import Patterns
    from decklog.stores.memory.strategies import Strategies
    from decklog.stores.money.budgets import Budgets
    from decklog.stores.money.ledger import Ledger
    from decklog.stores.money.prices import Prices
    from decklog.stores.money.reservations import Reservations
    from decklog.stores.runs.runs import Runs
    from decklog.stores.work.criteria import Criteria
    from decklog.stores.work.groups import Groups
    from decklog.stores.work.plans import Plans
    from decklog.stores.work.tasks import Tasks

    P = ParamSpec("P")
    R = TypeVar("R")

# A new kind of record is one more line here, after those it refers to. Modules are imported when a store is first used.
STORES = {
    "runs": "runs.runs.Runs",
    "groups": "work.groups.Groups",
    "tasks": "work.tasks.Tasks",
    "plans": "work.plans.Plans",
    "criteria": "work.criteria.Criteria",
    "approvals": "desk.approvals.Approvals",
    "states": "content.states.States",
    "artifacts": "content.artifacts.Artifacts",
    "outputs": "content.outputs.Outputs",
    "prices": "money.prices.Prices",
    "budgets": "money.budgets.Budgets",
    "reservations": "money.reservations.Reservations",
    "ledger": "money.ledger.Ledger",
    "memory": "memory.memory.Memory",
    "patterns": "memory.patterns.Patterns",
    "strategies": "memory.strategies.Strategies",
    "learnings": "memory.learnings.Learnings",
    "context": "flow.context.Context",
    "inbox": "desk.inbox.Inbox",
    "feedback": "desk.feedback.FeedbackStore",
    "trust": "desk.trust.trust.Trust",
    "self_edits": "desk.self_edits.SelfEdits",
    "workflow": "flow.workflow.Workflow",
    "ci": "flow.ci.Ci",
    "effects": "effects.effects.Effects",
    "processes": "effects.processes.Processes",
}

# Where a verb needs another store, it says what it needs as a Protocol, and gets it here.
WIRES = {
    "runs": {"criteria": "criteria"},
    "tasks": {"reservations": "reservations", "lessons": "memory"},
    "inbox": {"pauses": "tasks", "senders": "trust"},
    "trust": {"approvals": "approvals"},
    "workflow": {"groups": "groups"},
}


class _Later:
    """Another store of the same log, imported when it is first needed."""

    def __init__(self, log: "Decklog", name: str) -> None:
        self._log = log
        self._name = name

    def __getattr__(self, verb: str) -> "Any":
        return getattr(getattr(self._log, self._name), verb)


class Decklog:
    """One log: a SQLite file or a PostgreSQL database. Safe to share between threads, and usable after a fork."""

    if TYPE_CHECKING:
        runs: Runs
        groups: Groups
        tasks: Tasks
        plans: Plans
        criteria: Criteria
        approvals: Approvals
        states: States
        artifacts: Artifacts
        outputs: Outputs
        prices: Prices
        budgets: Budgets
        reservations: Reservations
        ledger: Ledger
        memory: Memory
        patterns: Patterns
        strategies: Strategies
        learnings: Learnings
        context: Context
        inbox: Inbox
        feedback: FeedbackStore
        trust: Trust
        self_edits: SelfEdits
        workflow: Workflow
        ci: Ci
        effects: Effects
        processes: Processes

    def __init__(self, db: "Database", *, clock: Clock, ids: Ids) -> None:
        from decklog.stores.journal.journal import Journal

        self.db = db
        self.clock = clock
        self.ids = ids
        self.journal: Journal = Journal(db, clock, self.record_classes)

    @classmethod
    def open(
        cls,
        target: "str | os.PathLike[str]",
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        durability: str = "full",
        read_only: bool = False,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        busy_seconds: float = 30.0,
        allow_network_fs: bool = False,
        migrate: bool = False,
    ) -> "Self":
        """Open a log by path, `sqlite:///…` or `postgresql://…`.

        A SQLite file is made, or brought up to date after a backup copy; a PostgreSQL schema only when `migrate` says so.
        `durability="relaxed"` trades the last moments before a power cut for speed.
        """
        if durability not in ("full", "relaxed"):
            raise Invalid(f"durability is full or relaxed, not {durability!r}", field="durability")
        clock = clock or Clock()
        common: dict[str, Any] = {
            "values": Values(limit_bytes),
            "clock": clock,
            "durability": durability,
            "read_only": read_only,
            "busy_seconds": busy_seconds,
        }
        text = os.fspath(target)
        if text.startswith(("postgresql://", "postgres://")):
            db = _postgres(text, migrate=migrate, **common)
        else:
            from decklog.db.sqlite.database import open_sqlite

            db = open_sqlite(_path(text), allow_network_fs=allow_network_fs, **common)
        return cls(db, clock=clock, ids=ids or Ids(clock, db.values.vouch))

    def __getattr__(self, name: str) -> "Store":
        if name not in STORES:
            raise AttributeError(f"a log has no {name!r}; it has journal, {', '.join(STORES)}")
        store = store_class(name)(self.db, self.journal, self.clock, self.ids)
        for need, other in WIRES.get(name, {}).items():
            setattr(store, need, _Later(self, other))
        setattr(self, name, store)
        return store

    def record_classes(self) -> dict[str, type[Record]]:
        """Name every kind of record with its class."""
        return {record.table: record for name in STORES for record in store_class(name).records}

    @contextmanager
    def acting(
        self,
        agent: str | None = None,
        *,
        agent_id: str | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        iteration: int | None = None,
    ) -> "Iterator[None]":
        """Attribute everything written in this block, where a call does not say otherwise."""
        from decklog.stores.journal.attribution import acting

        given = {
            "agent": agent,
            "agent_id": agent_id,
            "group_id": group_id,
            "task_id": task_id,
            "iteration": iteration,
        }
        outer = acting.get() or {}
        token = acting.set({**outer, **{name: value for name, value in given.items() if value is not None}})
        try:
            yield
        finally:
            acting.reset(token)

    @contextmanager
    def transaction(self) -> "Iterator[None]":
        """Make everything written in this block one transaction: all of it, or nothing."""
        from decklog.stores.journal.attribution import transacting

        token = transacting.set(True)
        try:
            with self.db.transaction():
                yield
        finally:
            transacting.reset(token)

    @property
    def is_in_transaction(self) -> bool:
        """Whether the caller holds a transaction open, so that what is written now may still be undone."""
        from decklog.stores.journal.attribution import transacting

        return transacting.get()

    def submit(self, operation: "Callable[P, R]", *args: "P.args", **kwargs: "P.kwargs") -> "Future[R]":
        """Start a write without waiting for it; the Future is done once it is committed.

        Writes that are under way at the same time share a transaction and its sync to disk.
        """
        future: Future[R] = self.db.submit(lambda: operation(*args, **kwargs))
        return future

    def close(self) -> None:
        """Close the log; using it afterwards raises `Closed`."""
        self.db.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def store_class(name: str) -> "type[Store]":
    """Import a store's class."""
    if name == "journal":
        from decklog.stores.journal.journal import Journal

        return Journal  # type: ignore[return-value]
    module, _, kind = STORES[name].rpartition(".")
    found: type[Store] = getattr(import_module(f"decklog.stores.{module}"), kind)
    return found


def _postgres(url: str, **settings: "Any") -> "Database":
    try:
        from decklog.db.postgres.database import open_postgres
    except ImportError as problem:
        raise Unavailable(
            f"PostgreSQL needs a package that is not installed: {problem.name}",
            hint="Run: pip install 'decklog[postgres]'",
        ) from problem
    return open_postgres(url, **settings)


def _path(text: str) -> str:
    """Read a path or a `sqlite:///` address."""
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    elif "://" in text:
        raise Invalid(f"{text!r} names no engine Decklog knows; use a path, sqlite:///PATH or postgresql://…")
    if not text.strip() or "\x00" in text:
        raise Invalid("a log needs a path")
    return os.path.expanduser(text)
