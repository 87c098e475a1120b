"""Tasks for a person: the board."""

import click

from decklog.cli.call import Call
from decklog.cli.show import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.app import Decklog
    from decklog.stores.task import Task

_COLUMNS = (
    ("To do", ("pending",)),
    ("Doing", ("running",)),
    ("Held", ("waiting", "paused", "blocked")),
    ("Done", ("done",)),
)
_MOST = 500


@click.command()
@click.argument("run_id")
@click.option("--width", type=int, default=0, metavar="N", help="characters a column, default by the terminal")
@click.pass_obj
def board(call: Call, run_id: str, width: int) -> int:
    """Show a run's tasks as a board: what is to do, who does what, what is held and why, what is done."""
    import shutil

    with call.open(writing=False) as log:
        log.runs.get(run_id)
        columns = [(name, [task for state in states for task in _tasks(log, run_id, state)]) for name, states in _COLUMNS]
    if call.json:
        return show({name: tasks for name, tasks in columns}, as_json=True)  # noqa: C416
    size = width or max(16, shutil.get_terminal_size((120, 40)).columns // len(columns) - 3)
    click.echo(_draw(columns, size), nl=False)
    return 0


def _tasks(log: "Decklog", run_id: str, state: str) -> "list[Task]":
    return list(log.tasks.find(run_id, state=state, limit=_MOST))  # type: ignore[arg-type]


def _draw(columns: "list[tuple[str, list[Task]]]", size: int) -> str:
    cells = [[line for task in tasks for line in _card(task, size)] for _, tasks in columns]
    heads = [f"{name} ({len(tasks)})".ljust(size) for name, tasks in columns]
    lines = [" │ ".join(heads), "─┼─".join("─" * size for _ in columns)]
    for number in range(max(map(len, cells), default=0)):
        row = [column[number] if number < len(column) else "" for column in cells]
        lines.append(" │ ".join(cell.ljust(size) for cell in row))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _card(task: "Task", size: int) -> list[str]:
    lines = [f"{task.priority:>3} {task.title}"]
    if task.worker:
        lines.append(f"    {task.worker}, attempt {task.attempts}")
    elif task.open_dependencies:
        lines.append(f"    waits for {task.open_dependencies}")
    elif task.reason:
        lines.append(f"    {task.state}: {task.reason}")
    return [line if len(line) <= size else line[: size - 1] + "…" for line in lines]
