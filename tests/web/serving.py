"""A dashboard in a process."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

from tests.fork_server import environment
from tests.waiting import wait_until


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Server:
    """`decklog serve` of a log; what it prints goes to a file, which no child can hold open for us."""

    def __init__(self, target: str, folder: Path, *words: str) -> None:
        self._target = target
        self._folder = folder
        self._words = words
        self.port = free_port()
        self._printed = folder / "printed"
        self._process: subprocess.Popen[bytes] | None = None
        self.link = ""

    @property
    def origin(self) -> str:
        return self.link.partition("/login")[0]

    def start(self) -> "Server":
        words = ["serve", "--db", self._target, "--port", str(self.port), "--json", *self._words]
        with self._printed.open("wb") as output:
            self._process = self.spawn_server(words, output)
        wait_until(lambda: self._printed.read_bytes().endswith(b"}\n") or not self.is_running)
        answer = json.loads(self._printed.read_text())
        assert answer["ok"], answer
        self.link = answer["data"]["login"]
        return self

    def spawn_server(self, words: list[str], output: IO[bytes]) -> "subprocess.Popen[bytes]":
        variables = environment(XDG_STATE_HOME=str(self._folder / "state"))
        variables |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
        command = [sys.executable, "-m", "decklog", *words]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it, and give its exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(how)
        code = self._process.wait(30)
        self._process = None
        return code

    @property
    def printed(self) -> str:
        return self._printed.read_text()
