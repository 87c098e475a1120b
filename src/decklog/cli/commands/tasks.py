"""Tasks for a person: the board."""

import click

from decklog.cli import terminal
from decklog.cli.call import Call
from decklog.cli.show import show
from decklog.cli.table import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.app import Decklog
    from decklog.stores.work.task import Task

_COLUMNS = (
    ("To do", ("pending",)),
    ("Doing", ("running",)),
    ("Held", ("waiting", "paused", "blocked")),
    ("Done", ("done",)),
)
_MOST = 500


@click.command()
@click.argument("run_id")
@click.option("--width", type=click.IntRange(8, 500), metavar="N", help="characters a column, default by the terminal")
@click.pass_obj
def board(call: Call, run_id: str, width: int | None) -> int:
    """Show a run's tasks as a board: what is to do, who does what, what is held and why, what is done."""
    with call.open(writing=False) as log:
        log.runs.get(run_id)
        columns = [(name, [task for state in states for task in _tasks(log, run_id, state)]) for name, states in _COLUMNS]
        abandoned = _tasks(log, run_id, "abandoned")
    if call.json:
        return show({**dict(columns), "Abandoned": abandoned}, as_json=True)
    size = width or max(16, (terminal.width() + 3) // len(columns) - 3)
    terminal.say(_draw(columns, size).rstrip("\n"))
    if abandoned:
        terminal.say(f"\n{_count(abandoned)} abandoned: decklog tasks find {run_id} --state abandoned")
    return 0


def _tasks(log: "Decklog", run_id: str, state: str) -> "list[Task]":
    """List tasks in the order in which they would be claimed."""
    found = log.tasks.find(run_id, state=state, limit=_MOST)  # type: ignore[arg-type]
    return sorted(found, key=lambda task: (-task.priority, task.created_at, task.id))


def _count(tasks: "list[Task]") -> str:
    return f"{len(tasks)}{' or more' if len(tasks) % _MOST == 0 and tasks else ''}"


def _draw(columns: "list[tuple[str, list[Task]]]", size: int) -> str:
    cells = [[line for task in tasks for line in _card(task, size)] for _, tasks in columns]
    heads = [f"{name} ({_count(tasks)})".ljust(size) for name, tasks in columns]
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
    shown = [terminal.visible(" " * (len(line) - len(line.lstrip())) + " ".join(line.split())) for line in lines]
    return [cut(line, size) for line in shown]
