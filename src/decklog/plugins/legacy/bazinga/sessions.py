"""Sessions, which are runs: their states, task groups, success criteria and plans, and the dashboard of one."""

from itertools import islice
from typing import Any

from decklog.core.errors import DecklogError, NotFound
from decklog.importing.exports import columns_of
from decklog.journal.rows import find_stream_number
from decklog.plugins.importers.bazinga.rows import criterion_row, group_row, session_row, stamp
from decklog.plugins.legacy.bazinga.base import (
    STATE_TYPES,
    VALID_SESSION_STATUSES,
    BazingaBase,
    CallRefused,
    answers,
    check,
    error_text,
    filled,
    from_json_text,
    given,
    items_of,
    json_text,
    one_of,
    reports,
    validate_complexity,
    validate_investigation_inputs,
    validate_scope_global_or_group,
    validate_scope_group_only,
    validate_task_group_id,
)
from decklog.plugins.legacy.bazinga.logs import KINDS, BazingaLogs, log_row, newest
from decklog.records.record import find_all
from decklog.stores.artifacts.states import InvestigationStatus
from decklog.stores.intake import Intake
from decklog.stores.runs.run import ENDED, RunMode, RunStatus
from decklog.stores.tasks.criteria import Criterion, CriterionStatus
from decklog.stores.tasks.groups import Group, GroupTier
from decklog.stores.tasks.plans import PhaseStatus, PlanPhase

MODES = ("simple", "parallel")
_SHORT = ("session_id", "mode", "status", "start_time", "created_at")


class BazingaSessions(BazingaLogs):
    """Sessions with their states, groups, criteria and plans."""

    @answers
    def create_session(
        self,
        session_id: str,
        mode: str,
        requirements: str,
        initial_branch: str | None = None,
        metadata: str | dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Create a session; return an existing one unchanged."""
        filled("session_id", session_id)
        filled("requirements", requirements)
        one_of("mode", mode, MODES)
        facts, branch = _metadata(metadata), initial_branch or "main"
        run = self.log.runs.start(requirements, run_id=session_id, mode=RunMode(mode), branch=branch, metadata=facts)
        row = session_row(run, json_text)
        if run.already:
            return {name: row[name] for name in _SHORT}
        return {"success": True, **{name: row[name] for name in (*_SHORT, "initial_branch", "metadata")}}

    @answers
    def update_session_status(self, session_id: str, status: str) -> None:
        """Set a session's status. Every transition is allowed; the end time follows the status."""
        if status not in VALID_SESSION_STATUSES:
            raise CallRefused(f"Invalid status: {status!r}", valid_statuses=list(VALID_SESSION_STATUSES))
        if status in ENDED:
            # Callers of bazinga check their criteria themselves; the journal records that this end was not checked here.
            self.log.runs.finish(session_id, status=RunStatus(status), force=True, reason="set through bazinga-db")
        else:
            self.log.runs.update(session_id, status=RunStatus(status))

    @answers
    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return a session's row; None when there is none."""
        try:
            return session_row(self.log.runs.get(session_id), json_text)
        except NotFound:
            return None

    @answers
    def list_sessions(self, limit: int = 10) -> list[dict[str, Any]]:
        """List sessions, newest first; a negative limit means all of them."""
        found = islice(find_all(self.log.runs.find), None if limit < 0 else limit)
        return [session_row(run, json_text) for run in found]

    # States, with all versions

    @answers
    def save_state(self, session_id: str, state_type: str, state_data: Any, group_id: str = "global") -> dict[str, Any]:
        """Save the present state of one type and group."""
        one_of("state_type", state_type, STATE_TYPES)
        validate = validate_scope_group_only if state_type == "investigation" else validate_scope_global_or_group
        check(validate(group_id))
        self.log.states.save(session_id, state_type, state_data, group_id=group_id)
        return {"success": True, "session_id": session_id, "state_type": state_type, "group_id": group_id}

    @answers
    def get_latest_state(self, session_id: str, state_type: str, group_id: str = "global") -> Any:
        """Return the current state; None when there is none."""
        check(validate_scope_global_or_group(group_id))
        if state_type not in STATE_TYPES or (state_type == "investigation" and group_id.lower() == "global"):
            return None
        try:
            return self.log.states.get(session_id, state_type, group_id=group_id).document
        except NotFound:
            return None

    def save_investigation_iteration(
        self, session_id: str, group_id: str, iteration: int, status: str, state_data: str, event_payload: str
    ) -> dict[str, Any]:
        """Save one iteration of an investigation: its state and its event, both or neither.

        A repeated iteration keeps its first event, and never reverts the state.
        """
        check(validate_investigation_inputs(group_id, iteration, status))
        state, event = _document("state_data", state_data), _document("event_payload", event_payload)
        if not isinstance(event, dict):
            raise CallRefused("event_payload must be a JSON object")
        try:
            saved = self.log.states.record_investigation(
                session_id, group_id, iteration, InvestigationStatus(status), state, event
            )
        except DecklogError as problem:
            return {"success": False, "error": error_text(problem), "atomic": False}
        return {
            "success": True,
            "atomic": True,
            **{name: saved[name] for name in ("state_saved", "event_saved")},
            "event_id": self.number(session_id, int(str(saved["event_id"]).rpartition(":")[2])),
            "iteration": iteration,
            "idempotent": saved["already"],
            "redacted": saved["redacted"],
        }

    # Groups

    @reports
    def create_task_group(
        self,
        group_id: str,
        session_id: str,
        name: str,
        status: str | None = "pending",
        assigned_to: str | None = None,
        specializations: list[str] | None = None,
        item_count: int | None = None,
        component_path: str | None = None,
        initial_tier: str | None = None,
        complexity: int | None = None,
        security_sensitive: bool | None = None,
    ) -> dict[str, Any]:
        """Create a group, or change the given fields of an existing one.

        A status of pending is the default of a new group; it does not reset an existing one.
        """
        fields = _fields(locals())
        problem = validate_task_group_id(group_id)
        if problem is not None:
            return {"success": False, "error": problem}
        if fields.get("status") == "pending":
            del fields["status"]
        return {"success": True, "task_group": group_row(self.log.groups.add(session_id, group_id, **fields), json_text)}

    @reports
    def update_task_group(
        self,
        group_id: str,
        session_id: str,
        status: str | None = None,
        assigned_to: str | None = None,
        revision_count: int | None = None,
        last_review_status: str | None = None,
        auto_create: bool = True,
        name: str | None = None,
        specializations: list[str] | None = None,
        item_count: int | None = None,
        security_sensitive: int | bool | None = None,
        qa_attempts: int | None = None,
        tl_review_attempts: int | None = None,
        component_path: str | None = None,
        initial_tier: str | None = None,
        complexity: int | None = None,
        review_iteration: int | None = None,
        no_progress_count: int | None = None,
        blocking_issues_count: int | None = None,
        speckit_task_ids: list[str] | None = None,
    ) -> dict[str, Any]:
        """Change the given fields of a group; create a missing one from them, unless auto_create is off."""
        arguments = locals()
        problem = validate_task_group_id(group_id)
        if problem is not None:
            return {"success": False, "error": problem}
        groups, fields = self.log.groups, _fields(arguments)
        try:
            group = groups.update(session_id, group_id, **fields) if fields else groups.get(session_id, group_id)
        except NotFound as missing:
            if not fields or "id" not in missing.details:
                raise
            if not auto_create:
                return {"success": False, "error": f"Task group not found: {group_id}"}
            group = groups.add(session_id, group_id, **fields)
        return {"success": True, "task_group": group_row(group, json_text)}

    @answers
    def get_task_groups(self, session_id: str, status: str | None = None) -> list[dict[str, Any]]:
        """List a session's groups in the order of creation."""
        return [group_row(group, json_text) for group in groups_of(self, session_id, given(status))]

    # Criteria

    @answers
    def save_success_criteria(self, session_id: str, criteria: list[dict[str, Any]]) -> None:
        """Replace a session's criteria by the list, all or none: others are removed.

        Omitted fields of an existing criterion are cleared; the journal keeps the old values.
        """
        wanted = [_read_criterion(item) for item in items_of("criteria", criteria, "objects")]
        with self.log.transaction():
            saved = self._record(session_id, wanted)
            for known, item in zip(saved, wanted, strict=True):
                if known.already:
                    self._renew(known, item)
            sql = "delete from criteria where run_id = :run_id and number = :number returning *"
            for number in sorted({one.number for one in self._all(session_id)} - {one.number for one in saved}):
                Intake(self.log.parts).remove(Criterion, sql, note="not in the new list", run_id=session_id, number=number)

    def _record(self, session_id: str, wanted: list[dict[str, Any]]) -> list[Criterion]:
        present = {criterion.criterion: criterion for criterion in self._all(session_id)}
        # Only an update changes whether it is required, so keep the current value here.
        kept = [
            {**item, "required_for_completion": present[item["criterion"]].required} if item["criterion"] in present else item
            for item in wanted
        ]
        return self.log.criteria.record(session_id, kept)

    def _renew(self, known: Criterion, item: dict[str, Any]) -> None:
        texts = {name: item.get(name) for name in ("actual", "evidence")}
        self.log.criteria.update(
            known.run_id,
            known.criterion,
            status=CriterionStatus(item.get("status") or CriterionStatus.PENDING),
            required=item.get("required_for_completion", True),
            clear=[name for name, text in texts.items() if text is None],
            **texts,
        )

    def _all(self, session_id: str) -> list[Criterion]:
        return list(find_all(self.log.criteria.find, session_id))

    @answers
    def get_success_criteria(self, session_id: str) -> list[dict[str, Any]]:
        """List a session's criteria in the order of creation."""
        return [_criterion_row(self, criterion) for criterion in self._all(session_id)]

    @answers
    def update_success_criterion(
        self,
        session_id: str,
        criterion: str,
        status: str | None = None,
        actual: str | None = None,
        evidence: str | None = None,
    ) -> None:
        """Change the given fields of a criterion, named by its exact text."""
        filled("criterion", criterion)
        if status is not None:
            one_of("status", status, CriterionStatus)
        if status is None and actual is None and evidence is None:
            raise CallRefused("nothing to change was given: status, actual or evidence")
        known_status = None if status is None else CriterionStatus(status)
        self.log.criteria.update(session_id, criterion, status=known_status, actual=actual, evidence=evidence)

    # Plans

    @answers
    def save_development_plan(
        self,
        session_id: str,
        original_prompt: str,
        plan_text: str,
        phases: list[dict[str, Any]],
        current_phase: int | None,
        total_phases: int,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Save a session's plan, or replace it; its creation time stays."""
        given: dict[str, Any] = {"current_phase": current_phase, "metadata": metadata}
        with self.log.transaction():
            self.log.plans.record(session_id, original_prompt, plan_text, _reset(phases), total_phases=total_phases, **given)
            self.log.plans.update(session_id, total_phases=total_phases, clear=[name for name in given if given[name] is None])

    @answers
    def get_development_plan(self, session_id: str) -> dict[str, Any] | None:
        """Return a session's plan with its phases; None when there is none."""
        try:
            return self.log.db.read(lambda: self._plan(session_id))
        except NotFound:
            return None

    def _plan(self, session_id: str) -> dict[str, Any]:
        plan, phases = self.log.plans.get(session_id), self.log.plans.phases(session_id)
        return {
            # A session has one plan, so the session's number is the plan's id without a file for readers.
            "id": self.id_where("development_plans", find_stream_number(self.log.db, session_id), session_id=session_id),
            **columns_of(plan, "session_id=run_id original_prompt plan_text"),
            "phases": [phase_row(phase) for phase in phases],
            **columns_of(plan, "current_phase total_phases created_at updated_at metadata", stamp),
        }

    @answers
    def update_plan_progress(
        self, session_id: str, phase_id: int | str, status: str, progress_percent: int | None = None
    ) -> None:
        """Set the status of a phase, named by number or name; one in progress becomes the plan's current phase.

        Concurrent calls for different phases do not overwrite each other.
        """
        one_of("status", status, PhaseStatus)
        with self.log.transaction():
            phase = self.log.plans.mark(session_id, str(phase_id), PhaseStatus(status), progress_percent=progress_percent)
            if phase.status is PhaseStatus.IN_PROGRESS:
                self.log.plans.update(session_id, current_phase=phase.number)

    # Dashboard

    @answers
    def get_dashboard_snapshot(self, session_id: str) -> dict[str, Any]:
        """Return a session with its states, groups, tokens, criteria and newest entries, as one consistent snapshot.

        `recent_logs` are the newest entries of all three kinds.
        """
        return self.log.db.read(lambda: self._snapshot(session_id))

    def _snapshot(self, session_id: str) -> dict[str, Any]:
        recent = [log_row(self, entry) for entry in newest(self, session_id, KINDS, _RECENT)]
        return {
            "session": self.get_session(session_id),
            "orchestrator_state": self.get_latest_state(session_id, "orchestrator"),
            "pm_state": self.get_latest_state(session_id, "pm"),
            "task_groups": self.get_task_groups(session_id),
            "token_summary": self.get_token_summary(session_id),
            "recent_logs": recent,
            "criteria": self.get_success_criteria(session_id),
        }


def _metadata(given: str | dict[str, Any] | None) -> dict[str, Any] | None:
    value = _document("metadata", given)
    if value is not None and not isinstance(value, dict):
        raise CallRefused("metadata must be a JSON object")
    return value


def _document(name: str, given: Any) -> Any:
    return from_json_text(name, given) if isinstance(given, str) else given


_BLANK_MEANS_NONE = ("status", "assigned_to", "name", "last_review_status", "initial_tier", "component_path")
_MAY_FALL_BELOW_ZERO = ("no_progress_count", "blocking_issues_count")


_NOT_FIELDS = ("self", "group_id", "session_id", "auto_create")


def groups_of(db: BazingaBase, session_id: str, status: str | None = None) -> list[Group]:
    """Load all groups of a session, optionally with one status."""
    wanted: Any = status
    return list(find_all(db.log.groups.find, session_id, status=wanted))


def _fields(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the given arguments as fields, checked as bazinga checks them."""
    fields = {name: value for name, value in arguments.items() if value is not None and name not in _NOT_FIELDS}
    for name in _BLANK_MEANS_NONE:
        if name in fields and not str(fields[name]).strip():
            del fields[name]
    check(validate_complexity(fields.get("complexity")))
    if "initial_tier" in fields:
        one_of("initial_tier", fields["initial_tier"], GroupTier)
    if fields.get("item_count", 1) < 1:
        raise CallRefused(f"item_count must be 1 or more, got {fields['item_count']}")
    if "security_sensitive" in fields:
        fields["security_sensitive"] = bool(fields["security_sensitive"])
    for name in _MAY_FALL_BELOW_ZERO:
        if name in fields:
            fields[name] = max(fields[name], 0)
    return fields


_KEYS = ("criterion", "status", "actual", "evidence", "required_for_completion")


def _read_criterion(item: object) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise CallRefused(f"each criterion is an object with the key criterion, got {item!r}")
    filled("criterion", item.get("criterion"))
    if item.get("status") is not None:
        one_of("status", item["status"], CriterionStatus)
    fields = {name: item[name] for name in _KEYS if item.get(name) is not None}
    if "required_for_completion" in fields:
        fields["required_for_completion"] = bool(fields["required_for_completion"])
    return fields


def _criterion_row(db: BazingaBase, criterion: Criterion) -> dict[str, Any]:
    """Build a row of bazinga's table from a criterion."""
    row = criterion_row(criterion)
    known_by = {name: row[name] for name in ("session_id", "criterion")}
    return {"id": db.id_where("success_criteria", criterion.number, **known_by), **row}


def _reset(phases: Any) -> Any:
    """Reset phases without a status to pending."""
    if not isinstance(phases, list):
        return phases
    fresh = {"status": "pending", "progress_percent": 0}
    return [{**fresh, **phase} if isinstance(phase, dict) and phase.get("status") is None else phase for phase in phases]


def phase_row(phase: PlanPhase) -> dict[str, Any]:
    """Build an item of the plan's list from a phase, with its current status."""
    row: dict[str, Any] = {"phase": phase.number, "name": phase.name, **phase.extra, "status": str(phase.status)}
    row["progress_percent"] = phase.progress_percent
    if phase.started_at is not None:
        row["started_at"] = stamp(phase.started_at)
    if phase.completed_at is not None:
        row["completed_at"] = stamp(phase.completed_at)
    return row


_RECENT = 10
