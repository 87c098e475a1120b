"""Import bazinga-db's databases."""

from datetime import datetime
from typing import Any, ClassVar

from decklog.core.errors import Conflict, Invalid, NotFound, SchemaTooNew
from decklog.importing.exports import Schema
from decklog.importing.importer import Import
from decklog.importing.report import Outcome
from decklog.importing.row import EPOCH, Row
from decklog.importing.source import SqliteSource
from decklog.importing.writer import Mapping, PendingCharge, PendingEntry, pure_mapping, run_id_of, saved_outcome
from decklog.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.memory.patterns import ErrorPattern
from decklog.stores.memory.strategies import Strategy, StrategyTopic
from decklog.stores.of_run import next_number
from decklog.stores.runs.run import ENDED, Run, RunMode, RunStatus
from decklog.stores.tasks.criteria import Criterion, CriterionStatus
from decklog.stores.tasks.groups import Group, GroupStatus, GroupTier, MergeStatus, ReviewStatus
from decklog.stores.tasks.plans import PhaseStatus, Plan, PlanPhase, parse_phases
from decklog.stores.workflow.context import (
    ConsumingAgent,
    ContextAgent,
    ContextConsumer,
    ContextConsumption,
    ContextPackage,
    ContextScope,
    PackagePriority,
    PackageType,
)

NEWEST = 19
SCHEMA = Schema(__file__)
TABLES = {
    **{name: columns for name, columns in SCHEMA.tables.items() if name != "schema_version"},
    # Columns of old files only.
    "configuration": ("key", "value", "updated_at"),
    "decisions": ("id", "session_id", "timestamp", "iteration", "decision_type", "decision_data"),
}
_JSON = (dict, list, str, int, float, bool)
_KINDS = (EntryKind.INTERACTION, EntryKind.REASONING, EntryKind.EVENT)
_LONGEST_SUMMARY = 200
_CONFIGURATION = "configuration of the old system; decklog workflow load bazinga/config/transitions.json routes by it"


class BazingaImport(Import):
    """Imports one file table by table, in the order of the foreign keys."""

    system = "bazinga"
    tables = TABLES
    keys: ClassVar = {
        "sessions": ("session_id",),
        "task_groups": ("session_id", "id"),
        "consumption_scope": ("scope_id",),
        "error_patterns": ("pattern_hash", "project_id"),
        "strategies": ("strategy_id",),
        "configuration": ("key",),
    }
    # Old files have a row for every version of a state.
    orders: ClassVar = {"state_snapshots": ("timestamp", "id")}
    ignored = ("schema_version",)

    def __init__(self, log: Decklog, path: str, **settings: Any) -> None:
        super().__init__(log, path, **settings)
        self.packages: dict[str, str] = {}

    def mappings(self) -> dict[str, Mapping]:
        """Return the tables with their mappings; configuration rows of the old system are kept unchanged."""
        return {
            "sessions": self.session,
            "task_groups": self.group,
            "orchestration_logs": self.log_entry,
            "state_snapshots": self.state,
            "token_usage": self.tokens,
            "skill_outputs": self.output,
            "development_plans": self.plan,
            "success_criteria": self.criterion,
            "context_packages": self.package,
            "context_package_consumers": self.consumer,
            "consumption_scope": self.consumption,
            "error_patterns": self.pattern,
            "strategies": self.strategy,
            "workflow_transitions": self.configuration,
            "agent_markers": self.configuration,
            "workflow_special_rules": self.configuration,
            "configuration": self.configuration,
            "decisions": self.decision,
        }

    def check(self, source: SqliteSource) -> None:
        """Raise for other databases and newer versions."""
        if "sessions" not in source or "orchestration_logs" not in source:
            raise Invalid(
                f"{source.path} is no bazinga database: it has no sessions or no orchestration_logs",
                hint=f"It has {', '.join(source.columns) or 'no tables'}.",
            )
        versions = [row.get("version") for row in source.rows("schema_version")]
        newest = self.report.version = max((version for version in versions if type(version) is int), default=1)
        if newest > NEWEST:
            why = f"{source.path} has schema version {newest}, and {NEWEST} is the newest known"
            raise SchemaTooNew(why, version=newest, newest=NEWEST)

    def configuration(self, row: Row) -> Outcome:
        """Store a configuration row of the old system unchanged."""
        return self.writer.keep_raw(row, _CONFIGURATION)

    def decision(self, row: Row) -> Outcome:
        """Convert a decision of the oldest files to an event of its run."""
        self.in_run(row)
        return self.writer.keep_raw(row, "a decision, as the oldest files have them", row.time("timestamp"))

    def in_run(self, row: Row) -> str:
        """Place a row in its session's run; a row whose session is gone can't be placed."""
        session = row.text("session_id")
        if session is None:
            raise Invalid(f"{row} names no session")
        return self.place_in_run(row, session, "session")

    def session(self, row: Row) -> Outcome:
        """Convert a session to a run."""
        session = row.take("session_id")
        run_id = row.stream = run_id_of(str(session))
        if run_id != session:
            row.replace("session_id", run_id)
        created = row.time("created_at")
        started = row.time("start_time", created) or EPOCH
        if created not in (None, started):
            row.leftovers["created_at"] = row.columns["created_at"]
        status = row.one_of("status", RunStatus, RunStatus.ACTIVE)
        ended = self._ended(row, status, started)
        return self.writer.record(
            Run,
            clock="updated_at",
            new_stream=True,
            id=run_id,
            goal=row.text("original_requirements", ""),
            status=status,
            mode=row.one_of("mode", RunMode, None),
            branch=row.text("initial_branch"),
            metadata=_metadata(row),
            started_at=started,
            updated_at=max(started, ended or started),
            ended_at=ended,
        )

    def _ended(self, row: Row, status: RunStatus | None, started: datetime) -> datetime | None:
        ended: datetime | None = row.time("end_time")
        if status not in ENDED:
            if ended is not None:
                row.replace("end_time", None)
            return None
        return ended or started

    def group(self, row: Row) -> Outcome:
        """Import a task group."""
        run_id, group_id = self.in_run(row), row.text("id")
        present = self.writer.intake.seek(Group, (run_id, group_id))
        created: datetime = row.time("created_at", EPOCH)
        return self.writer.record(
            Group,
            clock="updated_at",
            run_id=run_id,
            group_id=group_id,
            number=present.number if present else next_number(self.log.db, Group, run_id),
            created_at=created,
            updated_at=row.time("updated_at", created),
            **_group_fields(row),
        )

    @pure_mapping
    def log_entry(self, row: Row) -> PendingEntry:
        """Map a log row to an entry: an interaction, a reasoning or an event."""
        self.in_run(row)
        kind = row.one_of("log_type", EntryKind, EntryKind.INTERACTION) or EntryKind.INTERACTION
        if kind not in _KINDS:
            row.replace("log_type", EntryKind.INTERACTION.value)
            kind = EntryKind.INTERACTION
        entry = {
            "body": row.text("content", ""),
            "kind": kind,
            "agent": row.text("agent_type", "unknown"),
            **row.fields(row.text, "subtype=event_subtype agent_id"),
            "group_id": row.text("group_id", "global" if kind is EntryKind.EVENT else None),
            "iteration": row.integer("iteration", low=-(2**63)),
            "payload": row.json("event_payload", (dict, list)),
            "phase": row.one_of("reasoning_phase", ReasoningPhase, None),
            "confidence": row.one_of("confidence_level", Confidence, None),
            "refs": row.json_texts("references_json"),
            "at": row.time("timestamp"),
        }
        if row.take("redacted"):
            row.replace("redacted", 0)
        return self._with_key(row, kind, entry)

    def _with_key(self, row: Row, kind: EntryKind, entry: dict[str, Any]) -> PendingEntry:
        given = row.text("idempotency_key")
        row.take("id")
        if given is not None and kind is EntryKind.EVENT:
            # The event keeps its key, so that sending it again is recognized; its number is a kept column.
            row.leftovers["id"] = row.columns["id"]
            entry["key"] = given
        elif given is not None:
            row.leftovers["idempotency_key"] = given
        return self.writer.entry(row, entry)

    def state(self, row: Row) -> Outcome:
        """Import a state; files before version 18 have a row for every save, and each becomes a version."""
        run_id = self.in_run(row)
        document = row.document("state_data", _JSON)
        given = {"name": row.text("state_type", "state"), "group_id": row.text("group_id", "global")}
        saved_at = row.time("timestamp")
        if not self.writer.mark_imported(row, by_content=True):
            row.leftovers = {}
            return Outcome.ALREADY
        if self._is_older(run_id, given, saved_at):
            return self.writer.keep_raw(row, "a newer version is here", saved_at)
        saved = self.log.states.save(run_id, given["name"], document, group_id=given["group_id"], saved_at=saved_at)
        if saved.already:
            return self.writer.keep_raw(row, f"the same as version {saved.version}", saved_at)
        row.result_name = f"state {run_id} {given['group_id']} {given['name']} {saved.version}"
        return Outcome.NEW

    def _is_older(self, run_id: str, place: dict[str, str], saved_at: datetime | None) -> bool:
        try:
            present = self.log.states.get(run_id, place["name"], group_id=place["group_id"])
        except NotFound:
            return False
        return saved_at is not None and saved_at < present.saved_at

    @pure_mapping
    def tokens(self, row: Row) -> PendingCharge:
        """Charge estimated tokens; the model and the price are unknown."""
        self.in_run(row)
        row.take("id")
        charge = {
            "model": "unknown",
            "input_tokens": row.integer("tokens_estimated", 0),
            **row.fields(row.text, "agent=agent_type agent_id"),
            "call_site": "estimate",
            "occurred_at": row.time("timestamp"),
        }
        return self.writer.charge(row, charge)

    def output(self, row: Row) -> Outcome:
        """Import a skill's output; duplicates of an iteration get the next free one."""
        run_id = self.in_run(row)
        row.take("id")
        output = self.log.outputs.save(
            run_id,
            row.text("skill_name", ""),
            row.document("output_data", _JSON),
            **row.fields(row.text, "agent=agent_type group_id"),
            saved_at=row.time("timestamp"),
            key=self.writer.key(row),
        )
        if row.take("iteration", 1) != output.iteration:
            row.replace("iteration", output.iteration)
        return saved_outcome(output)

    def plan(self, row: Row) -> Outcome:
        """Import a development plan with its phases."""
        run_id = self.in_run(row)
        row.take("id")
        created: datetime = row.time("created_at", EPOCH)
        updated: datetime = row.time("updated_at", created)
        phases = parse_phases([_phase(item) for item in row.json("phases", (list,), [])])
        outcome = self.writer.record(
            Plan,
            clock="updated_at",
            run_id=run_id,
            **row.fields(row.text, "original_prompt plan_text", ""),
            total_phases=row.integer("total_phases", len(phases)),
            current_phase=row.integer("current_phase"),
            metadata=row.json("metadata", (dict,)),
            created_at=created,
            updated_at=updated,
        )
        marked = [
            self.writer.record(PlanPhase, clock="updated_at", run_id=run_id, updated_at=updated, **phase) for phase in phases
        ]
        if outcome is Outcome.ALREADY and marked.count(Outcome.ALREADY) < len(marked):
            outcome = Outcome.CHANGED
        row.leftovers["id"] = row.columns["id"]
        row.result_name = f"plan {run_id}"
        return outcome

    def criterion(self, row: Row) -> Outcome:
        """Import a success criterion."""
        run_id, text = self.in_run(row), row.text("criterion", "")
        created: datetime = row.time("created_at", EPOCH)
        row.take("id")
        outcome = self.writer.record(
            Criterion,
            clock="updated_at",
            run_id=run_id,
            number=self._number_of(run_id, text),
            criterion=text,
            status=row.one_of("status", CriterionStatus, CriterionStatus.PENDING),
            **row.fields(row.text, "actual evidence"),
            required=row.flag("required_for_completion", True),
            created_at=created,
            updated_at=row.time("updated_at", created),
        )
        row.leftovers["id"] = row.columns["id"]
        row.result_name = f"criterion {run_id} {text}"
        return outcome

    def _number_of(self, run_id: str, criterion: str) -> int:
        try:
            present: Criterion = self.log.criteria.get(run_id, criterion)
        except NotFound:
            return next_number(self.log.db, Criterion, run_id)
        return present.number if present.criterion == criterion else next_number(self.log.db, Criterion, run_id)

    def package(self, row: Row) -> Outcome:
        """Import a package."""
        run_id = self.in_run(row)
        number = row.take("id")
        package_id = package_id_of(run_id, number)
        group_id = row.text("group_id")
        if (row.take("scope", "group") == ContextScope.GLOBAL) != (group_id is None):
            row.replace("scope", ContextScope.GLOBAL.value if group_id is None else ContextScope.GROUP.value)
        if row.take("version", 1) != 1:
            row.replace("version", 1)
        outcome = self.writer.record(
            ContextPackage,
            id=package_id,
            number=self._number(package_id, number),
            run_id=run_id,
            group_id=group_id,
            scope=ContextScope.GLOBAL if group_id is None else ContextScope.GROUP,
            package_type=row.required("package_type", PackageType),
            file_path=row.text("file_path", ""),
            producer=row.required("producer_agent", ContextAgent),
            priority=row.one_of("priority", PackagePriority, PackagePriority.MEDIUM),
            summary=_summary(row),
            size_bytes=row.integer("size_bytes"),
            created_at=row.time("created_at", EPOCH),
        )
        self.packages[str(number)] = run_id
        return outcome

    def _number(self, package_id: str, number: object) -> int:
        """Return the number from the file if it is free in this log, else the next free one."""
        if type(number) is int and number > 0:
            try:
                present: ContextPackage = self.log.context.get(str(number))
            except NotFound:
                return number
            if present.id == package_id:
                return number
        row = self.log.db.one("select coalesce(max(number), 0) + 1 from packages", {})
        return int(row[0]) if row else 1

    def consumer(self, row: Row) -> Outcome:
        """Import a package's recipient; one that read it in several iterations becomes one consumer."""
        package_id, run_id = self._package_of(row)
        agent = row.required("agent_type", ContextAgent)
        iteration, consumed_at = row.integer("iteration", 1), row.time("consumed_at")
        row.result_name = f"consumer {package_id} {agent}"
        is_known = not self.writer.mark_imported(row)
        if is_known:
            row.leftovers = {}
        elif self.writer.intake.seek(ContextConsumer, (package_id, agent)) is not None:
            raise Conflict(f"{agent} is a consumer of package {row.columns['package_id']} already")
        return self.writer.record(
            ContextConsumer,
            package_id=package_id,
            agent=agent,
            run_id=run_id,
            iteration=iteration,
            consumed_at=consumed_at,
        )

    def consumption(self, row: Row) -> Outcome:
        """Import which agent used a package in which iteration."""
        package_id, run_id = self._package_of(row)
        row.take("session_id")
        scope_id = row.text("scope_id")
        return self.writer.record(
            ContextConsumption,
            id=f"use_{scope_id}",
            scope_id=scope_id,
            run_id=run_id,
            group_id=row.text("group_id", ""),
            agent=row.required("agent_type", ConsumingAgent),
            iteration=row.integer("iteration", 0),
            package_id=package_id,
            consumed_at=row.time("consumed_at", EPOCH),
        )

    def _package_of(self, row: Row) -> tuple[str, str]:
        """Find the package of a row, and assign the row to the package's run."""
        number = row.take("package_id")
        if str(number) not in self.packages:
            raise NotFound(f"its package {number} is not in the file, or could not be taken")
        run_id = row.stream = self.packages[str(number)]
        return package_id_of(run_id, number), run_id

    def pattern(self, row: Row) -> Outcome:
        """Import an error pattern with its counts."""
        created: datetime = row.time("created_at", EPOCH)
        confidence = row.take("confidence", 0.5)
        if not isinstance(confidence, (int, float)) or not 0 <= confidence <= 1:
            raise Invalid(f"a confidence goes from 0 to 1; it is {confidence!r}")
        fields: dict[str, Any] = {
            "pattern_hash": row.text("pattern_hash"),
            "project": row.text("project_id", ""),
            "signature": row.json("signature_json", (dict,), {}),
            "solution": row.text("solution", ""),
            "created_at": created,
            "last_seen_at": row.time("last_seen", created),
            "confidence": float(confidence),
            "occurrences": row.integer("occurrences", 1, low=1),
            "lang": row.text("lang"),
            "ttl_days": row.integer("ttl_days", 90, low=1, high=100_000),
        }
        adopted = self.log.patterns.adopt(**fields)
        return self.writer.record(ErrorPattern, clock="last_seen_at", **fields) if adopted.already else Outcome.NEW

    def strategy(self, row: Row) -> Outcome:
        """Import a strategy with its id; an unknown topic becomes `general`."""
        created: datetime = row.time("created_at", EPOCH)
        topic = row.take("topic")
        if topic not in tuple(StrategyTopic):
            topic = row.replace("topic", "general")
        strategy_id = row.text("strategy_id")
        fields: dict[str, Any] = {
            "project": row.text("project_id", ""),
            "topic": StrategyTopic(topic),
            "insight": row.text("insight", ""),
            "created_at": created,
            "last_seen_at": row.time("last_seen", created),
            "helpfulness": row.integer("helpfulness", 0),
            **row.fields(row.text, "lang framework"),
        }
        adopted = self.log.strategies.adopt(strategy_id, **fields)
        return self.writer.record(Strategy, clock="last_seen_at", id=strategy_id, **fields) if adopted.already else Outcome.NEW


def _phase(item: Any) -> Any:
    """Convert a phase; an unknown status goes to the extra fields."""
    if not isinstance(item, dict) or item.get("status") in (None, *PhaseStatus):
        return item
    given = item.get("extra")
    extra = given if isinstance(given, dict) else {}
    return {**{name: value for name, value in item.items() if name != "status"}, "extra": {**extra, "status": item["status"]}}


def _metadata(row: Row) -> dict[str, Any]:
    """Parse a session's metadata; keep an empty object as a leftover column, because a run without metadata exports none."""
    found: dict[str, Any] = row.json("metadata", (dict,), {})
    if found == {} and "metadata" not in row.leftovers and row.columns.get("metadata") is not None:
        row.replace("metadata", None)
    return found


def _packages(row: Row) -> list[str] | None:
    """Read the package numbers, which an export writes as numbers again; other list items are kept as leftovers."""
    found = row.json_texts("context_references")
    if found:
        numbers = [int(text) if text.isdecimal() else text for text in found]
        row.replacements.pop("context_references", None)
        if row.json("context_references", (list,)) != numbers:
            row.replace("context_references", to_json(numbers))
    return found


def _group_fields(row: Row) -> dict[str, Any]:
    return {
        "name": row.text("name", ""),
        "status": row.one_of("status", GroupStatus, GroupStatus.PENDING),
        "last_review_status": row.one_of("last_review_status", ReviewStatus, None),
        "merge_status": row.one_of("merge_status", MergeStatus, None),
        "initial_tier": row.one_of("initial_tier", GroupTier, GroupTier.DEVELOPER),
        "context_references": _packages(row),
        **row.fields(row.text, "assigned_to feature_branch component_path"),
        **row.fields(row.json_texts, "specializations speckit_task_ids"),
        "complexity": row.integer("complexity", low=1, high=10),
        "item_count": row.integer("item_count", 1, low=1),
        "review_iteration": row.integer("review_iteration", 1, low=1),
        "security_sensitive": row.flag("security_sensitive"),
        **row.fields(row.integer, "revision_count qa_attempts tl_review_attempts no_progress_count blocking_issues_count", 0),
    }


def package_id_of(run_id: str, number: object) -> str:
    return f"pkg_{run_id}_{number}"


def _summary(row: Row) -> str:
    """Read the summary; shorten one that is too long, and keep the original as a leftover."""
    summary = " ".join(str(row.text("summary", "")).splitlines())
    short = summary if len(summary) <= _LONGEST_SUMMARY else summary[: _LONGEST_SUMMARY - 3] + "..."
    if short != row.columns.get("summary") and row.columns.get("summary") is not None:
        row.replace("summary", short)
    return short
