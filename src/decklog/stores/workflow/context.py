"""Context packages: what one agent leaves for the next ones, offered by relevance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.base import Database
from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import Computed, ForkRule, Refer
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.checks import check_group_id, check_integer
from decklog.stores.results.workflow import RankedPackage

SUMMARY_CHARACTERS = 200


class PackageType(StrEnum):
    RESEARCH = "research"
    FAILURES = "failures"
    DECISIONS = "decisions"
    HANDOFF = "handoff"
    INVESTIGATION = "investigation"


PackageTypeLike = PackageType | Literal["research", "failures", "decisions", "handoff", "investigation"]


class PackagePriority(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


PackagePriorityLike = PackagePriority | Literal["low", "medium", "high", "critical"]


class ContextScope(StrEnum):
    GROUP = "group"
    GLOBAL = "global"


class ContextAgent(StrEnum):
    """Authors and recipients of packages."""

    PROJECT_MANAGER = "project_manager"
    DEVELOPER = "developer"
    SENIOR_SOFTWARE_ENGINEER = "senior_software_engineer"
    QA_EXPERT = "qa_expert"
    TECH_LEAD = "tech_lead"
    INVESTIGATOR = "investigator"
    REQUIREMENTS_ENGINEER = "requirements_engineer"
    ORCHESTRATOR = "orchestrator"


ContextAgentLike = (
    ContextAgent
    | Literal[
        "project_manager",
        "developer",
        "senior_software_engineer",
        "qa_expert",
        "tech_lead",
        "investigator",
        "requirements_engineer",
        "orchestrator",
    ]
)


class ConsumingAgent(StrEnum):
    """Agents whose reads are recorded by iteration."""

    DEVELOPER = "developer"
    QA_EXPERT = "qa_expert"
    TECH_LEAD = "tech_lead"
    SENIOR_SOFTWARE_ENGINEER = "senior_software_engineer"
    INVESTIGATOR = "investigator"


ConsumingAgentLike = ConsumingAgent | Literal["developer", "qa_expert", "tech_lead", "senior_software_engineer", "investigator"]


WEIGHTS = {PackagePriority.CRITICAL: 4, PackagePriority.HIGH: 3, PackagePriority.MEDIUM: 2, PackagePriority.LOW: 1}


@dataclass(frozen=True, kw_only=True)
class ContextPackage(Record):
    """What one agent found out and keeps for others."""

    table = "packages"
    fork = ForkRule(
        "What was found out still helps.",
        fields={
            "number": Computed("the next number of the log"),
            "supersedes_id": Refer("packages"),
            "superseded_by_id": Refer("packages"),
        },
        same_ids=("group_id",),
    )

    id: str
    number: int
    run_id: str
    package_type: PackageType
    file_path: str
    producer: ContextAgent
    summary: str
    created_at: datetime
    group_id: str | None = None
    scope: ContextScope = ContextScope.GLOBAL
    priority: PackagePriority = PackagePriority.MEDIUM
    size_bytes: int | None = None
    version: int = 1
    supersedes_id: str | None = None
    superseded_by_id: str | None = None
    key: str | None = None

    @classmethod
    def compute_forked_fields(cls, image: dict[str, Any], db: Database) -> dict[str, Any]:
        return {**image, "number": next_number(db)}


@dataclass(frozen=True, kw_only=True)
class ContextConsumer(Record):
    """One agent a package is for; `iteration` is the one it was read in."""

    table = "context_consumers"
    identity = ("package_id", "agent")
    fork = ForkRule("A package is still for the same agents.", fields={"package_id": Refer("packages")})

    package_id: str
    agent: ContextAgent
    run_id: str
    iteration: int = 1
    consumed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ContextConsumption(Record):
    """That an agent used a package in one iteration of a group's work; `scope_id` is a digest of these."""

    table = "context_consumptions"
    fork = ForkRule(
        "What an agent has read stays read.",
        fields={"package_id": Refer("packages"), "scope_id": Computed("the digest of the copy's parts")},
        same_ids=("group_id",),
    )

    id: str
    scope_id: str
    run_id: str
    group_id: str
    agent: ConsumingAgent
    iteration: int
    package_id: str
    consumed_at: datetime

    @classmethod
    def compute_forked_fields(cls, image: dict[str, Any], db: Database) -> dict[str, Any]:
        row = db.one("select number from packages where id = :id", {"id": image["package_id"]})
        assert row is not None
        parts = (image["run_id"], image["group_id"], image["agent"], image["iteration"], row[0])
        return {**image, "scope_id": scope_id_of(*parts)}


def next_number(db: Database) -> int:
    """Return the next package number of a log, and lock the numbering until the transaction ends.

    The run's stream is locked before it.
    """
    db.rows("select one from context_turn where one = 1 for update", {})
    row = db.one("select coalesce(max(number), 0) + 1 from packages", {})
    assert row is not None
    return int(row[0])


def scope_id_of(run_id: str, group_id: str, agent: str, iteration: int, number: int) -> str:
    """Return the id of one use of a package; the same use has the same id."""
    return sha256(f"{run_id}:{group_id}:{agent}:{iteration}:{number}".encode()).hexdigest()[:32]


def score_of(package: ContextPackage, *, group_id: str | None, is_consumer: bool, now: datetime) -> float:
    """Return the relevance of a package: by its priority, then its group, its recipient and its age."""
    days = max((now - package.created_at).total_seconds() / 86_400, 0.0)
    same_group = package.group_id is not None and package.group_id == group_id
    return 4 * WEIGHTS[package.priority] + 2 * same_group + 1.5 * is_consumer + 1 / (days + 1)


def summary_of(text: str) -> str:
    """Return a summary as one line of at most 200 characters; a longer one is cut with three dots."""
    line = " ".join(text.splitlines()).strip()
    if not line:
        raise Invalid("a package needs a summary; it is what agents choose by", field="summary")
    return line if len(line) <= SUMMARY_CHARACTERS else line[: SUMMARY_CHARACTERS - 3] + "..."


def path_of(text: str) -> str:
    """Normalize a path to forward slashes. Raise Invalid if it leaves its folder."""
    path = text.strip().replace("\\", "/")
    if not path or ".." in path.split("/"):
        raise Invalid(f"{text!r} can't be a package's file: give a path without '..'", field="file_path")
    return path


def group_of(group_id: str | None) -> str | None:
    """Check a group's id; `global` and None mean the whole run."""
    return None if group_id is None or group_id == "global" else check_group_id(group_id)


MAX_OFFER = 50
_BY_WORTH = """
    case p.priority when 'critical' then 0 when 'high' then 1 when 'medium' then 2 else 3 end, p.created_at desc, p.number desc
"""


class Context(Store):
    """Stores packages, offers each agent those that are for it, and records who read which."""

    records = (ContextPackage, ContextConsumer, ContextConsumption)
    derived = ("context_turn",)

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        return self._find_lock_row_problems("context_turn", "one", [1])

    def derive(self) -> None:
        self._db.write(lambda: self._restore_lock_rows("context_turn", "one", [1]))

    @writes
    def save(
        self,
        run_id: str,
        package_type: PackageTypeLike,
        file_path: str,
        producer: ContextAgentLike,
        summary: str,
        *,
        consumers: list[str] | None = None,
        group_id: str | None = None,
        priority: PackagePriorityLike = PackagePriority.MEDIUM,
        size_bytes: int | None = None,
        supersedes: str | None = None,
        number: int | None = None,
        key: str | None = None,
    ) -> ContextPackage:
        """Leave a package for other agents; it is about one group, or about the whole run.

        `supersedes` names the package (id or number) that this one replaces: the old one is offered no more, and its consumers
        are kept unless others are given. A key that the run knows already gives that package back.
        """
        fields = {
            "run_id": run_id,
            "package_type": parse_enum(PackageType, package_type, "package_type"),
            "file_path": path_of(file_path),
            "producer": _agent(producer, "producer"),
            "summary": summary_of(summary),
            "group_id": group_of(group_id),
            "scope": ContextScope.GLOBAL if group_of(group_id) is None else ContextScope.GROUP,
            "priority": parse_enum(PackagePriority, priority, "priority"),
            "size_bytes": None if size_bytes is None else check_integer("size_bytes", size_bytes),
            "key": key,
        }
        agents = None if consumers is None else sorted({_agent(agent, "consumers") for agent in consumers})
        if not agents and (supersedes is None or agents == []):
            raise Invalid("a package needs at least one consumer", field="consumers")
        return self._find_or_add(
            lambda: self._seek_by(ContextPackage, run_id=run_id, key=key), lambda: self._save(fields, agents, supersedes, number)
        )

    def _save(
        self, fields: dict[str, Any], agents: list[ContextAgent] | None, supersedes: str | None, number: int | None
    ) -> ContextPackage:
        self._db.lock_stream(fields["run_id"])
        old = None if supersedes is None else self._replaceable(supersedes, fields["run_id"])
        package = self._add(
            ContextPackage,
            note=fields["summary"],
            id=self._ids.new("pkg"),
            number=number if number is not None else next_number(self._db),
            version=1 if old is None else old.version + 1,
            supersedes_id=old and old.id,
            created_at=self._now(),
            **fields,
        )
        if old is not None:
            changes, is_newest = {"superseded_by_id": package.id}, "superseded_by_id is null"
            self._update(ContextPackage, old.id, changes, condition=is_newest, note=f"superseded by {package.id}")
            agents = agents or [consumer.agent for consumer in self._consumers(old.id)]
        for agent in agents or []:
            self._add(ContextConsumer, package_id=package.id, agent=agent, run_id=package.run_id)
        return package

    def _replaceable(self, reference: str, run_id: str) -> ContextPackage:
        old = self._package(reference, for_update=True)
        if old.run_id != run_id:
            raise Invalid(f"package {old.number} belongs to run {old.run_id}, not to {run_id}", field="supersedes")
        if old.superseded_by_id is not None:
            newer = self._package(old.superseded_by_id)
            raise Conflict(
                f"package {old.number} was superseded by package {newer.number}; supersede that one",
                id=old.id,
                superseded_by=newer.id,
            )
        return old

    @reads
    def get(self, package_id: str) -> ContextPackage:
        """Get a package by its id or its number."""
        return self._package(package_id)

    def _package(self, reference: str, *, for_update: bool = False) -> ContextPackage:
        is_number = reference.isascii() and reference.isdigit() and len(reference) < 19
        known: dict[str, Any] = {"number": int(reference)} if is_number else {"id": reference}
        found = self._seek_by(ContextPackage, for_update=for_update, **known)
        if found is None:
            raise NotFound(f"there is no package {reference}", id=reference)
        return found

    @reads
    def find(
        self,
        run_id: str,
        *,
        group_id: str | None = None,
        package_type: PackageTypeLike | None = None,
        producer: ContextAgentLike | None = None,
        include_superseded: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[ContextPackage]:
        """List a run's packages, newest first; superseded ones only when asked for."""
        where = Where(
            ContextPackage,
            run_id=run_id,
            group_id=group_of(group_id),
            package_type=package_type,
            producer=producer and _agent(producer, "producer"),
            scope=ContextScope.GLOBAL if group_id == "global" else None,
        )
        if not include_superseded:
            where.add("superseded_by_id is null")
        return self._page(ContextPackage, where, order=("number",), limit=limit, after=after, descending=True)

    @reads
    def offer(
        self,
        run_id: str,
        agent: ContextAgentLike,
        *,
        group_id: str | None = None,
        limit: int = 3,
        include_consumed: bool = False,
    ) -> list[ContextPackage]:
        """Offer an agent the packages left for it and not read yet: of its group and of the whole run, most urgent first."""
        return self._select(
            ContextPackage,
            f"""
            select p.*
              from packages p
              join context_consumers c on c.package_id = p.id and c.agent = :agent
             where p.run_id = :run_id
               and (p.scope = 'global' or p.group_id = :group_id)
               and p.superseded_by_id is null
               {"" if include_consumed else "and c.consumed_at is null"}
             order by {_BY_WORTH}
             limit {_limit(limit)}
            """,
            run_id=run_id,
            agent=_agent(agent, "agent"),
            group_id=group_of(group_id) or "",
        )

    @reads
    def rank(self, run_id: str, agent: ContextAgentLike, *, group_id: str | None = None, limit: int = 5) -> list[RankedPackage]:
        """Rank all of a run's packages for an agent, read or not, with each one's score.

        The score depends on the priority, then the agent's own group, then the consumers, then the age.
        """
        agent, group, now = _agent(agent, "agent"), group_of(group_id), self._now()
        where = Where(ContextPackage, run_id=run_id)
        where.add("superseded_by_id is null")
        packages = self._list(ContextPackage, where, order="number")
        mine = {consumer.package_id for consumer in self._select_by(ContextConsumer, run_id=run_id, agent=agent)}
        scored = [(score_of(p, group_id=group, is_consumer=p.id in mine, now=now), p) for p in packages]
        scored.sort(key=lambda pair: (pair[0], pair[1].created_at, pair[1].number), reverse=True)
        return [{"score": round(score, 6), "package": package.as_dict()} for score, package in scored[: _limit(limit)]]

    # Reading a package

    @reads
    def consumers(self, package_id: str) -> list[ContextConsumer]:
        """List the agents a package is for, and when each read it."""
        return self._consumers(self._package(package_id).id)

    def _consumers(self, package_id: str) -> list[ContextConsumer]:
        return self._select_by(ContextConsumer, order="agent", package_id=package_id)

    @writes
    def consume(self, package_id: str, agent: ContextAgentLike, *, iteration: int = 1) -> ContextConsumer:
        """Mark a package as read by one of its consumers; a repeated call reports it."""
        package, agent = self._package(package_id), _agent(agent, "agent")
        changes = {"consumed_at": self._now(), "iteration": check_integer("iteration", iteration)}
        changed = self._try_update(
            ContextConsumer, (package.id, agent), changes, condition="consumed_at is null", run_id=package.run_id
        )
        if changed is not None:
            return changed
        known = self._seek(ContextConsumer, (package.id, agent))
        if known is None:
            names = ", ".join(consumer.agent for consumer in self._consumers(package.id))
            raise NotFound(f"package {package.number} is not for {agent}; it is for {names}", id=package.id, agent=agent)
        return known.mark_already()

    @writes
    def record_consumption(
        self, run_id: str, group_id: str, agent: ConsumingAgentLike, iteration: int, package_id: str
    ) -> ContextConsumption:
        """Record that an agent used a package in one iteration of a group's work; recording it again changes nothing."""
        agent = parse_enum(ConsumingAgent, agent, "agent")
        iteration = check_integer("iteration", iteration)
        group = group_of(group_id)
        if group is None or group.lower() == "global":
            raise Invalid("consumption is recorded for one group, not for the whole run", field="group_id")
        package = self._package(package_id)
        if package.run_id != run_id:
            raise Invalid(f"package {package.number} belongs to run {package.run_id}, not to {run_id}", field="package_id")
        scope_id = scope_id_of(run_id, group, agent, iteration, package.number)
        return self._find_or_add(
            lambda: self._seek_by(ContextConsumption, scope_id=scope_id),
            lambda: self._add(
                ContextConsumption,
                id=self._ids.new("use"),
                scope_id=scope_id,
                run_id=run_id,
                group_id=group,
                agent=agent,
                iteration=iteration,
                package_id=package.id,
                consumed_at=self._now(),
            ),
        )

    @reads
    def consumptions(
        self,
        run_id: str,
        *,
        group_id: str | None = None,
        agent: ConsumingAgentLike | None = None,
        iteration: int | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[ContextConsumption]:
        """List what was used in which iteration, newest first."""
        where = Where(ContextConsumption, run_id=run_id, group_id=group_of(group_id), agent=agent, iteration=iteration)
        return self._page(ContextConsumption, where, order=("consumed_at", "id"), limit=limit, after=after, descending=True)


def _agent(name: str, field: str) -> ContextAgent:
    return parse_enum(ContextAgent, name.strip().lower(), field)


def _limit(limit: int) -> int:
    return check_integer("limit", limit, low=1, high=MAX_OFFER)
