"""Programs that the conductor starts, agents and checks alike: held in by a sandbox, kept by a supervisor."""

import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from decklog.conductor.private_home import PrivateHome, PrivateHomeFiles, prepare
from decklog.core.processes import Identity
from decklog.guard.sandbox import sandbox
from decklog.guard.sandbox.linux import require_linux
from decklog.guard.sandbox.sandbox import CommandContext, Sandbox, SandboxKind
from decklog.guard.shell import launch
from decklog.guard.shell.environment import environment
from decklog.guard.shell.shell import read_note

# Half of this is kept of the beginning, all of it in order: charges are read from it, also after a crash.
CAP_BYTES = 64 * 1024 * 1024
_SHORT_WAIT = 0.05
# Its end wakes whoever waits; whether it is to be ended is looked at this often.
_LOOK_SECONDS = 0.2
# Sent by something outside, such as the kernel when memory runs out. A program that crashes gets others.
_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program to be started. `mark` names it, and everything that it starts; `folder` is for what its supervisor writes."""

    argv: list[str]
    mark: str
    root: Path
    folder: Path
    sandbox: Sandbox
    log_file: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    keeps_home: bool = False
    home: PrivateHomeFiles = field(default_factory=PrivateHomeFiles)
    input: Path | None = None
    timeout_seconds: float | None = None
    grace_seconds: float = 60.0


def start(command: Command) -> None:
    """Start a program and let go of it: it is found again by its folder, by this process and by the next."""
    require_linux()
    command.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    settled, site = command.sandbox.settled(), _site(command)
    private = PrivateHome(env=_passed(command.home.variables))
    if settled.kind is not SandboxKind.NONE:
        private = prepare(command.home, site.home, os.environ)
        readable, writable = (*settled.readable, *private.readable), (*settled.writable, *private.writable)
        settled = replace(settled, readable=readable, writable=writable)
    held = sandbox.hold(settled, command.argv, site, str(command.root))
    passed = {**_passed(command.pass_env), **private.env}
    home = {"HOME": os.path.expanduser("~")} if command.keeps_home else {}
    cwd = os.open(command.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        order = launch.LaunchOrder(
            mark=command.mark,
            argv=held.argv,
            env={**held.env, **home, **passed, **command.env},
            cwd_fd=cwd,
            folder=command.folder,
            ground=held.ground,
            timeout_seconds=command.timeout_seconds,
            cap_bytes=CAP_BYTES,
            grace_seconds=command.grace_seconds,
            input=command.input,
        )
        launch.launch(order).let_go()
    finally:
        os.close(cwd)


def environment_of(pass_env: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a program that runs without a sandbox: the usual variables, those passed and those given."""
    return {**_usual(tuple(os.environ.items())), **_passed(pass_env), **given}


def _passed(names: Iterable[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _site(command: Command) -> CommandContext:
    return CommandContext(str(command.root), command.folder, dict(_usual(tuple(os.environ.items()))), command.log_file)


@lru_cache(maxsize=2)
def _usual(variables: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Choose what every program is given of our own environment: to look for secrets in it takes longer than to start one."""
    return environment(source=dict(variables)).values


@dataclass(frozen=True)
class Running:
    """A program that was started, as its folder tells."""

    mark: str
    folder: Path
    supervisor: Identity

    @classmethod
    def find(cls, mark: str, folder: Path) -> "Running | None":
        """Find a program by its folder; None when it never came to run."""
        note = read_note(folder, "running.json")
        return None if note is None else cls(mark, folder, Identity.from_text(note["supervisor"]))

    def ending(self) -> dict[str, Any] | None:
        """Return how it ended; None while it runs. What nobody keeps any more is ended here."""
        ended = read_note(self.folder, "ended.json")
        if ended is not None or self.supervisor.is_alive() is not False:
            return ended
        # It may have written its note between the two looks.
        ended = read_note(self.folder, "ended.json")
        if ended is None:
            launch.end_process_tree(self.mark)
            return {"reason": "lost", "exit_code": None, "signal": None, "signals_sent": [], "leftovers": 0}
        return ended

    @contextmanager
    def watched(self) -> Iterator[Callable[[float], bool]]:
        """Hold on to the supervisor; give what waits for its end so long and says whether it may have come.

        Its number may be another's by now: then it has ended, and there is nothing to wait for.
        """
        with ExitStack() as held:
            try:
                handle = os.pidfd_open(self.supervisor.pid)
                held.callback(os.close, handle)
            except OSError:
                handle = -1
            if handle < 0 or not self.supervisor.is_alive():
                yield _wait_shortly
                return
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            yield lambda seconds: bool(poll.poll(1000 * seconds))

    def until_end(self, wanted_end: Callable[[], str | None], stages: list[tuple[int, float]]) -> dict[str, Any]:
        """Wait for its end and say how it ended; it is stopped by these stages as soon as `wanted_end` gives a reason."""
        is_ending, may_be_over = False, True
        with self.watched() as wait:
            while not may_be_over or (ended := self.ending()) is None:
                if not is_ending and wanted_end() is not None:
                    is_ending = True
                    self.stop(stages)
                may_be_over = wait(_LOOK_SECONDS)
        return ended

    def stop(self, stages: list[tuple[int, float]]) -> None:
        """Ask the supervisor to end it and all it started, by these signals with so many seconds after each."""
        new = self.folder / f"stop.json.{os.getpid()}"
        new.write_text(json.dumps(stages), encoding="utf-8")
        new.rename(self.folder / "stop.json")
        if not self.supervisor.send(signal.SIGTERM):
            launch.end_process_tree(self.mark)

    def adopt(self) -> None:
        """Have it taken for a program of this process."""
        launch.adopt(self.folder)


def killed_by(ended: Mapping[str, Any]) -> str | None:
    """Name what ended a program from outside: a signal, or the loss of its supervisor. None if it ended itself."""
    if ended["reason"] in ("lost", "abandoned"):
        return str(ended["reason"])
    if ended["reason"] != "exited":
        return None
    for number in _OUTSIDE:
        # Shells and bubblewrap report the signal of a child as an exit code.
        if ended.get("signal") == number.name or ended.get("exit_code") == 128 + number:
            return f"killed by {number.name}"
    return None


def _wait_shortly(seconds: float) -> bool:
    time.sleep(min(seconds, _SHORT_WAIT))
    return True


def end(mark: str) -> None:
    """End everything that carries a mark."""
    launch.end_process_tree(mark)
