"""Runs jobs in real processes, which are forked from one that has everything imported and nothing open."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from tests import fork_server
from tests.fork_server import ROOT, ForkedProcess, environment

__all__ = ["ROOT", "alone", "environment", "fork_all", "read_line", "start", "together", "unmeasured", "write_line"]

Job = Callable[..., Any]


def unmeasured() -> dict[str, str]:
    """Return the environment without the settings of coverage, which imports further modules."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def together(job: str, count: int, *arguments: Any, timeout: float = 300) -> list[Any]:
    """Run a job of `tests.db.jobs` in several processes at the same time; return all results."""
    done = fork_server.run(__name__, [job, count, arguments], timeout=timeout)
    assert done.code == 0, done.err.decode()
    if done.err:
        print(done.err.decode())  # pytest shows it when the test fails
    results: list[Any] = json.loads(done.out)
    return results


def alone(job: str, *arguments: Any, timeout: float = 120) -> Any:
    """Run a job in a process and return its result."""
    return together(job, 1, *arguments, timeout=timeout)[0]


def start(job: str, *arguments: Any) -> ForkedProcess:
    """Start a job whose lines can be read while it runs; it is the caller's to end."""
    return ForkedProcess(__name__, [job, None, arguments])


def write_line(value: Any) -> None:
    """Write one line for the process that started this one."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def read_line(process: ForkedProcess) -> Any:
    """Read one line of a process that was started."""
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


def prepare() -> Callable[..., None]:
    """Import the jobs; return a function that runs one in several processes or in this one."""
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401

    import tests.conftest
    import tests.preloaded  # noqa: F401
    from tests.db import jobs

    def run(name: str, count: int | None, arguments: list[Any]) -> None:
        job: Job = getattr(jobs, name)
        if count is None:
            job(*arguments)
        else:
            print(json.dumps(fork_all(count, lambda number: job(number, *arguments))))
        sys.stdout.flush()
        # Skip the teardown of all imported modules, which takes longer than many jobs.
        os._exit(0)

    return run
