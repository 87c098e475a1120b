"""Templates: reusable sets of tasks with placeholders."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from decklog.core.errors import Invalid, NotFound
from decklog.db.where import Where, suggest_id
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled, check_object, check_text, normalize_name
from decklog.stores.of_run import lock_run
from decklog.stores.tasks.task import EDITABLE, Task, check_task_list, sort_by_dependencies

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_KNOWN = {*EDITABLE, "name", "depends_on", "parent", "assigned_to"}


class TaskPlanner(Protocol):
    """A store that can add tasks."""

    def add_many(self, run_id: str, tasks: list[dict[str, object]]) -> list[Task]: ...


@dataclass(frozen=True, kw_only=True)
class Template(Record):
    """One version of a set of tasks. Tasks that were created from it do not change with a newer version."""

    table = "templates"
    identity = ("name", "version")
    home = "@workflow"

    name: str
    version: int
    tasks: list[dict[str, object]]
    created_at: datetime
    description: str = ""

    @property
    def places(self) -> list[str]:
        """The names of the placeholders."""
        return sorted(set(_find_placeholders(self.tasks)))


class Templates(Store):
    """Stores reusable sets of tasks, and creates tasks from them."""

    records = (Template,)

    def __init__(self, parts: StoreParts, *, tasks: Callable[[], TaskPlanner]) -> None:
        super().__init__(parts)
        self._tasks = tasks

    @writes
    def save(self, name: str, tasks: list[dict[str, object]], *, description: str = "") -> Template:
        """Save a set of tasks under a name. A known name gets a new version if anything differs.

        Each task has a title, any other fields of a task, and a `name` that `depends_on` and `parent` of others refer to.
        A placeholder is written `{{name}}`.
        """
        fields: dict[str, Any] = {"tasks": check_template_tasks(tasks), "description": check_text("description", description)}
        name = normalize_name(name, "name")
        self._db.lock_stream(Template.home or "")

        def same() -> Template | None:
            found = self._newest(name)
            return None if found is None or self._differing_fields(found, fields) else found

        def add() -> Template:
            newest = self._newest(name)
            version = 1 if newest is None else newest.version + 1
            return self._add(Template, note=f"version {version}", name=name, version=version, created_at=self._now(), **fields)

        return self._find_or_add(same, add)

    def _newest(self, name: str) -> Template | None:
        return self._seek_by(Template, order="version desc", name=name)

    @reads
    def get(self, name: str, *, version: int | None = None) -> Template:
        """Get a template, in its newest or a given version."""
        found = self._newest(name) if version is None else self._seek(Template, (name, version))  # type: ignore[arg-type]
        if found is None:
            which = name if version is None else f"{name}, version {version}"
            hint = suggest_id(self._db, "templates", name, "List them: decklog templates find", column="name")
            raise NotFound(f"there is no template {which}", hint=hint, name=name)
        return found

    @reads
    def find(self, *, limit: int = 20, after: str | None = None) -> Page[Template]:
        """List all versions of templates, by name."""
        return self._page(Template, Where(Template), order=("name", "version"), limit=limit, after=after)

    @writes
    def use(
        self,
        name: str,
        run_id: str,
        *,
        values: dict[str, object] | None = None,
        version: int | None = None,
        key: str | None = None,
    ) -> list[Task]:
        """Add the tasks of a template to a run, all or none, with its placeholders filled in.

        With a known key, the tasks that were created with it are returned, even if the template has changed.
        """
        lock_run(self._db, run_id)
        if key is not None:
            # As stored, because the tasks are found by this prefix.
            key, _ = self._db.values.bind_text("key", check_filled("key", key))
            if added := self._list_by_key(run_id, key):
                return [task.mark_already() for task in added]
        template = self.get(name, version=version)
        given, places = check_object("values", values or {}), set(template.places)
        missing, extra = sorted(places - given.keys()), sorted(given.keys() - places)
        if missing or extra:
            problems = [f"needs {', '.join(missing)}"] if missing else []
            problems += [f"has no placeholder {', '.join(extra)}"] if extra else []
            raise Invalid(
                f"template {template.name} {' and '.join(problems)}",
                hint=f"Placeholders are written {{{{name}}}}. See them: decklog templates show {template.name}",
                field="values",
                missing=missing,
                extra=extra,
            )
        return self._tasks().add_many(run_id, self._build_tasks(template, given, key))

    def _list_by_key(self, run_id: str, key: str) -> list[Task]:
        """List the tasks that were added with a key."""
        # `0` follows `/` in ASCII, so the range has everything that starts with the key and a slash.
        where = Where(Task, run_id=run_id)
        where.add("key > :first and key < :last", first=f"{key}/", last=f"{key}0")
        return self._list(Task, where, order="created_at, id")

    def _build_tasks(self, template: Template, values: dict[str, Any], key: str | None) -> list[dict[str, object]]:
        """Return the tasks to add, each with a new id."""
        ids = {str(task["name"]): self._ids.new("task") for task in template.tasks}
        added: list[dict[str, object]] = []
        for task in template.tasks:
            name, needed, parent = task["name"], task.get("depends_on"), task.get("parent")
            plain = {field: value for field, value in task.items() if field not in ("name", "depends_on", "parent")}
            added.append(
                {
                    **fill_placeholders(plain, values),
                    "task_id": ids[str(name)],
                    "depends_on": [ids[other] for other in needed] if isinstance(needed, list) else None,
                    "parent_id": ids[str(parent)] if parent is not None else None,
                    "key": None if key is None else f"{key}/{name}",
                }
            )
        return added


def check_template_tasks(tasks: list[dict[str, object]]) -> list[dict[str, object]]:
    """Check the tasks of a template and name each. References must be within the template."""
    named = [{"name": str(place), **task} for place, task in enumerate(check_task_list(tasks), 1)]
    names = [check_filled("a task's name", task["name"]) for task in named]
    if len(set(names)) < len(names) or not names:
        raise Invalid("a template needs at least one task, and each task a different name", field="tasks")
    for task in named:
        unknown = sorted(task.keys() - _KNOWN)
        others = [*(task.get("depends_on") or []), *([task["parent"]] if task.get("parent") is not None else [])]
        missing = [other for other in others if other not in names]
        if unknown or missing:
            wrong = f"no {', '.join(unknown)}" if unknown else f"no task {', '.join(map(str, missing))} to refer to"
            hint = f"Its tasks have {', '.join(sorted(_KNOWN))}." if unknown else f"It has {', '.join(names)}."
            raise Invalid(f"the template has {wrong} (in its task {task['name']})", hint=hint, field="tasks")
    # Sorted only to find cycles: the tasks are stored in the given order.
    sort_by_dependencies([{**task, "task_id": task["name"]} for task in named])
    return named


def _find_placeholders(value: object) -> Iterator[str]:
    """Yield the placeholders in all texts of a value."""
    if isinstance(value, str):
        yield from _PLACE.findall(value)
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _find_placeholders(part)


def fill_placeholders(value: Any, values: dict[str, Any]) -> Any:
    """Fill in the placeholders in all texts of a value. Those without a value stay."""
    if isinstance(value, str):
        return _PLACE.sub(lambda place: str(values.get(place[1], place[0])), value)
    if isinstance(value, list):
        return [fill_placeholders(part, values) for part in value]
    return {name: fill_placeholders(part, values) for name, part in value.items()} if isinstance(value, dict) else value
