"""Schedules: recurring tasks of a run, without a daemon.

Each claim of a run, and each overview, first adds the due tasks in the same transaction. Every occurrence has a key, so that
its tasks are added once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Denied, Invalid, NotFound
from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import ForkRule, Refer, Reset
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled, check_integer, check_object, normalize_name
from decklog.stores.fields import check_fields
from decklog.stores.of_run import check_run, given_fields, lock_run
from decklog.stores.tasks.claimable import RUN_IS_ACTIVE
from decklog.stores.tasks.recurrence import load_zone, parse_recurrence
from decklog.stores.tasks.task import EDITABLE, Task
from decklog.stores.tasks.templates import TaskPlanner, Templates, fill_placeholders


class CatchUp(StrEnum):
    """What happens to missed occurrences."""

    NONE = "none"
    ONE = "one"
    ALL = "all"


CatchUpLike = CatchUp | Literal["none", "one", "all"]


_TASK_FIELDS = {*EDITABLE, "depends_on", "assigned_to", "parent_id"}
# Placeholders that only a schedule fills in.
_TIME_PLACEHOLDERS = ("at", "date", "time")


@dataclass(frozen=True, kw_only=True)
class Schedule(Record):
    """A recurring task, or recurring tasks of a template. Without `next_at` it is paused."""

    table = "schedules"
    fork = ForkRule(
        "The copy is paused, so that two runs do not repeat the same tasks.",
        fields={
            "next_at": Reset(),
            "reason": Reset("copied by a fork; resume it to go on here"),
            "task.depends_on": Refer("tasks"),
            "task.parent_id": Refer("tasks"),
        },
    )
    undo_columns = (
        *("rule", "zone", "catch_up", "catch_up_limit", "late_seconds", "task", "template", "template_values"),
        *("next_at", "reason"),
    )

    id: str
    run_id: str
    name: str
    rule: str
    zone: str
    created_at: datetime
    updated_at: datetime
    catch_up: CatchUp = CatchUp.ONE
    catch_up_limit: int = 10
    late_seconds: int = 3600
    task: dict[str, object] | None = None
    template: str | None = None
    template_values: dict[str, object] = field(default_factory=dict)
    next_at: datetime | None = None
    last_at: datetime | None = None
    occurrences: int = 0
    reason: str | None = None

    @property
    def is_paused(self) -> bool:
        return self.next_at is None


class Schedules(Store):
    """Stores recurring tasks. They are added when they are due and somebody claims a task or reads an overview."""

    records = (Schedule,)

    def __init__(self, parts: StoreParts, *, tasks: Callable[[], TaskPlanner], templates: Callable[[], Templates]) -> None:
        super().__init__(parts)
        self._tasks = tasks
        self._templates = templates

    @writes
    def add(
        self,
        run_id: str,
        name: str,
        when: str,
        *,
        zone: str = "UTC",
        title: str | None = None,
        task: dict[str, object] | None = None,
        template: str | None = None,
        values: dict[str, object] | None = None,
        catch_up: CatchUpLike = CatchUp.ONE,
        catch_up_limit: int = 10,
        late_seconds: int = 3600,
    ) -> Schedule:
        """Create a task, or those of a template, repeatedly: `every day 06:00`, `every monday 09:00`, `30 6 * * 1-5`.

        The task is given by its title, or as the arguments of `tasks add`; `{{date}}`, `{{time}}` and `{{at}}` in its texts are
        those of the occurrence. `catch_up` decides about missed occurrences: the newest (`one`), the newest `catch_up_limit`
        (`all`), or only those at most `late_seconds` late (`none`). A known name returns its schedule, or is refused if it
        differs.
        """
        fields = _parse_subject(title, task, template, values) | {
            "rule": " ".join(check_filled("when", when).split()),
            "zone": zone,
            "catch_up": parse_enum(CatchUp, catch_up, "catch_up"),
            "catch_up_limit": check_integer("catch_up_limit", catch_up_limit, low=1, high=100),
            "late_seconds": check_integer("late_seconds", late_seconds, high=366 * 86_400),
        }
        name = normalize_name(name, "name")
        lock_run(self._db, run_id)
        self._check_template(fields)
        now = self._now()
        next_at = _next_time(fields["rule"], fields["zone"], now)
        begin: dict[str, Any] = {"id": self._ids.new("sched"), "next_at": next_at, "created_at": now, "updated_at": now}
        found = self._find_or_add(
            lambda: self._seek_by(Schedule, run_id=run_id, name=name),
            lambda: self._add(Schedule, note=f"{name}: {fields['rule']}", run_id=run_id, name=name, **begin, **fields),
        )
        if found.already and (differing := self._differing_fields(found, fields)):
            raise Conflict(
                f"run {run_id} already has a schedule {found.name}, with another {' and another '.join(differing)}",
                hint=f"Change it: decklog schedules edit {found.id}",
                schedule_id=found.id,
                fields=list(differing),
            )
        return found

    def _check_template(self, fields: Mapping[str, Any]) -> None:
        """Raise an error for a missing template, or for placeholders without a value."""
        if fields.get("template") is None:
            return
        places = set(self._templates().get(fields["template"]).places)
        given = fields["template_values"].keys()
        if wrong := sorted((places - given - set(_TIME_PLACEHOLDERS)) | (given - places)):
            raise Invalid(f"template {fields['template']} does not match these values: {', '.join(wrong)}", field="values")

    @reads
    def get(self, schedule_id: str) -> Schedule:
        """Get a schedule."""
        return self._fetch(Schedule, schedule_id)

    @reads
    def find(self, run_id: str, *, limit: int = 20, after: str | None = None) -> Page[Schedule]:
        """List a run's schedules by their names."""
        check_run(self._db, run_id)
        where = Where(Schedule, run_id=run_id)
        return self._page(Schedule, where, order=("name",), limit=limit, after=after)

    @reads
    def preview(self, when: str, *, zone: str = "UTC", count: int = 5) -> list[str]:
        """Show the next times of a rule, in its time zone."""
        found, at = [], self._now()
        for _ in range(check_integer("count", count, low=1, high=100)):
            following = parse_recurrence(check_filled("when", when), zone).after(at)
            if following is None:
                break
            at = following
            found.append(at.astimezone(load_zone(zone)).isoformat())
        return found

    @writes
    def edit(
        self,
        schedule_id: str,
        *,
        reason: str,
        when: str | None = None,
        zone: str | None = None,
        title: str | None = None,
        task: dict[str, object] | None = None,
        template: str | None = None,
        values: dict[str, object] | None = None,
        catch_up: CatchUpLike | None = None,
        catch_up_limit: int | None = None,
        late_seconds: int | None = None,
    ) -> Schedule:
        """Change the given fields of a schedule and keep the rest; another rule or zone sets its next time."""
        schedule = self._fetch_for_update(Schedule, schedule_id)
        changes = given_fields(locals(), "schedule_id", "reason", "schedule", "when", "title", "task", "template", "values")
        if any(part is not None for part in (title, task, template, values)):
            changes |= _parse_subject(title, task, template, values)
            self._check_template(changes)
        if when is not None:
            changes["rule"] = " ".join(check_filled("when", when).split())
        differing = self._differing_fields(schedule, changes)
        if not differing:
            return schedule.mark_already()
        if not schedule.is_paused and differing.keys() & {"rule", "zone"}:
            rule, zone = differing.get("rule", schedule.rule), differing.get("zone", schedule.zone)
            differing["next_at"] = _next_time(rule, zone, self._now())
        return self._set(schedule_id, differing, f"edited {', '.join(changes)}: {check_filled('reason', reason)}")

    @writes
    def pause(self, schedule_id: str, *, reason: str) -> Schedule:
        """Pause a schedule; occurrences in the meantime are skipped."""
        schedule = self._fetch_for_update(Schedule, schedule_id)
        if schedule.is_paused:
            return schedule.mark_already()
        return self._set(schedule_id, {"next_at": None, "reason": check_filled("reason", reason)}, f"paused: {reason}")

    @writes
    def resume(self, schedule_id: str) -> Schedule:
        """Resume a paused schedule from now on."""
        schedule = self._fetch_for_update(Schedule, schedule_id)
        if not schedule.is_paused:
            return schedule.mark_already()
        next_at = _next_time(schedule.rule, schedule.zone, self._now())
        return self._set(schedule_id, {"next_at": next_at, "reason": None}, "resumed")

    @writes
    def remove(self, schedule_id: str, *, reason: str) -> Schedule:
        """Remove a schedule; its tasks stay."""
        self._fetch_for_update(Schedule, schedule_id)
        return self._remove_one(Schedule, schedule_id, note=f"removed: {check_filled('reason', reason)}")

    def is_any_due(self) -> bool:
        """Return whether any active run has a due schedule."""
        bound, _ = self._db.values.bind({"now": self._now()})
        sql = f"""
            select 1 from schedules join runs on runs.id = schedules.run_id and {RUN_IS_ACTIVE} where next_at <= :now limit 1
            """
        return self._db.read(lambda: self._db.one(sql, bound)) is not None

    @writes
    def run_due(self, run_id: str | None = None) -> list[Task]:
        """Add the tasks of due schedules, of one run or of all active ones; a claim does it too."""
        if run_id is not None:
            check_run(self._db, run_id)
            return self.add_due_tasks(run_id)
        _, rows = self._db.rows(
            f"""
            select distinct s.run_id from runs join schedules s on s.run_id = runs.id and s.next_at <= :now
             where {RUN_IS_ACTIVE} order by 1
            """,
            self._db.values.bind({"now": self._now()})[0],
        )
        return [task for (due,) in rows for task in self.add_due_tasks(due)]

    def add_due_tasks(self, run_id: str) -> list[Task]:
        """Add the tasks of a run's due schedules, in the caller's transaction."""
        now = self._now()
        due = self._select(
            Schedule,
            f"""
            select schedules.* from schedules
             where run_id = (select id from runs where id = :run_id and {RUN_IS_ACTIVE}) and next_at <= :now
             order by next_at, id for update
            """,
            run_id=run_id,
            now=now,
        )
        return [task for schedule in due for task in self._add_occurrences(schedule, now)]

    def _add_occurrences(self, schedule: Schedule, now: datetime) -> list[Task]:
        """Add the due tasks of one schedule, and set its next time.

        A schedule whose tasks can't be added is paused with the reason, so that it does not block other work.
        """
        moments = _due_times(schedule, now)
        after: dict[str, Any] = {"next_at": _next_time(schedule.rule, schedule.zone, now)}
        try:
            made = self._db.write(lambda: [task for at in moments for task in self._add_occurrence(schedule, at)])
        except (Invalid, NotFound, Conflict, Denied) as problem:
            self._set(schedule.id, {"next_at": None, "reason": str(problem)}, f"paused: {problem}")
            return []
        if moments:
            after |= {"last_at": moments[-1], "occurrences": schedule.occurrences + len(moments)}
        times = ", ".join(map(to_text, moments))
        self._set(schedule.id, after, f"came at {times}" if moments else "came too late, and was left out")
        return made

    def _add_occurrence(self, schedule: Schedule, at: datetime) -> list[Task]:
        """Add the tasks of one occurrence, unless they exist."""
        key = f"{schedule.id} {to_text(at)}"
        shown = at.astimezone(load_zone(schedule.zone))
        places = {"at": shown.isoformat(timespec="minutes"), "date": f"{shown:%Y-%m-%d}", "time": f"{shown:%H:%M}"}
        if schedule.template is not None:
            known = self._templates().get(schedule.template).places
            own = {name: value for name, value in places.items() if name in known}
            return self._templates().use(schedule.template, schedule.run_id, values={**own, **schedule.template_values}, key=key)
        if self._db.one("select 1 from tasks where run_id = :run_id and key = :key", {"run_id": schedule.run_id, "key": key}):
            return []
        return self._tasks().add_many(schedule.run_id, [{**fill_placeholders(schedule.task, places), "key": key}])

    def _set(self, schedule_id: str, changes: dict[str, Any], note: str) -> Schedule:
        return self._update(Schedule, schedule_id, changes, note=note)


def _next_time(rule: str, zone: str, now: datetime) -> datetime | None:
    return parse_recurrence(rule, check_filled("zone", zone)).after(now)


def _due_times(schedule: Schedule, now: datetime) -> list[datetime]:
    """List the occurrences to add, by the catch-up rule for missed ones."""
    assert schedule.next_at is not None
    most = schedule.catch_up_limit if schedule.catch_up == CatchUp.ALL else 1
    found = parse_recurrence(schedule.rule, schedule.zone).between(schedule.next_at, now, most)
    if schedule.catch_up != CatchUp.NONE:
        return found
    return [at for at in found if now - at <= timedelta(seconds=schedule.late_seconds)]


def _parse_subject(
    title: str | None, task: dict[str, object] | None, template: str | None, values: dict[str, object] | None
) -> dict[str, Any]:
    """Parse what a schedule adds: one task, or the tasks of a template."""
    if template is not None and (title is not None or task is not None):
        raise Invalid("a schedule adds one task or uses a template, not both", field="template")
    if template is not None:
        filled = check_object("values", values or {})
        return {"task": None, "template": check_filled("template", template), "template_values": filled}
    whole_task = {**(check_object("task", task) if task is not None else {}), **({} if title is None else {"title": title})}
    check_filled("title", whole_task.get("title"))
    check_fields(Task, whole_task)
    if unknown := sorted(whole_task.keys() - _TASK_FIELDS) or (["values"] if values else []):
        raise Invalid(f"the task of a schedule has no {', '.join(unknown)}", field="task")
    return {"task": whole_task, "template": None, "template_values": {}}
