"""Opens a log and wires its stores. The only place that knows them all."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from decklog.blocks import Blocks
from decklog.core.clock import Clock
from decklog.core.errors import Conflict, Invalid
from decklog.core.fork_safety import fork_safe_property
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


class _StoreProperty(fork_safe_property):  # type: ignore[type-arg]
    """A store, imported and created on first use: importing all of them costs five times as much as the one in use."""

    def __init__(self, path: str, summary: str, tables: str = "", **others: str) -> None:
        super().__init__(self._create)
        self.__doc__ = summary
        self.tables = tuple(tables.split())
        self._path = path
        self._others = others

    def store_class(self) -> Any:
        module, _, name = self._path.rpartition(".")
        return getattr(import_module(f"decklog.stores.{module}"), name)

    def _create(self, log: "Decklog") -> "Store":
        others = {name: partial(getattr, log, store) for name, store in self._others.items()}
        store: Store = self.store_class()(log.parts, **others)
        return store


# To a type checker each property is the store.
_store: Any = _StoreProperty


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

    @fork_safe_property
    def journal(self) -> Journal:
        """Appends entries and finds them again."""
        return self.parts.journal

    # Each store with its class, what it does, the tables of its records, and the stores that it declares as Protocols.
    runs: "Runs" = _store(
        "runs.runs.Runs",
        "Starts and finishes runs and records who worked in them.",
        "runs agents",
        criteria="criteria",
        tasks="tasks",
    )
    groups: "Groups" = _store("tasks.groups.Groups", "Stores the task groups of runs, with their reviews and merges.", "groups")
    tasks: "Tasks" = _store(
        "tasks.tasks.Tasks",
        "Plans tasks, gives them to workers one at a time, and records the result of each attempt.",
        "tasks dependencies task_comments",
        reservations="reservations",
        lessons="memory",
        schedules="schedules",
    )
    templates: "Templates" = _store(
        "tasks.templates.Templates", "Stores reusable sets of tasks, and creates tasks from them.", "templates", tasks="tasks"
    )
    schedules: "Schedules" = _store(
        "tasks.schedules.Schedules",
        "Stores recurring tasks. They are added when they are due and somebody claims a task or reads an overview.",
        "schedules",
        tasks="tasks",
        templates="templates",
    )
    plans: "Plans" = _store(
        "tasks.plans.Plans",
        "Stores one plan per run. Phases are separate rows, so concurrent changes of different phases do not conflict.",
        "plans phases",
    )
    criteria: "Criteria" = _store(
        "tasks.criteria.Criteria",
        "Stores the success criteria of runs. One is identified by its exact text, or by its number within the run.",
        "criteria",
    )
    approvals: "Approvals" = _store(
        "approvals.approvals.Approvals",
        "Asks people and gates for approval of one exact thing, and keeps their answers.",
        "approvals",
        inbox="inbox",
    )
    states: "States" = _store(
        "artifacts.states.States",
        "Stores state documents with all versions, checkpoints of runs and snapshots of paused tasks.",
        "states state_versions checkpoints snapshots graph_checkpoints graph_writes graph_items",
    )
    artifacts: "Artifacts" = _store(
        "artifacts.artifacts.Artifacts", "Records files by path and digest, and stores their bytes if given.", "artifacts"
    )
    outputs: "Outputs" = _store(
        "artifacts.outputs.Outputs",
        "Stores the outputs of skills by iteration, and checks that the mandatory ones ran.",
        "outputs",
    )
    prices: "Prices" = _store(
        "money.prices.Prices", "Stores a log's own prices, which take precedence over those that come with Decklog.", "prices"
    )
    budgets: "Budgets" = _store(
        "money.budgets.Budgets",
        "Sets budgets and shows their usage. Only the owner sets, raises or lifts one; agents can read them all.",
        "budgets",
    )
    reservations: "Reservations" = _store(
        "money.reservations.Reservations", "Reserves budget for calls, and releases what they did not use.", "reservations"
    )
    ledger: "Ledger" = _store("money.ledger.Ledger", "Records spending, and adds it up.", "charges")
    memory: "Memory" = _store(
        "memory.memory.Memory",
        "Learns lessons, recalls those that fit a question, and records which of them helped.",
        "topics lessons sightings contradictions proposals",
    )
    patterns: "Patterns" = _store(
        "memory.patterns.Patterns",
        "Counts errors under a signature that every occurrence shares, project by project.",
        "patterns",
    )
    strategies: "Strategies" = _store(
        "memory.strategies.Strategies", "Collects insights, and which of them helped most.", "strategies"
    )
    learnings: "Learnings" = _store("memory.learnings.Learnings", "Records observations from tasks, and their use.", "learnings")
    context: "Context" = _store(
        "workflow.context.Context",
        "Stores packages, offers each agent those that are for it, and records who read which.",
        "packages context_consumers context_consumptions",
    )
    inbox: "Inbox" = _store(
        "approvals.inbox.Inbox",
        "Receives messages, gives them to agents at a break in their work, and keeps the outcome of each.",
        "messages",
        tasks="tasks",
        trust="trust",
    )
    feedback: "FeedbackStore" = _store(
        "approvals.feedback.FeedbackStore",
        "Records feedback and moves it through its states, with a note for each step.",
        "feedback",
        gate="reviews",
    )
    trust: "Trust" = _store(
        "approvals.trust.trust.Trust",
        "Binds the log to one owner. A promotion needs a signature; a demotion needs none and happens at once.",
        "trust_contract trust_proposals trust_changes",
        approvals="approvals",
    )
    proofs: "Proofs" = _store(
        "approvals.trust.proofs.Proofs",
        "Keeps the owner's signatures. A log without an owner has none, and its decisions are unsigned.",
        "proofs",
    )
    self_edits: "SelfEdits" = _store(
        "approvals.self_edits.SelfEdits", "Records self-edits and lists them. A record is never changed.", "self_edits"
    )
    workflow: "Workflow" = _store(
        "workflow.workflow.Workflow",
        "Stores one workflow, loaded or shipped with the package, and routes by it.",
        "workflow_versions workflow_transitions workflow_aliases workflow_rules workflow_markers workflow_models",
        groups="groups",
    )
    ci: "Ci" = _store(
        "workflow.ci.Ci", "Stores the history of CI runs; a run may be recorded at its start and completed at its end.", "ci_runs"
    )
    verdicts: "Verdicts" = _store(
        "workflow.verdicts.Verdicts", "Keeps check results for trees, and decides whether a tree has passed.", "verdicts"
    )
    reviews: "Reviews" = _store(
        "workflow.reviews.Reviews",
        "Stores results of the review gate, which `decklog review` runs.",
        "reviews review_passes",
        approvals="approvals",
    )
    mends: "Mends" = _store(
        "workflow.mends.Mends", "Stores the state of the fix of each piece of feedback; `decklog mend` advances it.", "mends"
    )
    gates: "Gates" = _store(
        "workflow.gates.Gates",
        "Pause calls to a shared resource, let one caller at a time probe it, then open it for all.",
        "gates",
    )
    effects: "Effects" = _store(
        "effects.effects.Effects",
        "Records side effects of tools before and after they happen, so that none is repeated or lost silently.",
        "effects",
    )
    processes: "Processes" = _store(
        "effects.processes.Processes",
        "Records background processes, beyond restarts of the program that started them.",
        "processes",
    )
    edits: "Edits" = _store(
        "provenance.edits.Edits",
        "Records which session changed which file, and snapshots of worktrees. Contents stay in git.",
        "edits worktree_snapshots",
    )
    notices: "Notices" = _store(
        "approvals.notices.Notices", "Keeps notification rules and the notices they sent.", "notify_rules notices"
    )
    overview: "Overview" = _store(
        "overview.overview.Overview",
        "Shows the status of runs and tasks, what waits for a person, and the cost.",
        tasks="tasks",
        schedules="schedules",
        past="runs",
    )

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


# Code that needs all stores reads them here, and the tables of their records, without importing any.
STORES: dict[str, str] = {
    name: (member.__doc__ or "") for name, member in vars(Decklog).items() if isinstance(member, fork_safe_property)
}
TABLES = {name: member.tables for name, member in vars(Decklog).items() if isinstance(member, _StoreProperty) and member.tables}
_STORE_OF = {table: name for name, tables in TABLES.items() for table in tables}


class RecordClasses(Mapping[str, type[Record]]):
    """The record classes by table. A store is imported when one of its classes is looked up."""

    def __getitem__(self, table: str) -> type[Record]:
        found: type[Record] = next(record for record in store_class(_STORE_OF[table]).records if record.table == table)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_STORE_OF)

    def __len__(self) -> int:
        return len(_STORE_OF)


def store_class(name: str) -> Any:
    """Import and return a store's class."""
    return Journal if name == "journal" else vars(Decklog)[name].store_class()
