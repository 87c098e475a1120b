"""Check the records that an importer plug-in yields."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from decklog.core.errors import Invalid
from decklog.plugins import Imported, ImportedComment, ImportedEvent, ImportedLink, ImportedTask
from decklog.stores.checks import filled, mapping, text, whole
from decklog.stores.tasks.task import LinkKind, TaskState


def check_record(record: Imported) -> dict[str, Any]:
    """Return the fields of a record; raise Invalid for a value that its interface does not allow."""
    checks = _CHECKS.get(type(record))
    if checks is None:
        raise Invalid(f"an importer yields tasks, links, comments and events, not {type(record).__name__}")
    return {name: checks[name](name, value) for name, value in vars(record).items()}


def _tags(name: str, value: object) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{name} is a list of texts; got {value!r}", field=name)
    return [text(f"each of {name}", tag) for tag in value]


def _time(name: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise Invalid(f"{name} is a datetime; got {value!r}", field=name)
    if value.utcoffset() is None:
        raise Invalid(f"{name} has no time zone; add one, such as tzinfo=UTC", field=name)
    return value


def _optional_time(name: str, value: object) -> datetime | None:
    return None if value is None else _time(name, value)


def _state(name: str, value: object) -> TaskState:
    state: TaskState = _one_of(TaskState, name, value)
    if state is TaskState.RUNNING:
        raise Invalid("an imported task can't be running; yield TaskState.PAUSED", field=name)
    return state


def _one_of(kind: Any, name: str, value: object) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise Invalid(f"{name} is one of {', '.join(kind)}; got {value!r}", field=name) from None


def _mapping(name: str, value: object) -> dict[str, object]:
    return mapping(name, dict(value) if isinstance(value, Mapping) else value)


_CHECKS: dict[type, dict[str, Callable[[str, object], Any]]] = {
    ImportedTask: {
        "id": filled,
        "title": text,
        "objective": text,
        "state": _state,
        "priority": partial(whole, high=100),
        "tags": _tags,
        "created_at": _time,
        "updated_at": _optional_time,
        "more": _mapping,
    },
    ImportedLink: {"task_id": filled, "other_id": filled, "kind": partial(_one_of, LinkKind)},
    ImportedComment: {"id": filled, "task_id": filled, "author": text, "body": text, "at": _time},
    ImportedEvent: {"id": filled, "task_id": filled, "kind": text, "body": text, "at": _time, "payload": _mapping},
}
