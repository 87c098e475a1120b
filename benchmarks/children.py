"""Children of a measurement: processes that start together, tell what they saw, and never outlive their time."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

MOST_SECONDS = 300.0


def together(module: str, argument_lists: Sequence[Sequence[str]], seconds: float = MOST_SECONDS) -> tuple[float, list[Any]]:
    """Start one child per list of arguments, let all go at once; give the time they went and what each had to tell."""
    commands = [[sys.executable, "-m", module, *arguments] for arguments in argument_lists]
    children = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for words in commands]
    with _bounded(children, seconds):
        for child in children:
            _line(child)
        went = time.time()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return went, [json.loads(_line(child)) for child in children]


def alone(module: str, *arguments: str, seconds: float = MOST_SECONDS) -> Any:
    """Run one child that goes at once; give what it had to tell."""
    return together(module, [arguments], seconds)[1][0]


def work_as_child(prepare: Callable[[], Callable[[], Any]]) -> None:
    """Be a child: prepare, say so, wait for the word, work, and tell the result."""
    work = prepare()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(work()), flush=True)


def _line(child: "subprocess.Popen[str]") -> str:
    """Read one line of a child's, passing over what libraries print there."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(("ready", "{", "[")):
            return line
    raise RuntimeError(f"child {child.pid} ended with {child.wait()} and told nothing")


@contextmanager
def _bounded(children: "list[subprocess.Popen[str]]", seconds: float) -> Iterator[None]:
    def end() -> None:
        for child in children:
            child.kill()

    watchdog = threading.Timer(seconds, end)
    watchdog.start()
    try:
        yield
        for child in children:
            child.wait(timeout=30)
    finally:
        watchdog.cancel()
        end()
        for child in children:
            child.communicate()
