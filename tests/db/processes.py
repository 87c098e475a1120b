"""Runs jobs in real processes: `together` forks them from one that has everything imported and nothing open."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decklog.cli.agents import VARIABLES

ROOT = Path(__file__).parent.parent.parent
Job = Callable[..., Any]


def environment(**more: str) -> dict[str, str]:
    """Give a child process the same code that this one tests, and nothing of the user's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DECKLOG_") and name not in VARIABLES}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PYTHONWARNINGS": "default", **more}


def unmeasured() -> dict[str, str]:
    """Give a child process what this one has but coverage, which imports modules of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def together(job: str, count: int, *arguments: Any, timeout: float = 300) -> list[Any]:
    """Run a job of `tests.db.jobs` in so many processes that start at the same instant; give what each returned."""
    words = [sys.executable, "-m", "tests.db.processes", job, str(count), json.dumps(arguments)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    if done.stderr:
        print(done.stderr)  # pytest shows it when the test fails
    results: list[Any] = json.loads(done.stdout)
    return results


def alone(job: str, *arguments: Any, timeout: float = 120) -> Any:
    """Run a job in one process of its own and give what it returned."""
    return together(job, 1, *arguments, timeout=timeout)[0]


def start(job: str, *arguments: Any) -> "subprocess.Popen[str]":
    """Start a job whose lines can be read while it runs; it is the caller's to end."""
    words = [sys.executable, "-m", "tests.db.processes", job, "0", json.dumps(arguments)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())


def say(value: Any) -> None:
    """Write one line for the process that started this one."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def hear(process: "subprocess.Popen[str]") -> Any:
    """Read one line of a process that was started."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the process ended with {process.wait(10)}"
    return json.loads(line)


def fork_all(count: int, job: Job) -> list[Any]:
    """Fork children that all wait for one gate, open it, and collect their results."""
    gate, opener = os.pipe()
    children = [_fork(number, job, gate, opener) for number in range(count)]
    os.close(gate)
    os.close(opener)
    results = []
    for child, results_end in children:
        with os.fdopen(results_end) as file:
            text = file.read()
        _, status = os.waitpid(child, 0)
        results.append(json.loads(text) if text else {"error": f"ended with status {status}"})
    return results


def _fork(number: int, job: Job, gate: int, opener: int) -> tuple[int, int]:
    results_end, own_end = os.pipe()
    child = os.fork()
    if child:
        os.close(own_end)
        return child, results_end
    os.close(opener)
    os.read(gate, 1)
    try:
        text = json.dumps(job(number))
    except BaseException as problem:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        text = json.dumps({"error": f"{type(problem).__name__}: {problem}"})
    with os.fdopen(own_end, "w") as file:
        file.write(text)
    os._exit(0)


def _main() -> None:
    from tests.db import jobs

    name, count, arguments = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    job: Job = getattr(jobs, name)
    if count == 0:
        job(*arguments)
    else:
        print(json.dumps(fork_all(count, lambda number: job(number, *arguments))))


if __name__ == "__main__":
    _main()
