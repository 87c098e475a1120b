"""Context packages as records, and how much each is worth to an agent."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.records.fork_rules import Computed, ForkRule, Refer
from decklog.records.record import Record

SUMMARY_CHARACTERS = 200
_GROUP_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
    """Who leaves packages and for whom."""

    PROJECT_MANAGER = "project_manager"
    DEVELOPER = "developer"
    SENIOR_SOFTWARE_ENGINEER = "senior_software_engineer"
    QA_EXPERT = "qa_expert"
    TECH_LEAD = "tech_lead"
    INVESTIGATOR = "investigator"
    REQUIREMENTS_ENGINEER = "requirements_engineer"
    ORCHESTRATOR = "orchestrator"


if TYPE_CHECKING:
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
else:
    ContextAgentLike = ContextAgent


class ConsumingAgent(StrEnum):
    """Whose reading is recorded iteration by iteration."""

    DEVELOPER = "developer"
    QA_EXPERT = "qa_expert"
    TECH_LEAD = "tech_lead"
    SENIOR_SOFTWARE_ENGINEER = "senior_software_engineer"
    INVESTIGATOR = "investigator"


if TYPE_CHECKING:
    ConsumingAgentLike = (
        ConsumingAgent | Literal["developer", "qa_expert", "tech_lead", "senior_software_engineer", "investigator"]
    )
else:
    ConsumingAgentLike = ConsumingAgent


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
    def forked(cls, image: "dict[str, Any]", db: "Database") -> "dict[str, Any]":
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
    def forked(cls, image: "dict[str, Any]", db: "Database") -> "dict[str, Any]":
        row = db.one("select number from packages where id = :id", {"id": image["package_id"]})
        assert row is not None
        parts = (image["run_id"], image["group_id"], image["agent"], image["iteration"], row[0])
        return {**image, "scope_id": scope_id_of(*parts)}


def next_number(db: Database) -> int:
    """Return the next number of a log's packages; nobody else gets one until this transaction ends.

    The run's stream is locked before it, as before everything.
    """
    db.rows("select one from context_turn where one = 1 for update", {})
    row = db.one("select coalesce(max(number), 0) + 1 from packages", {})
    assert row is not None
    return int(row[0])


def scope_id_of(run_id: str, group_id: str, agent: str, iteration: int, number: int) -> str:
    """Return the name of one use of a package: the same use has the same name."""
    return sha256(f"{run_id}:{group_id}:{agent}:{iteration}:{number}".encode()).hexdigest()[:32]


def score_of(package: ContextPackage, *, group_id: str | None, is_consumer: bool, now: datetime) -> float:
    """Return how much a package is worth: its priority first, then that it is about the group, meant for the agent, and new."""
    days = max((now - package.created_at).total_seconds() / 86_400, 0.0)
    same_group = package.group_id is not None and package.group_id == group_id
    return 4 * WEIGHTS[package.priority] + 2 * same_group + 1.5 * is_consumer + 1 / (days + 1)


def summary_of(text: str) -> str:
    """Write a summary on one line of at most 200 characters; a longer one ends in three dots."""
    line = " ".join(text.splitlines()).strip()
    if not line:
        raise Invalid("a package needs a summary; it is what agents choose by", field="summary")
    return line if len(line) <= SUMMARY_CHARACTERS else line[: SUMMARY_CHARACTERS - 3] + "..."


def path_of(text: str) -> str:
    """Write a path with forward slashes; it may not climb out of its folder."""
    path = text.strip().replace("\\", "/")
    if not path or ".." in path.split("/"):
        raise Invalid(f"{text!r} can't be a package's file: give a path without '..'", field="file_path")
    return path


def group_of(group_id: str | None) -> str | None:
    """Check a group's id; `global` and None mean the whole run."""
    if group_id is None or group_id == "global":
        return None
    if not _GROUP_ID.fullmatch(group_id):
        raise Invalid(f"{group_id!r} can't be a group's id: 1 to 64 letters, digits, _ and -", field="group_id")
    return group_id
