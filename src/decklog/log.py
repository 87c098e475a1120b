"""Opens a log and wires its stores. The only place that knows them all."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from decklog.blocks import Blocks
from decklog.core.clock import Clock
from decklog.core.errors import Conflict, Invalid
from decklog.core.fork_safety import once
from decklog.core.ids import Ids
from decklog.journal.journal import Journal
from decklog.journal.writer import Writer
from decklog.records.record import Record
from decklog.records.values import DEFAULT_LIMIT_BYTES, Values
from decklog.stores.base import StoreParts

if TYPE_CHECKING:
    from concurrent.futures import Future

    from decklog.db.base import Database
    from decklog.journal.verify import Audit
    from decklog.stores.approvals.approvals import Approvals
    from decklog.stores.approvals.feedback import FeedbackStore
    from decklog.stores.approvals.inbox import Inbox
    from decklog.stores.approvals.notices import Notices
    from decklog.stores.approvals.self_edits import SelfEdits
    from decklog.stores.approvals.trust.proofs import Proofs
    from decklog.stores.approvals.trust.trust import Trust
    from decklog.stores.artifacts.artifacts import Artifacts
    from decklog.stores.artifacts.outputs import Outputs
    from decklog.stores.artifacts.states import States
    from decklog.stores.base import Store
    from decklog.stores.effects.effects import Effects
    from decklog.stores.effects.processes import Processes
    from decklog.stores.memory.learnings import Learnings
    from decklog.stores.memory.memory import Memory
    from decklog.stores.memory.patterns import Patterns
    from decklog.stores.memory.strategies import Strategies
    from decklog.stores.money.budgets import Budgets
    from decklog.stores.money.ledger import Ledger
    from decklog.stores.money.prices import Prices
    from decklog.stores.money.reservations import Reservations
    from decklog.stores.overview.overview import Overview
    from decklog.stores.provenance.edits import Edits
    from decklog.stores.runs.runs import Runs
    from decklog.stores.tasks.criteria import Criteria
    from decklog.stores.tasks.groups import Groups
    from decklog.stores.tasks.plans import Plans
    from decklog.stores.tasks.schedules import Schedules
    from decklog.stores.tasks.tasks import Tasks
    from decklog.stores.tasks.templates import Templates
    from decklog.stores.workflow.ci import Ci
    from decklog.stores.workflow.context import Context
    from decklog.stores.workflow.gates import Gates
    from decklog.stores.workflow.mends import Mends
    from decklog.stores.workflow.reviews import Reviews
    from decklog.stores.workflow.verdicts import Verdicts
    from decklog.stores.workflow.workflow import Workflow

    P = ParamSpec("P")
    R = TypeVar("R")


class Decklog(Blocks):
    """One log: a SQLite file or a PostgreSQL database. Safe to share between threads, and usable after a fork."""

    def __init__(self, db: "Database", *, clock: Clock, ids: Ids) -> None:
        self.db = db
        self.clock = clock
        writer = Writer(db, clock)
        journal = Journal(db, writer, self.record_classes, self._audits)
        self.parts = StoreParts(db, clock, ids, writer, journal, lambda: self.proofs)

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        durability: str = "full",
        read_only: bool = False,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        busy_seconds: float = 30.0,
        allow_network_fs: bool = False,
        migrate: bool = False,
        pool_size: int = 16,
    ) -> Self:
        """Open a log by path, `sqlite:///…` or `postgresql://…`.

        A SQLite file is made, or brought up to date after a backup copy; a PostgreSQL schema only with `migrate`.
        `durability="relaxed"` trades the last moments before a power cut for speed. At most `pool_size` connections to a
        PostgreSQL server are open at a time.
        """
        if pool_size < 1:
            raise Invalid(f"pool_size is {pool_size}; a log needs a connection", field="pool_size")
        if durability not in ("full", "relaxed"):
            raise Invalid(f"durability is full or relaxed, not {durability!r}", field="durability")
        common: dict[str, Any] = {
            "values": Values(limit_bytes),
            "durability": durability,
            "read_only": read_only,
            "busy_seconds": busy_seconds,
        }
        text = os.fspath(target)
        if text.startswith(("postgresql://", "postgres://")):
            from decklog.db.postgres.roles import open_server

            db = open_server(text, migrate=migrate, clock=clock, pool_size=pool_size, **common)
        else:
            from decklog.db.sqlite.database import open_sqlite
            from decklog.db.sqlite.file import path_of

            db = open_sqlite(path_of(text), allow_network_fs=allow_network_fs, clock=clock, **common)
        log = cls(db, clock=db.clock, ids=ids or Ids(db.clock))
        db.on_lost_writes(log.parts.journal.record_lost_writes)
        return log

    # The stores, in an order in which none refers to a later one. A store that needs another gets it here and imports only its
    # type. Each is imported when it is first used: all of them cost five times as much as the one in use.

    @once
    def journal(self) -> Journal:
        """Appends entries and finds them again."""
        return self.parts.journal

    @once
    def runs(self) -> "Runs":
        """Starts and finishes runs and records who worked in them."""
        from decklog.stores.runs.runs import Runs

        return Runs(self.parts, criteria=lambda: self.criteria, tasks=lambda: self.tasks)

    @once
    def groups(self) -> "Groups":
        """Stores the task groups of runs, with their reviews and merges."""
        from decklog.stores.tasks.groups import Groups

        return Groups(self.parts)

    @once
    def tasks(self) -> "Tasks":
        """Plans tasks, gives them to workers one at a time, and records the result of each attempt."""
        from decklog.stores.tasks.tasks import Tasks

        return Tasks(
            self.parts,
            reservations=lambda: self.reservations,
            lessons=lambda: self.memory,
            schedules=lambda: self.schedules,
        )

    @once
    def templates(self) -> "Templates":
        """Stores reusable sets of tasks, and creates tasks from them."""
        from decklog.stores.tasks.templates import Templates

        return Templates(self.parts, tasks=lambda: self.tasks)

    @once
    def schedules(self) -> "Schedules":
        """Stores recurring tasks. They are added when they are due and somebody claims a task or reads an overview."""
        from decklog.stores.tasks.schedules import Schedules

        return Schedules(self.parts, tasks=lambda: self.tasks, templates=lambda: self.templates)

    @once
    def plans(self) -> "Plans":
        """Stores one plan per run. Phases are separate rows, so concurrent changes of different phases do not conflict."""
        from decklog.stores.tasks.plans import Plans

        return Plans(self.parts)

    @once
    def criteria(self) -> "Criteria":
        """Stores the success criteria of runs. One is identified by its exact text, or by its number within the run."""
        from decklog.stores.tasks.criteria import Criteria

        return Criteria(self.parts)

    @once
    def approvals(self) -> "Approvals":
        """Asks people and gates for approval of one exact thing, and keeps their answers."""
        from decklog.stores.approvals.approvals import Approvals

        return Approvals(self.parts, inbox=lambda: self.inbox)

    @once
    def states(self) -> "States":
        """Stores state documents with all versions, checkpoints of runs and snapshots of paused tasks."""
        from decklog.stores.artifacts.states import States

        return States(self.parts)

    @once
    def artifacts(self) -> "Artifacts":
        """Records files by path and digest, and stores their bytes if given."""
        from decklog.stores.artifacts.artifacts import Artifacts

        return Artifacts(self.parts)

    @once
    def outputs(self) -> "Outputs":
        """Stores the outputs of skills by iteration, and checks that the mandatory ones ran."""
        from decklog.stores.artifacts.outputs import Outputs

        return Outputs(self.parts)

    @once
    def prices(self) -> "Prices":
        """Stores a log's own prices, which take precedence over those that come with Decklog."""
        from decklog.stores.money.prices import Prices

        return Prices(self.parts)

    @once
    def budgets(self) -> "Budgets":
        """Sets budgets and shows their usage. Only the owner sets, raises or lifts one; agents can read them all."""
        from decklog.stores.money.budgets import Budgets

        return Budgets(self.parts)

    @once
    def reservations(self) -> "Reservations":
        """Reserves budget for calls, and releases what they did not use."""
        from decklog.stores.money.reservations import Reservations

        return Reservations(self.parts)

    @once
    def ledger(self) -> "Ledger":
        """Records spending, and adds it up."""
        from decklog.stores.money.ledger import Ledger

        return Ledger(self.parts)

    @once
    def memory(self) -> "Memory":
        """Learns lessons, recalls those that fit a question, and records which of them helped."""
        from decklog.stores.memory.memory import Memory
        from decklog.stores.memory.semantic.model import kept_model

        return Memory(self.parts, model=kept_model)

    @once
    def patterns(self) -> "Patterns":
        """Counts errors under a signature that every occurrence shares, project by project."""
        from decklog.stores.memory.patterns import Patterns

        return Patterns(self.parts)

    @once
    def strategies(self) -> "Strategies":
        """Collects insights, and which of them helped most."""
        from decklog.stores.memory.strategies import Strategies

        return Strategies(self.parts)

    @once
    def learnings(self) -> "Learnings":
        """Records observations from tasks, and their use."""
        from decklog.stores.memory.learnings import Learnings

        return Learnings(self.parts)

    @once
    def context(self) -> "Context":
        """Stores packages, offers each agent those that are for it, and records who read which."""
        from decklog.stores.workflow.context import Context

        return Context(self.parts)

    @once
    def inbox(self) -> "Inbox":
        """Receives messages, gives them to agents at a break in their work, and keeps the outcome of each."""
        from decklog.stores.approvals.inbox import Inbox

        return Inbox(self.parts, tasks=lambda: self.tasks, trust=lambda: self.trust)

    @once
    def feedback(self) -> "FeedbackStore":
        """Records feedback and moves it through its states, with a note for each step."""
        from decklog.stores.approvals.feedback import FeedbackStore

        return FeedbackStore(self.parts, gate=lambda: self.reviews)

    @once
    def trust(self) -> "Trust":
        """Binds the log to one owner. A promotion needs a signature; a demotion needs none and happens at once."""
        from decklog.stores.approvals.trust.trust import Trust

        return Trust(self.parts, approvals=lambda: self.approvals)

    @once
    def proofs(self) -> "Proofs":
        """Keeps the owner's signatures. A log without an owner has none, and its decisions are unsigned."""
        from decklog.stores.approvals.trust.proofs import Proofs

        return Proofs(self.parts)

    @once
    def self_edits(self) -> "SelfEdits":
        """Records self-edits and lists them. A record is never changed."""
        from decklog.stores.approvals.self_edits import SelfEdits

        return SelfEdits(self.parts)

    @once
    def workflow(self) -> "Workflow":
        """Stores one workflow, loaded or shipped with the package, and routes by it."""
        from decklog.stores.workflow.workflow import Workflow

        return Workflow(self.parts, groups=lambda: self.groups)

    @once
    def ci(self) -> "Ci":
        """Stores the history of CI runs; a run may be recorded at its start and completed at its end."""
        from decklog.stores.workflow.ci import Ci

        return Ci(self.parts)

    @once
    def verdicts(self) -> "Verdicts":
        """Keeps check results for trees, and decides whether a tree has passed."""
        from decklog.stores.workflow.verdicts import Verdicts

        return Verdicts(self.parts)

    @once
    def reviews(self) -> "Reviews":
        """Stores results of the review gate, which `decklog review` runs."""
        from decklog.stores.workflow.reviews import Reviews

        return Reviews(self.parts, approvals=lambda: self.approvals)

    @once
    def mends(self) -> "Mends":
        """Stores the state of the fix of each piece of feedback; `decklog mend` advances it."""
        from decklog.stores.workflow.mends import Mends

        return Mends(self.parts)

    @once
    def gates(self) -> "Gates":
        """Circuit breakers: close a shared resource, let one caller at a time retry after a while, and open it for all."""
        from decklog.stores.workflow.gates import Gates

        return Gates(self.parts)

    @once
    def effects(self) -> "Effects":
        """Records side effects of tools before and after they happen, so that none is repeated or lost silently."""
        from decklog.stores.effects.effects import Effects

        return Effects(self.parts)

    @once
    def processes(self) -> "Processes":
        """Records background processes, beyond restarts of the program that started them."""
        from decklog.stores.effects.processes import Processes

        return Processes(self.parts)

    @once
    def edits(self) -> "Edits":
        """Records which session changed which file, and snapshots of worktrees. Contents stay in git."""
        from decklog.stores.provenance.edits import Edits

        return Edits(self.parts)

    @once
    def notices(self) -> "Notices":
        """Keeps notification rules and the notices they sent."""
        from decklog.stores.approvals.notices import Notices

        return Notices(self.parts)

    @once
    def overview(self) -> "Overview":
        """Shows the status of runs and tasks, what waits for a person, and the cost."""
        from decklog.stores.overview.overview import Overview

        return Overview(self.parts, tasks=lambda: self.tasks, schedules=lambda: self.schedules, past=lambda: self.runs)

    def record_classes(self) -> Mapping[str, type[Record]]:
        """Return the record classes by table."""
        return RecordClasses()

    def _audits(self) -> "dict[str, Audit]":
        """Return the audits of tables that no entry describes, by store."""
        return {f"what {name} derives": store.audit for name, store in self._stores()}

    def rebuild(self, *, words: bool = False) -> None:
        """Rebuild what is derived from records, as after an import from another log: sums, counts and places.

        With `words` also rebuild the text index, at the next search.
        """
        if self.db.read(self.db.archived):
            raise Conflict(
                "some runs are archived, and nothing can be derived from them", hint="Restore them: decklog archive restore FILE"
            )
        self.db.write(self.db.derive_heads)
        for _, store in self._stores():
            store.derive()
        if words:
            self.db.forget_all_text()

    def derived_tables(self) -> frozenset[str]:
        """Return the tables that `rebuild` computes from the journal."""
        return frozenset({"entry_text", "entry_text_marks"}.union(*(store.derived for _, store in self._stores())))

    def _stores(self) -> "Iterator[tuple[str, Store]]":
        return ((name, getattr(self, name)) for name in STORES if name != "journal")

    def submit(self, operation: "Callable[P, R]", *args: "P.args", **kwargs: "P.kwargs") -> "Future[R]":
        """Start a write without waiting for it; the Future is done once it is committed.

        Writes that are under way at the same time share a transaction and its sync to disk.
        """
        future: Future[R] = self.db.submit(lambda: operation(*args, **kwargs))
        return future

    def close(self) -> None:
        """Close the log; using it afterwards raises `Closed`."""
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# A new store is one more property of `Decklog`; code that needs all stores reads them here.
STORES: dict[str, str] = {name: (member.__doc__ or "") for name, member in vars(Decklog).items() if isinstance(member, once)}

# The tables of each store's records. With them a record's class is found without importing all stores.
TABLES: dict[str, tuple[str, ...]] = {
    "runs": ("runs", "agents"),
    "groups": ("groups",),
    "tasks": ("tasks", "dependencies", "task_comments"),
    "templates": ("templates",),
    "schedules": ("schedules",),
    "plans": ("plans", "phases"),
    "criteria": ("criteria",),
    "approvals": ("approvals",),
    "states": ("states", "state_versions", "checkpoints", "snapshots", "graph_checkpoints", "graph_writes", "graph_items"),
    "artifacts": ("artifacts",),
    "outputs": ("outputs",),
    "prices": ("prices",),
    "budgets": ("budgets",),
    "reservations": ("reservations",),
    "ledger": ("charges",),
    "memory": ("topics", "lessons", "sightings", "contradictions", "proposals"),
    "patterns": ("patterns",),
    "strategies": ("strategies",),
    "learnings": ("learnings",),
    "context": ("packages", "context_consumers", "context_consumptions"),
    "inbox": ("messages",),
    "feedback": ("feedback",),
    "trust": ("trust_contract", "trust_proposals", "trust_changes"),
    "proofs": ("proofs",),
    "self_edits": ("self_edits",),
    "workflow": (
        "workflow_versions",
        "workflow_transitions",
        "workflow_aliases",
        "workflow_rules",
        "workflow_markers",
        "workflow_models",
    ),
    "ci": ("ci_runs",),
    "verdicts": ("verdicts",),
    "reviews": ("reviews", "review_passes"),
    "mends": ("mends",),
    "gates": ("gates",),
    "effects": ("effects",),
    "processes": ("processes",),
    "edits": ("edits", "worktree_snapshots"),
    "notices": ("notify_rules", "notices"),
}
_STORE_OF = {table: name for name, tables in TABLES.items() for table in tables}


class RecordClasses(Mapping[str, type[Record]]):
    """The record classes by table. A store is imported when one of its classes is looked up."""

    def __getitem__(self, table: str) -> type[Record]:
        return next(record for record in store_class(_STORE_OF[table]).records if record.table == table)

    def __iter__(self) -> Iterator[str]:
        return iter(_STORE_OF)

    def __len__(self) -> int:
        return len(_STORE_OF)


@cache
def store_class(name: str) -> "type[Store]":
    """Import and return a store's class."""
    nothing: Any = None
    found: type[Store] = type(getattr(Decklog(nothing, clock=nothing, ids=nothing), name))
    return found
