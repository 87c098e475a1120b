"""This tree compared with an earlier commit, interleaved: `python -m benchmarks.before COMMIT`.

It measures appends, claims, reads, verification and command-line calls. Each tree works on its own log.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.before_child import STEPS, TURNS
from benchmarks.calls import cpu
from benchmarks.children import Crew
from benchmarks.figures import Figure
from benchmarks.measure import Row, row
from benchmarks.transfer import server

HERE = Path(__file__).parent.parent
CALLS = {
    "journal append": ["journal", "append", "{run}", "Ran the tests", "--agent", "developer"],
    "tasks claim": ["tasks", "claim", "{run}", "--worker", "w"],
    "runs find": ["runs", "find"],
}
CALL_ROUNDS = 25
# Elapsed time, and the CPU time of this process for a busy machine. A server's work shows in the elapsed time only.
_FIGURES = {"seconds": "", "processor": ", CPU"}


def tree_of(commit: str, folder: Path) -> Path:
    """Extract the sources of a commit into a folder."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=HERE, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=packed, check=True)
    return folder / "src"


def environment_of(source: Path) -> dict[str, str]:
    """Return an environment in which `decklog` is the package of one tree, with compiled modules as after an installation."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": f"{source}:{HERE}"}


def in_one_process(label: str, targets: dict[str, str], sources: dict[str, Path]) -> list[Row]:
    """Run the same verbs in a process of each tree in short turns; the median turn counts."""
    rows = []
    with ExitStack() as stack:
        crews = {
            name: stack.enter_context(
                Crew("benchmarks.before_child", [(targets[name],)], 600, environment=environment_of(source))
            )
            for name, source in sources.items()
        }
        for verb, steps in STEPS.items():
            took: dict[str, list[dict[str, float]]] = {name: [] for name in crews}
            for name in [*crews] * TURNS:
                took[name].append(crews[name].ask(verb)[1][0])
            for what, label_end in _FIGURES.items():
                now, before = (Figure(turn[what] for turn in took[name]) * (1e6 / steps) for name in ("now", "before"))
                rows.append(row(f"{label}, {verb}{label_end}", now, "µs", floor=before, target="<= 1.05"))
    return rows


def calls(folder: Path, sources: dict[str, Path]) -> list[Row]:
    """Measure the CPU time of command-line calls of both trees, interleaved."""
    commands = {}
    for name, source in sources.items():
        path = folder / f"calls-{name}.db"
        crew = Crew("benchmarks.before_child", [(str(path),)], environment=environment_of(source))
        with crew:
            run_id = crew.ask("run")[1][0]["run"]
        words_before = ["env", f"PYTHONPATH={source}", sys.executable, "-m", "decklog", "--db", str(path)]
        for call, words in CALLS.items():
            commands[name, call] = [*words_before, *(word.replace("{run}", run_id) for word in words)]
    took: dict[tuple[str, str], list[float]] = {key: [] for key in commands}
    for key in [*commands] * CALL_ROUNDS:
        took[key].append(cpu(commands[key]))
    return [
        row(
            f"call of {call}, CPU",
            Figure(took["now", call]),
            "ms",
            floor=Figure(took["before", call]),
            target="<= 1.05",
        )
        for call in CALLS
    ]


def main(commit: str) -> list[Row]:
    """Compare this tree with a commit on both engines."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        sources = {"before": tree_of(commit, folder), "now": HERE / "src"}
        rows = in_one_process("SQLite", {each: str(folder / f"{each}.db") for each in sources}, sources)
        with server(folder / "server") as url:
            head, _, query = url.partition("?")
            named = {each: f"{head.rsplit('/', 1)[0]}/{each}" + (f"?{query}" if query else "") for each in sources}
            for each in sources:
                _create(url, each)
            rows += in_one_process("PostgreSQL", named, sources)
        return rows + calls(folder, sources)


def _create(url: str, name: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())


if __name__ == "__main__":
    main(sys.argv[1])
