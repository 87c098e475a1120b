"""CI history: runs, their results, and the expected duration of the next one."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.checks import check_filled, check_integer
from decklog.stores.results.workflow import ExpectedDuration


class CiConclusion(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


CiConclusionLike = CiConclusion | Literal["success", "failure", "cancelled", "timed_out"]


@dataclass(frozen=True, kw_only=True)
class CiRun(Record):
    """One run of a workflow on the CI server."""

    table = "ci_runs"
    identity = ("workflow_name", "branch", "ci_run_id")
    home = "@desk"

    workflow_name: str
    branch: str
    ci_run_id: int
    started_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    duration_seconds: int | None = None
    conclusion: CiConclusion | None = None


class Ci(Store):
    """Stores the history of CI runs; a run may be recorded at its start and completed at its end."""

    records = (CiRun,)

    @writes
    def record(
        self,
        workflow_name: str,
        branch: str,
        ci_run_id: int,
        *,
        started_at: datetime | None = None,
        completed_at: datetime | None = None,
        duration_seconds: int | None = None,
        conclusion: CiConclusionLike | None = None,
    ) -> CiRun:
        """Record a CI run, or complete a known one; known values may be repeated, but not changed.

        A run without `started_at` starts now; a duration that is not given is the time from start to end.
        """
        key = _key(workflow_name, branch, ci_run_id)
        given = {
            "started_at": started_at,
            "completed_at": completed_at,
            "duration_seconds": None
            if duration_seconds is None
            else check_integer("duration_seconds", duration_seconds, high=2**31 - 1),
            "conclusion": conclusion and parse_enum(CiConclusion, conclusion, "conclusion"),
        }
        run = self._find_or_add(lambda: self._seek_by(CiRun, for_update=True, **key), lambda: self._start(key, given))
        return self._complete(run, given) if run.already else run

    def _start(self, key: dict[str, Any], given: dict[str, Any]) -> CiRun:
        now = self._now()
        fields = {**given, "started_at": given["started_at"] or now}
        fields["duration_seconds"] = _duration(fields)
        return self._add(CiRun, note=_note(fields), updated_at=now, **key, **fields)

    def _complete(self, known: CiRun, given: dict[str, Any]) -> CiRun:
        """Set fields that are still unknown."""
        changes = {}
        for name, value in given.items():
            present = getattr(known, name)
            if value is not None and present is None:
                changes[name] = value
            elif value is not None and value != present:
                raise Conflict(
                    f"run {known.ci_run_id} of {known.workflow_name} on {known.branch} has {name} {present}, not {value}",
                    field=name,
                    known=str(present),
                )
        fields = {**known.values(), **changes}
        if known.duration_seconds is None and (duration := _duration(fields)) is not None:
            changes["duration_seconds"] = duration
        if not changes:
            return known.mark_already()
        key: tuple[Any, ...] = (known.workflow_name, known.branch, known.ci_run_id)
        return self._update(CiRun, key, changes, note=_note(fields))

    @reads
    def get(self, workflow_name: str, branch: str, ci_run_id: int) -> CiRun:
        """Get one CI run by the three parts of its key."""
        found = self._seek(CiRun, (workflow_name, branch, ci_run_id))  # type: ignore[arg-type]
        if found is None:
            raise NotFound(
                f"there is no run {ci_run_id} of {workflow_name} on {branch}", hint="See what there is: decklog ci find"
            )
        return found

    @reads
    def find(
        self,
        *,
        workflow_name: str | None = None,
        branch: str | None = None,
        conclusion: CiConclusionLike | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[CiRun]:
        """List CI runs, the newest start first."""
        where = Where(CiRun, workflow_name=workflow_name, branch=branch, conclusion=conclusion)
        where.between("started_at", since, until)
        order = ("started_at", "ci_run_id", "workflow_name", "branch")
        return self._page(CiRun, where, order=order, limit=limit, after=after, descending=True)

    @reads
    def expected(self, workflow_name: str, branch: str, *, last: int = 20) -> ExpectedDuration:
        """Estimate how long a run will take: median and 90th percentile of the last successful ones, in seconds.

        For a branch without any, other branches are used (see `source`); without any run, both are null.
        """
        check_integer("last", last, low=1, high=1000)
        durations, source = self._durations(workflow_name, "branch = :branch", branch, last), "branch"
        if not durations:
            durations, source = self._durations(workflow_name, "branch <> :branch", branch, last), "other-branches"
        return {
            "workflow_name": workflow_name,
            "branch": branch,
            "median_s": float(median(durations)) if durations else None,
            # The smallest duration that nine in ten runs do not exceed.
            "p90_s": float(durations[-(-len(durations) * 9 // 10) - 1]) if durations else None,
            "runs": len(durations),
            "source": source if durations else "unknown",
        }

    def _durations(self, workflow_name: str, on: str, branch: str, last: int) -> list[int]:
        where = Where(CiRun, workflow_name=workflow_name)
        where.add(f"{on} and conclusion = 'success' and duration_seconds is not null", branch=branch)
        runs = self._list(CiRun, where, order="started_at desc, ci_run_id desc, branch", limit=last)
        return sorted(run.duration_seconds for run in runs if run.duration_seconds is not None)


def _key(workflow_name: str, branch: str, ci_run_id: int) -> dict[str, Any]:
    check_filled("workflow_name", workflow_name)
    check_filled("branch", branch)
    check_integer("ci_run_id", ci_run_id)
    return {"workflow_name": workflow_name, "branch": branch, "ci_run_id": ci_run_id}


def _duration(fields: dict[str, Any]) -> int | None:
    """Return the given duration, or the time from start to end."""
    if fields["duration_seconds"] is not None or fields["completed_at"] is None:
        known: int | None = fields["duration_seconds"]
        return known
    seconds: float = (fields["completed_at"] - fields["started_at"]).total_seconds()
    if seconds < 0:
        raise Invalid("a run can't end before it starts; check both times", field="completed_at")
    return round(seconds)


def _note(fields: dict[str, Any]) -> str:
    return str(fields["conclusion"] or ("completed" if fields["completed_at"] else "started"))
