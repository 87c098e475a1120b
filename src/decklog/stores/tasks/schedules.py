"""Schedules: recurring tasks of a run, without a daemon.

Each claim of a run, and each overview, first adds the due tasks in the same transaction. Every occurrence has a key, so that
its tasks are added once.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, Protocol

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Denied, Invalid, NotFound
from decklog.db.where import Where, enum_of
from decklog.records.fork_rules import ForkRule, Refer, Reset
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store, StoreParts, check_fields
from decklog.stores.checks import filled, mapping, name_of, whole
from decklog.stores.of_run import check_run, given_of, lock_run
from decklog.stores.tasks.claimable import GOES_ON
from decklog.stores.tasks.task import EDITABLE, Task
from decklog.stores.tasks.templates import fill_in

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORT_DAYS = tuple(day[:3] for day in _DAYS)
# Each cron field: its name, its lowest and highest number, and names for the numbers from the lowest on.
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _SHORT_DAYS),
)
_AT_TIME = re.compile(r"every (.+?) (?:at )?(\d{1,2}):(\d\d)")
_SO_OFTEN = re.compile(r"every (?:(\d+) )?(minute|hour)s?")
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")
_EXAMPLES = "`every day 06:00`, `every monday 09:00`, `every 15 minutes`, or cron's five fields such as `30 6 * * 1-5`"
# The next 29 February may be eight years away.
_FARTHEST = timedelta(days=9 * 366)
# No time change is larger, so times that differ by more on the clock are in that order.
_SHIFT = timedelta(hours=3)


class Recurrence:
    """The occurrences of a rule.

    A time that a clock change skips occurs later by the length of the change. A time that occurs twice counts the first time.
    Rules that occur every hour or more often continue through both.
    """

    def __init__(self, rule: str, zone: str) -> None:
        fields = _cron(rule).split()
        if len(fields) != len(_FIELDS):
            raise _unreadable(rule)
        minutes, hours, self._month_days, self._months, week_days = (
            _numbers(rule, text, *field) for text, field in zip(fields, _FIELDS, strict=True)
        )
        self._times = [(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)]
        self._week_days = {day % 7 for day in week_days}
        # As in cron: if both the day of the month and of the week are given, either matches.
        self._either = not fields[2].startswith("*") and not fields[4].startswith("*")
        self._goes_on = fields[1].startswith("*")
        self._zone = zone_of(zone)

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence after a moment; None if there is none for years."""
        start = self._shown(moment) - _SHIFT
        found: list[tuple[datetime, datetime]] = []
        for shown in self._forward(start):
            if found and shown > found[0][1] + _SHIFT:
                break
            found += [(at, shown) for at in self._moments(shown) if at > moment]
        return min(found)[0] if found else None

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        """List the occurrences between two moments, both included, oldest first. Above `most` only the newest are returned."""
        found: set[datetime] = set()
        enough: datetime | None = None
        for shown in self._back(self._shown(end) + _SHIFT, self._shown(start) - _SHIFT):
            if enough is not None and shown < enough - _SHIFT:
                break
            found.update(at for at in self._moments(shown) if start <= at <= end)
            enough = shown if enough is None and len(found) >= most else enough
        return sorted(found)[-most:]

    def _shown(self, moment: datetime) -> datetime:
        """Return the local time at a moment."""
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def _moments(self, shown: datetime) -> Iterator[datetime]:
        """Yield the moments that have a local time, or would have it without a clock change."""
        first, second = (shown.replace(tzinfo=self._zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        yield first
        if self._goes_on and second > first:
            yield second

    def _forward(self, start: datetime) -> Iterator[datetime]:
        day, last = start.date(), (start + _FARTHEST).date()
        while day <= last:
            yield from (shown for shown in self._of_day(day, self._times) if shown >= start)
            day += timedelta(days=1)

    def _back(self, end: datetime, start: datetime) -> Iterator[datetime]:
        day = end.date()
        while day >= start.date():
            yield from (shown for shown in self._of_day(day, reversed(self._times)) if start <= shown <= end)
            day -= timedelta(days=1)

    def _of_day(self, day: date, times: Iterable[tuple[int, int]]) -> Iterator[datetime]:
        if self._matches(day):
            yield from (datetime(day.year, day.month, day.day, hour, minute) for hour, minute in times)

    def _matches(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        by_month, by_week = day.day in self._month_days, day.isoweekday() % 7 in self._week_days
        return by_month or by_week if self._either else by_month and by_week


@lru_cache(maxsize=64)
def recurrence(rule: str, zone: str) -> Recurrence:
    """Parse a rule. Raise Invalid if it never occurs."""
    found = Recurrence(rule, zone)
    if found.after(datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise Invalid(f"{rule!r} never comes: no month has such a day", field="when")
    return found


def zone_of(name: str) -> tzinfo:
    """Return the time zone with a name."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(f"{name!r} is not a time zone known here; write one such as Europe/Berlin, or UTC", field="zone") from None


def _unreadable(rule: str) -> Invalid:
    return Invalid(f"{rule!r} is not a rule; write {_EXAMPLES}", field="when")


def _cron(rule: str) -> str:
    """Convert a rule in words to the five fields of cron."""
    words = " ".join(rule.lower().split())
    if (often := _SO_OFTEN.fullmatch(words)) is not None:
        return _so_often(rule, int(often[1] or 1), often[2])
    if (timed := _AT_TIME.fullmatch(words)) is not None:
        return f"{int(timed[3])} {int(timed[2])} * * {_week(rule, timed[1])}"
    return words


def _so_often(rule: str, count: int, unit: str) -> str:
    whole = 60 if unit == "minute" else 24
    if not count or whole % count:
        raise Invalid(
            f"{rule!r} does not divide {whole} {unit}s evenly; write one that does, or cron's five fields", field="when"
        )
    return f"*/{count} * * * *" if unit == "minute" else f"0 */{count} * * *"


def _week(rule: str, days: str) -> str:
    """Convert days of the week to cron."""
    if days in ("day", "weekday"):
        return "*" if days == "day" else "1-5"
    names = [name for name in re.split(r"[ ,]+|\band\b", days) if name]
    known = {**dict(zip(_DAYS, range(7), strict=True)), **dict(zip(_SHORT_DAYS, range(7), strict=True))}
    if not names or any(name not in known for name in names):
        raise _unreadable(rule)
    return ",".join(str(known[name]) for name in names)


def _numbers(rule: str, text: str, called: str, low: int, high: int, names: tuple[str, ...]) -> set[int]:
    """Parse one field of cron: numbers and names, with lists, ranges and steps."""
    found: set[int] = set()
    known = {name: low + place for place, name in enumerate(names)}
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or (match[1] == "*" and match[2]):
            raise _unreadable(rule)
        first = low if match[1] == "*" else _number(rule, match[1], known)
        last = high if match[1] == "*" or (match[3] and not match[2]) else _number(rule, match[2] or match[1], known)
        step = int(match[3] or 1)
        if not (low <= first <= last <= high and step):
            raise Invalid(f"{part!r} in {rule!r} is no {called}: {low} to {high}", field="when")
        found.update(range(first, last + 1, step))
    return found


def _number(rule: str, word: str, known: dict[str, int]) -> int:
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    if word not in known:
        raise _unreadable(rule)
    return known[word]


class TaskPlanner(Protocol):
    """A store that can add tasks."""

    def add_many(self, run_id: str, tasks: list[dict[str, object]]) -> list[Task]: ...


class Using(Protocol):
    """A store of templates."""

    def get(self, name: str) -> Any: ...
    def use(self, name: str, run_id: str, *, values: dict[str, object], key: str) -> list[Task]: ...


class CatchUp(StrEnum):
    """What happens to missed occurrences."""

    NONE = "none"
    ONE = "one"
    ALL = "all"


CatchUpLike = CatchUp | Literal["none", "one", "all"]


_DAY_SECONDS = 86_400
_TASK_FIELDS = {*EDITABLE, "depends_on", "assigned_to", "parent_id"}
# Placeholders that only a schedule fills in.
_OWN_PLACES = ("at", "date", "time")


@dataclass(frozen=True, kw_only=True)
class Schedule(Record):
    """A recurring task, or recurring tasks of a template. Without `next_at` it is paused."""

    table = "schedules"
    fork = ForkRule(
        "The copy is paused: two runs would do the same again and again.",
        fields={
            "next_at": Reset(),
            "reason": Reset("copied by a fork; resume it to go on here"),
            "task.depends_on": Refer("tasks"),
            "task.parent_id": Refer("tasks"),
        },
    )
    restores = (
        "rule",
        "zone",
        "catch_up",
        "catch_up_limit",
        "late_seconds",
        "task",
        "template",
        "template_values",
        "next_at",
        "reason",
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

    def __init__(self, parts: StoreParts, *, tasks: Callable[[], TaskPlanner], templates: Callable[[], Using]) -> None:
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
        asked = _what(title, task, template, values)
        asked |= {
            "rule": " ".join(filled("when", when).split()),
            "zone": zone,
            "catch_up": enum_of(CatchUp, catch_up, "catch_up"),
        }
        asked |= {
            "catch_up_limit": whole("catch_up_limit", catch_up_limit, low=1, high=100),
            "late_seconds": whole("late_seconds", late_seconds, high=366 * _DAY_SECONDS),
        }
        name = name_of(name, "name")
        lock_run(self._db, run_id)
        self._check_template(asked)
        now = self._now()
        begin: dict[str, Any] = {"id": self._ids.new("sched"), "next_at": _next(asked, now), "created_at": now, "updated_at": now}
        found = self._once(
            lambda: self._seek_by(Schedule, run_id=run_id, name=name),
            lambda: self._add(Schedule, note=f"{name}: {asked['rule']}", run_id=run_id, name=name, **begin, **asked),
        )
        self._check_same(found, asked)
        return found

    def _check_same(self, schedule: Schedule, asked: Mapping[str, Any]) -> None:
        if schedule.already and (differing := self._differing(schedule, asked)):
            raise Conflict(
                f"run {schedule.run_id} has a schedule {schedule.name} already, with another {' and another '.join(differing)}",
                hint=f"Change it: decklog schedules edit {schedule.id}",
                schedule_id=schedule.id,
                fields=list(differing),
            )

    def _check_template(self, asked: Mapping[str, Any]) -> None:
        """Raise an error for a missing template, or for placeholders without a value."""
        if asked.get("template") is None:
            return
        places = set(self._templates().get(asked["template"]).places)
        given = asked["template_values"].keys()
        if wrong := sorted((places - given - set(_OWN_PLACES)) | (given - places)):
            raise Invalid(f"template {asked['template']} and these values do not fit: {', '.join(wrong)}", field="values")

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
        for _ in range(whole("count", count, low=1, high=100)):
            following = recurrence(filled("when", when), zone).after(at)
            if following is None:
                break
            at = following
            found.append(at.astimezone(zone_of(zone)).isoformat())
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
        changes = given_of(locals(), "schedule_id", "reason", "schedule", "when", "title", "task", "template", "values")
        if any(part is not None for part in (title, task, template, values)):
            changes |= _what(title, task, template, values)
            self._check_template(changes)
        if when is not None:
            changes["rule"] = " ".join(filled("when", when).split())
        differing = self._differing(schedule, changes)
        if not differing:
            return schedule.marked_already()
        rhythm = {"rule": differing.get("rule", schedule.rule), "zone": differing.get("zone", schedule.zone)}
        if not schedule.is_paused and differing.keys() & rhythm.keys():
            differing["next_at"] = _next(rhythm, self._now())
        return self._set(schedule_id, differing, f"edited {', '.join(changes)}: {filled('reason', reason)}")

    @writes
    def pause(self, schedule_id: str, *, reason: str) -> Schedule:
        """Pause a schedule; occurrences in the meantime are skipped."""
        schedule = self._fetch_for_update(Schedule, schedule_id)
        if schedule.is_paused:
            return schedule.marked_already()
        return self._set(schedule_id, {"next_at": None, "reason": filled("reason", reason)}, f"paused: {reason}")

    @writes
    def resume(self, schedule_id: str) -> Schedule:
        """Resume a paused schedule from now on."""
        schedule = self._fetch_for_update(Schedule, schedule_id)
        if not schedule.is_paused:
            return schedule.marked_already()
        rhythm = {"rule": schedule.rule, "zone": schedule.zone}
        return self._set(schedule_id, {"next_at": _next(rhythm, self._now()), "reason": None}, "resumed")

    @writes
    def remove(self, schedule_id: str, *, reason: str) -> Schedule:
        """Remove a schedule; its tasks stay."""
        self._fetch_for_update(Schedule, schedule_id)
        return self._remove_one(Schedule, schedule_id, note=f"removed: {filled('reason', reason)}")

    def is_any_due(self) -> bool:
        """Return whether any active run has a due schedule."""
        bound, _ = self._db.values.bind({"now": self._now()})
        sql = f"""
            select 1 from schedules join runs on runs.id = schedules.run_id and {GOES_ON} where next_at <= :now limit 1
            """
        return self._db.read(lambda: self._db.one(sql, bound)) is not None

    @writes
    def run_due(self, run_id: str | None = None) -> list[Task]:
        """Add the tasks of due schedules, of one run or of all active ones; a claim does it too."""
        if run_id is not None:
            check_run(self._db, run_id)
            return self.make_due(run_id)
        _, rows = self._db.rows(
            f"""
            select distinct s.run_id from runs join schedules s on s.run_id = runs.id and s.next_at <= :now
             where {GOES_ON} order by 1
            """,
            self._db.values.bind({"now": self._now()})[0],
        )
        return [task for (due,) in rows for task in self.make_due(due)]

    def make_due(self, run_id: str) -> list[Task]:
        """Add the tasks of a run's due schedules, in the caller's transaction."""
        now = self._now()
        due = self._select(
            Schedule,
            f"""
            select schedules.* from schedules
             where run_id = (select id from runs where id = :run_id and {GOES_ON}) and next_at <= :now
             order by next_at, id for update
            """,
            run_id=run_id,
            now=now,
        )
        return [task for schedule in due for task in self._come(schedule, now)]

    def _come(self, schedule: Schedule, now: datetime) -> list[Task]:
        """Add the due tasks of one schedule, and set its next time.

        A schedule whose tasks can't be added is paused with the reason, so that it does not block other work.
        """
        moments = _seen(schedule, now)
        after: dict[str, Any] = {"next_at": _next({"rule": schedule.rule, "zone": schedule.zone}, now)}
        try:
            made = self._db.write(lambda: [task for at in moments for task in self._make(schedule, at)])
        except (Invalid, NotFound, Conflict, Denied) as problem:
            self._set(schedule.id, {"next_at": None, "reason": str(problem)}, f"paused: {problem}")
            return []
        if moments:
            after |= {"last_at": moments[-1], "occurrences": schedule.occurrences + len(moments)}
        said = ", ".join(map(to_text, moments))
        self._set(schedule.id, after, f"came at {said}" if moments else "came too late, and was left out")
        return made

    def _make(self, schedule: Schedule, at: datetime) -> list[Task]:
        """Add the tasks of one occurrence, unless they exist."""
        key = f"{schedule.id} {to_text(at)}"
        shown = at.astimezone(zone_of(schedule.zone))
        places = {"at": shown.isoformat(timespec="minutes"), "date": f"{shown:%Y-%m-%d}", "time": f"{shown:%H:%M}"}
        if schedule.template is not None:
            known = self._templates().get(schedule.template).places
            own = {name: value for name, value in places.items() if name in known}
            return self._templates().use(schedule.template, schedule.run_id, values={**own, **schedule.template_values}, key=key)
        if self._db.one("select 1 from tasks where run_id = :run_id and key = :key", {"run_id": schedule.run_id, "key": key}):
            return []
        return self._tasks().add_many(schedule.run_id, [{**fill_in(schedule.task, places), "key": key}])

    def _set(self, schedule_id: str, changes: dict[str, Any], note: str) -> Schedule:
        return self._update(Schedule, schedule_id, changes, note=note)


def _next(rhythm: Mapping[str, Any], now: datetime) -> datetime | None:
    return recurrence(rhythm["rule"], filled("zone", rhythm["zone"])).after(now)


def _seen(schedule: Schedule, now: datetime) -> list[datetime]:
    """List the occurrences to add, by the catch-up rule for missed ones."""
    assert schedule.next_at is not None
    most = schedule.catch_up_limit if schedule.catch_up == CatchUp.ALL else 1
    found = recurrence(schedule.rule, schedule.zone).between(schedule.next_at, now, most)
    if schedule.catch_up != CatchUp.NONE:
        return found
    return [at for at in found if now - at <= timedelta(seconds=schedule.late_seconds)]


def _what(
    title: str | None, task: dict[str, object] | None, template: str | None, values: dict[str, object] | None
) -> dict[str, Any]:
    """Parse what a schedule adds: one task, or the tasks of a template."""
    if template is not None and (title is not None or task is not None):
        raise Invalid("a schedule makes one task or uses a template, not both", field="template")
    if template is not None:
        return {"task": None, "template": filled("template", template), "template_values": mapping("values", values or {})}
    whole_task = {**(mapping("task", task) if task is not None else {}), **({} if title is None else {"title": title})}
    filled("title", whole_task.get("title"))
    check_fields(Task, whole_task)
    if unknown := sorted(whole_task.keys() - _TASK_FIELDS) or (["values"] if values else []):
        raise Invalid(f"the task of a schedule has no {', '.join(unknown)}", field="task")
    return {"task": whole_task, "template": None, "template_values": {}}
