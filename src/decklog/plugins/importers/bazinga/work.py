"""Bazinga's tables of work: sessions, groups, logs, states, tokens, outputs, plans and criteria."""

from typing import TYPE_CHECKING

from decklog.core.errors import NotFound
from decklog.importing.draft import Draft, describes
from decklog.importing.landing import run_id_of, told
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.plugins.importers.bazinga.base import BazingaTables
from decklog.records.values import to_json
from decklog.stores.of_run import next_number
from decklog.stores.runs.run import ENDED, Run, RunMode, RunStatus
from decklog.stores.tasks.criteria import Criterion, CriterionStatus
from decklog.stores.tasks.groups import Group, GroupStatus, GroupTier, MergeStatus, ReviewStatus
from decklog.stores.tasks.plans import PhaseStatus, Plan, PlanPhase, read_phases

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

_JSON = (dict, list, str, int, float, bool)
# An enumeration looks its members up at every mention, and logs have a great many rows.
_INTERACTION, _EVENT = EntryKind.INTERACTION, EntryKind.EVENT
_KINDS = (EntryKind.INTERACTION, EntryKind.REASONING, EntryKind.EVENT)
UNKNOWN_MODEL = "unknown"
UNKNOWN_AGENT = "unknown"


class WorkTables(BazingaTables):
    """One mapping for each table: what it makes of a row."""

    def session(self, row: Row) -> Fate:
        """Make a session a run."""
        session = row.take("session_id")
        run_id = row.stream = run_id_of(str(session))
        if run_id != session:
            row.replace("session_id", run_id)
        created = row.time("created_at")
        started = row.time("start_time", created) or EPOCH
        if created not in (None, started):
            row.left["created_at"] = row.columns["created_at"]
        status = row.one_of("status", RunStatus, RunStatus.ACTIVE)
        ended = self._ended(row, status, started)
        return self.landing.record(
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

    def _ended(self, row: Row, status: "RunStatus | None", started: "datetime") -> "datetime | None":
        ended: datetime | None = row.time("end_time")
        if status not in ENDED:
            if ended is not None:
                row.replace("end_time", None)
            return None
        return ended or started

    def group(self, row: Row) -> Fate:
        """Take a task group over."""
        run_id, group_id = self.in_run(row), row.text("id")
        present = self.landing.intake.seek(Group, (run_id, group_id))
        created: datetime = row.time("created_at", EPOCH)
        return self.landing.record(
            Group,
            clock="updated_at",
            run_id=run_id,
            group_id=group_id,
            number=present.number if present else next_number(self.log.db, Group, run_id),
            created_at=created,
            updated_at=row.time("updated_at", created),
            **_group_words(row),
            **_group_figures(row),
        )

    @describes
    def log_entry(self, row: Row) -> Draft:
        """Make a log row an entry; its kind says whether it is an interaction, a reasoning or an event."""
        self.in_run(row)
        kind = row.one_of("log_type", EntryKind, _INTERACTION) or _INTERACTION
        if kind not in _KINDS:
            row.replace("log_type", _INTERACTION.value)
            kind = _INTERACTION
        entry = {
            "body": row.text("content", ""),
            "kind": kind,
            "subtype": row.text("event_subtype"),
            "agent": row.text("agent_type", UNKNOWN_AGENT),
            "agent_id": row.text("agent_id"),
            "group_id": row.text("group_id", "global" if kind is _EVENT else None),
            "iteration": row.whole("iteration", low=-(2**63)),
            "payload": row.json("event_payload", (dict, list)),
            "phase": row.one_of("reasoning_phase", ReasoningPhase, None),
            "confidence": row.one_of("confidence_level", Confidence, None),
            "refs": row.texts("references_json"),
            "at": row.time("timestamp"),
        }
        if row.take("redacted"):
            row.replace("redacted", 0)
        return self._with_key(row, kind, entry)

    def _with_key(self, row: Row, kind: EntryKind, entry: "dict[str, Any]") -> Draft:
        given = row.text("idempotency_key")
        row.take("id")
        if given is not None and kind is _EVENT:
            # The event keeps its own key, so that sending it again is known here too; its number is kept beside it.
            row.left["id"] = row.columns["id"]
            entry["key"] = given
        elif given is not None:
            row.left["idempotency_key"] = given
        return self.landing.entry(row, entry)

    def state(self, row: Row) -> Fate:
        """Save a state; files before version 18 hold every save, and each becomes a version."""
        run_id = self.in_run(row)
        document = row.document("state_data", _JSON)
        given = {"name": row.text("state_type", "state"), "group_id": row.text("group_id", "global")}
        saved_at = row.time("timestamp")
        if not self.landing.first_time(row, as_it_is=True):
            row.left = {}
            return Fate.ALREADY
        if self._is_older(run_id, given, saved_at):
            return self.landing.keep(row, "a newer version is here", saved_at)
        saved = self.log.states.save(run_id, given["name"], document, group_id=given["group_id"], saved_at=saved_at)
        if saved.already:
            return self.landing.keep(row, f"the same as version {saved.version}", saved_at)
        row.made = f"state {run_id} {given['group_id']} {given['name']} {saved.version}"
        return Fate.NEW

    def _is_older(self, run_id: str, place: "dict[str, str]", saved_at: "datetime | None") -> bool:
        try:
            present = self.log.states.get(run_id, place["name"], group_id=place["group_id"])
        except NotFound:
            return False
        return saved_at is not None and saved_at < present.saved_at

    @describes
    def tokens(self, row: Row) -> Draft:
        """Charge an estimate of tokens; neither model nor price is known."""
        self.in_run(row)
        row.take("id")
        charge = {
            "model": UNKNOWN_MODEL,
            "input_tokens": row.whole("tokens_estimated", 0),
            "agent": row.text("agent_type"),
            "agent_id": row.text("agent_id"),
            "call_site": "estimate",
            "occurred_at": row.time("timestamp"),
        }
        return self.landing.charge(row, charge)

    def output(self, row: Row) -> Fate:
        """Save a skill's output; of those with the same iteration, the later ones get the next."""
        run_id = self.in_run(row)
        row.take("id")
        output = self.log.outputs.save(
            run_id,
            row.text("skill_name", ""),
            row.document("output_data", _JSON),
            agent=row.text("agent_type"),
            group_id=row.text("group_id"),
            saved_at=row.time("timestamp"),
            key=self.landing.key(row),
        )
        if row.take("iteration", 1) != output.iteration:
            row.replace("iteration", output.iteration)
        return told(output)

    def plan(self, row: Row) -> Fate:
        """Take a development plan over, with its phases."""
        run_id = self.in_run(row)
        row.take("id")
        created: datetime = row.time("created_at", EPOCH)
        updated: datetime = row.time("updated_at", created)
        phases = read_phases([_phase(item) for item in row.json("phases", (list,), [])])
        fate = self.landing.record(
            Plan,
            clock="updated_at",
            run_id=run_id,
            original_prompt=row.text("original_prompt", ""),
            plan_text=row.text("plan_text", ""),
            total_phases=row.whole("total_phases", len(phases)),
            current_phase=row.whole("current_phase"),
            metadata=row.json("metadata", (dict,)),
            created_at=created,
            updated_at=updated,
        )
        marked = [
            self.landing.record(PlanPhase, clock="updated_at", run_id=run_id, updated_at=updated, **phase) for phase in phases
        ]
        if fate is Fate.ALREADY and marked.count(Fate.ALREADY) < len(marked):
            fate = Fate.CHANGED
        row.left["id"] = row.columns["id"]
        row.made = f"plan {run_id}"
        return fate

    def criterion(self, row: Row) -> Fate:
        """Take a success criterion over."""
        run_id, text = self.in_run(row), row.text("criterion", "")
        created: datetime = row.time("created_at", EPOCH)
        row.take("id")
        fate = self.landing.record(
            Criterion,
            clock="updated_at",
            run_id=run_id,
            number=self._number_of(run_id, text),
            criterion=text,
            status=row.one_of("status", CriterionStatus, CriterionStatus.PENDING),
            actual=row.text("actual"),
            evidence=row.text("evidence"),
            required=row.flag("required_for_completion", True),
            created_at=created,
            updated_at=row.time("updated_at", created),
        )
        row.left["id"] = row.columns["id"]
        row.made = f"criterion {run_id} {text}"
        return fate

    def _number_of(self, run_id: str, criterion: str) -> int:
        try:
            present: Criterion = self.log.criteria.get(run_id, criterion)
        except NotFound:
            return next_number(self.log.db, Criterion, run_id)
        return present.number if present.criterion == criterion else next_number(self.log.db, Criterion, run_id)


def _phase(item: "Any") -> "Any":
    """Read a phase; a status that is none of ours goes with what has no field of its own."""
    if not isinstance(item, dict) or item.get("status") in (None, *PhaseStatus):
        return item
    given = item.get("extra")
    extra = given if isinstance(given, dict) else {}
    return {**{name: value for name, value in item.items() if name != "status"}, "extra": {**extra, "status": item["status"]}}


def _metadata(row: Row) -> "dict[str, Any]":
    """Take a session's metadata; a run without any has none to show, so that an empty object is left over as it was."""
    found: dict[str, Any] = row.json("metadata", (dict,), {})
    if found == {} and "metadata" not in row.left and row.columns.get("metadata") is not None:
        row.replace("metadata", None)
    return found


def _packages(row: Row) -> "list[str] | None":
    """Take the numbers of packages, which an export writes as numbers again; what else the list holds is left over."""
    found = row.texts("context_references")
    if found:
        numbers = [int(text) if text.isdecimal() else text for text in found]
        row.instead.pop("context_references", None)
        if row.json("context_references", (list,)) != numbers:
            row.replace("context_references", to_json(numbers))
    return found


def _group_words(row: Row) -> "dict[str, Any]":
    return {
        "name": row.text("name", ""),
        "status": row.one_of("status", GroupStatus, GroupStatus.PENDING),
        "assigned_to": row.text("assigned_to"),
        "last_review_status": row.one_of("last_review_status", ReviewStatus, None),
        "feature_branch": row.text("feature_branch"),
        "merge_status": row.one_of("merge_status", MergeStatus, None),
        "initial_tier": row.one_of("initial_tier", GroupTier, GroupTier.DEVELOPER),
        "context_references": _packages(row),
        "specializations": row.texts("specializations"),
        "component_path": row.text("component_path"),
        "speckit_task_ids": row.texts("speckit_task_ids"),
    }


def _group_figures(row: Row) -> "dict[str, Any]":
    return {
        "revision_count": row.whole("revision_count", 0),
        "complexity": row.whole("complexity", low=1, high=10),
        "item_count": row.whole("item_count", 1, low=1),
        "security_sensitive": row.flag("security_sensitive"),
        "qa_attempts": row.whole("qa_attempts", 0),
        "tl_review_attempts": row.whole("tl_review_attempts", 0),
        "review_iteration": row.whole("review_iteration", 1, low=1),
        "no_progress_count": row.whole("no_progress_count", 0),
        "blocking_issues_count": row.whole("blocking_issues_count", 0),
    }
