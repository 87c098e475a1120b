"""Resources that clients read by their addresses: the situation, a run, a task or an entry."""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import mcp_types as types

from decklog import Decklog
from decklog.core.errors import NotFound
from decklog.mcp.tool import plain_record, shorten, shorten_texts

_SCHEME = "decklog://"
_JSON = "application/json"
LISTED = [
    types.Resource(uri=f"{_SCHEME}now", name="now", description="What needs a person, what runs, what it costs.", mime_type=_JSON)
]
TEMPLATES = [
    types.ResourceTemplate(uri_template=f"{_SCHEME}{form}", name=name, description=description, mime_type=_JSON)
    for name, form, description in (
        ("run", "run/{id}", "A run and its tasks."),
        ("task", "task/{id}", "A task and its live status."),
        ("entry", "entry/{stream}/{seq}", "An entry of the journal."),
    )
]
_TASK_LIMIT = 100


def _run(log: Decklog, run_id: str) -> dict[str, Any]:
    tasks = log.tasks.find(run_id, limit=_TASK_LIMIT)
    run = plain_record(log.runs.get(run_id))
    words = log.overview.words(run_ids=[run_id], task_ids=[task.id for task in tasks])
    task_rows = [{"task": task.id, "title": task.title, "live_status": words["tasks"][task.id]} for task in tasks]
    return {**run, "live_status": words["runs"][run_id], "tasks": task_rows, **({"more_tasks": True} if tasks.next else {})}


def _task(log: Decklog, task_id: str) -> dict[str, Any]:
    task = plain_record(log.tasks.get(task_id))
    return {**task, "live_status": log.overview.words(task_ids=[task_id])["tasks"][task_id]}


def _entry(log: Decklog, stream: str, seq: str) -> dict[str, Any]:
    if not seq.isdecimal():
        raise NotFound(
            f"{shorten(seq, 40)!r} is not the number of an entry", hint=f"Such as {_SCHEME}entry/{shorten(stream, 80)}/1"
        )
    return plain_record(log.journal.get(stream, int(seq)))


_READERS: dict[tuple[str, int], Callable[..., dict[str, Any]]] = {
    ("now", 0): lambda log: shorten_texts(log.overview.now().as_dict()),
    ("run", 1): _run,
    ("task", 1): _task,
    ("entry", 2): _entry,
}


def read(log: Decklog, address: str) -> dict[str, Any]:
    """Return the resource at an address."""
    kind, *parts = address.removeprefix(_SCHEME).split("/")
    found = _READERS.get((kind, len(parts))) if address.startswith(_SCHEME) else None
    if found is None:
        known = ", ".join([f"{_SCHEME}now", *(template.uri_template for template in TEMPLATES)])
        raise NotFound(f"nothing is at {shorten(address, 80)!r}", hint=f"There are: {known}.")
    return found(log, *map(unquote, parts))
