"""How the runs and tasks of an answer stand, in the one word that every surface has for it."""

from decklog.records import Page, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.app import Decklog

NAME = "stands"
# So many are asked for at once.
_BATCH = 200


def with_words(log: "Decklog", result: "Any") -> "Any":
    """Give runs or tasks, one, a page of them or a view of one, as data with their words; any other result as it is."""
    if isinstance(result, list):
        if not result or not _has_word(result[0]):
            return result
        told = of_records(log, result[0].table, [record.as_dict() for record in result])
        return Page(told, next=getattr(result, "next", None))
    if isinstance(result, dict) and isinstance(task := result.get("task"), dict) and "open_dependencies" in task:
        return {**result, "task": of_records(log, "tasks", [task])[0]}
    return of_records(log, result.table, [result.as_dict()])[0] if _has_word(result) else result


def _has_word(value: "Any") -> bool:
    return isinstance(value, Record) and value.table in ("runs", "tasks")


def of_records(log: "Decklog", table: str, records: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """Give records of the runs or of the tasks, each with its word after its id."""
    found = {id: word for batch in _words(log, table, [record["id"] for record in records]) for id, word in batch.items()}
    return [{"id": record["id"], NAME: found.get(record["id"]), **record} for record in records]


def _words(log: "Decklog", table: str, ids: "list[str]") -> "Iterator[dict[str, str]]":
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        asked = log.overview.words(run_ids=some) if table == "runs" else log.overview.words(task_ids=some)
        yield asked[table]
