"""Plans: tasks from titles, lines or JSON, and their status."""

from typing import Any

from decklog.core.display import one_line
from decklog.shortcuts.caller import Caller, ShortcutAnswer

# Symbols by status; those that need a person are prominent.
_STATUS_MARKS = {
    "needs attention": "!",
    "failed": "!",
    "stalled": "?",
    "running": ">",
    "pending": " ",
    "done": "x",
    "abandoned": "~",
    **dict.fromkeys(("blocked", "waiting", "paused"), "-"),
}
_TASK_LIMIT = 30
_EXAMPLE = 'Such as: [{"title": "one"}, "two"]'
_BULLETS = ("- [ ] ", "- ", "* ", "+ ")


def parse_tasks(caller: Caller, titles: tuple[str, ...]) -> list[dict[str, Any]]:
    """Build tasks from titles, or from stdin."""
    if titles == ("-",) and caller.surface.read_input is not None:
        return _parse_text(caller, caller.surface.read_input())
    return [{"title": title} for title in titles]


def add_tasks(caller: Caller, run_id: str, tasks: list[dict[str, Any]], *, in_order: bool, key: str | None) -> ShortcutAnswer:
    """Add tasks to a run, all or none; in order, each waits for the one before."""
    added: list[Any] = []
    with caller.acting(None), caller.log.transaction():
        for number, task in enumerate(tasks, 1):
            if key is not None:
                task = {"key": f"{key}/{number}", **task}
            if in_order and added:
                task = {**task, "depends_on": [*task.get("depends_on", ()), added[-1].id]}
            added += caller.log.tasks.add_many(run_id, [task])
    lines = [f"{'already: ' if task.already else ''}{task.id}  {one_line(task.title)}" for task in added]
    return ShortcutAnswer(
        "\n".join(lines), [{"task": task.id, "title": task.title, "already": bool(task.already)} for task in added]
    )


def show_plan(caller: Caller, run_id: str) -> ShortcutAnswer:
    """Return the status of a run's tasks, one per line."""
    run = caller.log.runs.get(run_id)
    tasks = caller.log.tasks.find(run_id, limit=_TASK_LIMIT)
    words = caller.log.overview.words(run_ids=[run_id], task_ids=[task.id for task in tasks])
    status = words["runs"][run_id]
    lines = [f"{run.id}  {one_line(run.goal)} ({status})"]
    for task in tasks:
        more = task.worker or task.reason or (f"waits for {task.open_dependencies}" if task.open_dependencies else "")
        note = f" ({one_line(more)})" if more and task.state not in ("done", "abandoned") else ""
        lines.append(f"[{_STATUS_MARKS[words['tasks'][task.id]]}] {task.id}  {one_line(task.title)}{note}")
    if not tasks:
        lines.append(f"No tasks yet: {_plan_example(caller)}")
    if tasks.next is not None:
        lines.append(f"More: decklog tasks find {run_id} --after '{tasks.next}'")
    data = [{"task": task.id, "title": task.title, "live_status": words["tasks"][task.id]} for task in tasks]
    return ShortcutAnswer("\n".join(lines), {"run": run.id, "goal": run.goal, "live_status": status, "tasks": data})


def _plan_example(caller: Caller) -> str:
    return caller.surface.call("plan", '"TITLE"', '"TITLE"')


def _parse_text(caller: Caller, text: str) -> list[dict[str, Any]]:
    """Parse tasks from JSON, or from lines: a title each, with its objective on indented lines below."""
    if text.lstrip().startswith(("[", "{")):
        return _parse_json(caller, text)
    tasks: list[dict[str, Any]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line[0].isspace() and tasks:
            tasks[-1]["objective"] = f"{tasks[-1].get('objective', '')}\n{line.strip()}".strip()
        else:
            tasks.append({"title": _without_bullet(line.strip())})
    if not tasks:
        raise caller.surface.usage_error("stdin has no tasks", hint=f"Give a title for each: {_plan_example(caller)}")
    return tasks


def _without_bullet(line: str) -> str:
    for bullet in _BULLETS:
        if line.startswith(bullet):
            return line[len(bullet) :].strip()
    number, dot, rest = line.partition(". ")
    return rest.strip() if dot and number.isdecimal() else line


def _parse_json(caller: Caller, text: str) -> list[dict[str, Any]]:
    import json

    try:
        tasks = json.loads(text)
    except ValueError as problem:
        raise caller.surface.usage_error(f"stdin is not valid JSON: {problem}", hint=_EXAMPLE) from None
    return build_tasks(caller, tasks if isinstance(tasks, list) else tasks.get("tasks", [tasks]))


def build_tasks(caller: Caller, listed: Any) -> list[dict[str, Any]]:
    """Build tasks from a list of titles and objects."""
    tasks = [{"title": task} if isinstance(task, str) else task for task in listed] if isinstance(listed, list) else []
    if not tasks or not all(isinstance(task, dict) for task in tasks):
        raise caller.surface.usage_error("a plan is a list of titles or of objects, each with a title", hint=_EXAMPLE)
    return tasks
