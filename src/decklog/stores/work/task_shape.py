"""What a caller may give of a task, checked before anything is written: lists of tasks often come as JSON from an agent."""

from decklog.errors import Invalid
from decklog.stores.checks import filled, mapping, moment, text, texts, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LISTS = ("tags", "acceptance", "verification", "allowed_paths", "depends_on")
_NAMES = ("task_id", "group_id", "role", "stage", "state_name", "trace_file", "key")


def checked(fields: "dict[str, Any]") -> "dict[str, Any]":
    """Check the fields of one task; give them as they are kept."""
    if not text("title", fields["title"]).strip():
        raise Invalid("a task needs a title", field="title")
    text("objective", fields["objective"])
    _number("priority", fields["priority"], "it goes from 0 to 100", 0, 100)
    _number("max_attempts", fields["max_attempts"], "a task needs at least one", 1)
    lists = {name: list(dict.fromkeys(texts(name, fields[name] or []))) for name in _LISTS}
    for name in _NAMES:
        if fields[name] is not None:
            filled(name, fields[name])
    if fields["loop_version"] is not None:
        whole("loop_version", fields["loop_version"])
    inputs = mapping("inputs", fields["inputs"]) if fields["inputs"] is not None else {}
    start = fields["not_before"]
    return {**fields, **lists, "inputs": inputs, "not_before": None if start is None else moment("not_before", start)}


def _number(name: str, value: object, bounds: str, low: int, high: int | None = None) -> None:
    if type(value) is not int or value < low or (high is not None and value > high):
        raise Invalid(f"{name} is {value!r}; {bounds}", field=name)


def listed(tasks: object) -> "list[dict[str, Any]]":
    """Check a list of tasks, each given as the arguments of `add` without the run."""
    if not isinstance(tasks, list):
        raise Invalid(f"tasks is a list of objects, each with a title; got {type(tasks).__name__}", field="tasks")
    for number, task in enumerate(tasks, 1):
        mapping(f"task {number}", task)
        filled(f"the title of task {number}", task.get("title"))
        texts(f"depends_on of task {number}", task.get("depends_on") or [])
        if "run_id" in task:
            raise Invalid(f"task {number} names a run; all tasks are of the run that is given once", field="run_id")
    return tasks
