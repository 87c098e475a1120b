"""Children of a measurement: processes that work on command, report what they saw, and never outlive their time."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST_SECONDS = 300.0


class Crew:
    """Children that were started together and are ready; each turn they all begin at once."""

    def __init__(
        self,
        module: str,
        argument_lists: Sequence[Sequence[str]],
        seconds: float = MOST_SECONDS,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        commands = [[sys.executable, "-m", module, *arguments] for arguments in argument_lists]
        self._children = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            for words in commands
        ]
        self._watchdog = threading.Timer(seconds, self._end)
        self._watchdog.start()
        try:
            for child in self._children:
                _line(child)
        except RuntimeError:
            self._end()
            self.__exit__()
            raise

    def __enter__(self) -> "Crew":
        return self

    def ask(self, word: str = "go") -> tuple[float, list[Any]]:
        """Give all the same word; give the time they got it, and what each had to tell when it was done."""
        went = time.time()
        for child in self._children:
            assert child.stdin is not None
            child.stdin.write(f"{word}\n")
            child.stdin.flush()
        return went, [json.loads(_line(child)) for child in self._children]

    def __exit__(self, *_: object) -> None:
        """Let the children end by themselves, which they do when nothing more can come; end those that do not."""
        self._watchdog.cancel()
        for child in self._children:
            try:
                child.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()

    def _end(self) -> None:
        for child in self._children:
            child.kill()


def alone(module: str, *arguments: str, seconds: float = MOST_SECONDS) -> Any:
    """Let one child have one turn; give what it had to tell."""
    with Crew(module, [arguments], seconds) as crew:
        return crew.ask()[1][0]


def work_as_child(work: Callable[[str], Any]) -> None:
    """Be a child that is ready: work at every word that comes, and tell the result."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(work(line.strip())), flush=True)


def _line(child: "subprocess.Popen[str]") -> str:
    """Read one line of a child's, passing over what libraries print there."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(("ready", "{", "[")):
            return line
    raise RuntimeError(f"child {child.pid} ended with {child.wait()} and reported nothing")
