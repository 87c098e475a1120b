"""Tasks: running, waiting, blocked and paused tasks of all runs, and the page of one task."""

from typing import Any

from decklog import Task, TaskState
from decklog.core.errors import Invalid
from decklog.web.pages.entries.rows import folded, lines_of
from decklog.web.site import PageView, SiteRequest, command

PAGE, ENTRIES = 50, 40
# States that can be listed over all runs. Pending and finished tasks are listed in their run.
STATES = ("running", "waiting", "blocked", "paused")


def is_lapsed(asked: SiteRequest, task: Task) -> bool:
    """Return whether a running task's lease has expired."""
    until = task.leased_until
    return task.state.value == "running" and until is not None and until < asked.log.clock.now()


def read(asked: SiteRequest) -> PageView:
    """Load the tasks of all runs with a state, the latest change first."""
    state, worker = asked.word("state") or "running", asked.word("worker")
    if state not in STATES:
        raise Invalid(f"state is one of {', '.join(STATES)}", field="state", hint="What is pending or over is listed in its run.")
    given: dict[str, Any] = {"state": TaskState(state), "worker": worker}
    page = asked.log.tasks.find(**given, limit=PAGE, after=asked.word("after"))
    said = command("tasks", "find", "--state", state, *(("--worker", worker) if worker else ()))
    names = asked.log.overview.names(run_ids=list({task.run_id for task in page}))
    shown = {
        "names": names,
        "tasks": page,
        "words": asked.log.overview.words(task_ids=[task.id for task in page])["tasks"],
        "state": state,
        "states": STATES,
        "worker": worker,
        "is_first": asked.word("after") is None,
    }
    return PageView("tasks.html", "Tasks", said, page, shown, page.next, "tasks")


def one(asked: SiteRequest) -> PageView:
    """Load one task: its status and reason, dependencies, attempts and entries."""
    log, task_id = asked.log, asked.path["task_id"]
    found = log.tasks.details(task_id)
    entries = log.journal.find(found["task"]["run_id"], task_id=task_id, limit=ENTRIES)
    shown = {
        "found": found,
        "task": found["task"],
        "word": log.overview.words(task_ids=[task_id])["tasks"][task_id],
        "why": found["why"],
        "names": log.overview.names(run_ids=[found["task"]["run_id"]]),
        "entries": lines_of(folded(entries[::-1]), found["task"]["run_id"]),
        "more": entries.next,
    }
    title = f"{found['task']['title']} · Task"
    return PageView("task.html", title, command("tasks", "details", task_id), found, shown, place="tasks")
