"""Agents as processes of their own, which call the program from shells as agents do, and can be killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.db.processes import environment

_LOOP = """
import json, subprocess, sys
for line in sys.stdin:
    done = subprocess.run(json.loads(line), capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class Heard(NamedTuple):
    code: int
    out: str
    err: str


class Agent:
    """A program that runs commands in a shell, one after the other, until it is killed."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LOOP],
            cwd=folder,
            env=environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, words: str, *, through: str = "") -> Heard:
        """Run `decklog` with these words, as a shell reads them, perhaps through a program that starts it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(["bash", "-c", f"{through} '{sys.executable}' -m decklog {words}; exit $?"]) + "\n")
        self._process.stdin.flush()
        return Heard(*json.loads(self._process.stdout.readline()))

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def agent(log_folder: Path) -> Iterator[Callable[..., Agent]]:
    """Start an agent in the folder of the log, or in another one."""
    started: list[Agent] = []

    def start(folder: Path | None = None, **variables: str) -> Agent:
        homes = {"HOME": str(log_folder / "home"), "XDG_DATA_HOME": str(log_folder / "data")}
        started.append(Agent(folder or log_folder, {**homes, **variables}))
        return started[-1]

    yield start
    for one in started:
        one.kill()
