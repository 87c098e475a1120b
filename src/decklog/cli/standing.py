"""How the runs and tasks of an answer stand, in the one word that every surface has for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from decklog.records.record import Page, Record

if TYPE_CHECKING:
    from decklog.log import Decklog

NAME = "stands"
# What tells a task, whole or in brief, from whatever else an answer is made of.
_TASK = {"id", "title", "state"}
# So many are asked for at once.
_BATCH = 200


def with_words(log: "Decklog", result: Any) -> Any:
    """Give runs or tasks, one, a page of them or an answer made of several, as data with their words; any other as it is."""
    if isinstance(result, list):
        if not result or not _has_word(result[0]):
            return result
        told = of_records(log, result[0].table, [record.as_dict() for record in result])
        return Page(told, next=getattr(result, "next", None))
    if isinstance(result, dict):
        return _told(result, {id: word for batch in _words(log, "tasks", list(_tasks(result))) for id, word in batch.items()})
    return of_records(log, result.table, [result.as_dict()])[0] if _has_word(result) else result


def _tasks(value: Any) -> Iterator[str]:
    """Name the tasks in an answer that is made of several, as deep as they are."""
    if isinstance(value, dict) and value.keys() >= _TASK:
        yield value["id"]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _tasks(inner)


def _told(value: Any, words: dict[str, str]) -> Any:
    """Return the same answer with the word of each task after its id."""
    if isinstance(value, list):
        return [_told(inner, words) for inner in value]
    if not isinstance(value, dict):
        return value
    inside = {name: _told(inner, words) for name, inner in value.items()}
    return {"id": value["id"], NAME: words.get(value["id"]), **inside} if value.keys() >= _TASK else inside


def _has_word(value: Any) -> bool:
    return isinstance(value, Record) and value.table in ("runs", "tasks")


def of_records(log: "Decklog", table: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give records of the runs or of the tasks, each with its word after its id."""
    found = {id: word for batch in _words(log, table, [record["id"] for record in records]) for id, word in batch.items()}
    return [{"id": record["id"], NAME: found.get(record["id"]), **record} for record in records]


def _words(log: "Decklog", table: str, ids: list[str]) -> Iterator[dict[str, str]]:
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        yield log.overview.words(run_ids=some)["runs"] if table == "runs" else log.overview.words(task_ids=some)["tasks"]
