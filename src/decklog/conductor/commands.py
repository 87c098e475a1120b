"""Start and watch programs, such as agents and checks, in a sandbox and under a supervisor."""

import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from decklog.core.processes import Identity
from decklog.guard.sandbox import sandbox
from decklog.guard.sandbox.landlock import require_linux
from decklog.guard.sandbox.sandbox import CommandContext, Sandbox, SandboxKind
from decklog.guard.shell import launch
from decklog.guard.shell.shell import environment, read_note

# The output is kept up to this size, since charges are read from it even after a crash.
CAP_BYTES = 64 * 1024 * 1024
_SHORT_WAIT = 0.05
_KILL = [(int(signal.SIGKILL), 5.0)]
# How often `end_reason` is called. The end of the program wakes the thread earlier.
_LOOK_SECONDS = 0.2
# Signals from outside, for example from the kernel when memory runs out. A crash has other signals.
_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True, kw_only=True)
class PrivateHomeFiles:
    """Files of the person's home that an agent's program uses, each written as `~/…`.

    `variables` are those that move a folder elsewhere, each with the folder that it moves.
    """

    copied: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PrivateHome:
    """The sandbox settings for a private home: the real paths of its links, and the variables that point into it."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program to start. `mark` identifies its processes; `folder` is for the files of its supervisor."""

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
    """Start a program. This process and later ones can find it by its folder."""
    require_linux()
    command.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    usual = dict(_usual(tuple(os.environ.items())))
    settled, context = command.sandbox.resolve_kind(), CommandContext(str(command.root), command.folder, usual, command.log_file)
    private = PrivateHome(env=_passed(command.home.variables))
    if settled.kind is not SandboxKind.NONE:
        private = prepare_home(command.home, context.home, os.environ)
        readable, writable = (*settled.readable, *private.readable), (*settled.writable, *private.writable)
        settled = replace(settled, readable=readable, writable=writable)
    sandboxed = sandbox.apply_sandbox(settled, command.argv, context, str(command.root))
    passed = {**_passed(command.pass_env), **private.env}
    home = {"HOME": os.path.expanduser("~")} if command.keeps_home else {}
    cwd = os.open(command.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        order = launch.LaunchOrder(
            mark=command.mark,
            argv=sandboxed.argv,
            env={**sandboxed.env, **home, **passed, **command.env},
            cwd_fd=cwd,
            folder=command.folder,
            allowed_paths=sandboxed.allowed_paths,
            timeout_seconds=command.timeout_seconds,
            cap_bytes=CAP_BYTES,
            grace_seconds=command.grace_seconds,
            input=command.input,
        )
        launch.launch(order).close()
    finally:
        os.close(cwd)


def run(command: Command, end_reason: Callable[[], str | None] = lambda: None) -> dict[str, Any]:
    """Start a program and wait for its end; kill it as soon as `end_reason` returns a reason. Return how it ended."""
    start(command)
    running = Running.find(command.mark, command.folder)
    assert running is not None
    return running.until_end(end_reason, _KILL)


def expanded(paths: Iterable[str]) -> tuple[str, ...]:
    """Expand the home folder in paths."""
    return tuple(os.path.expanduser(path) for path in paths)


def build_environment(pass_env: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a program without a sandbox from the usual, passed and given variables."""
    return {**_usual(tuple(os.environ.items())), **_passed(pass_env), **given}


def _passed(names: Iterable[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


@lru_cache(maxsize=2)
def _usual(variables: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return the variables that every program gets. Cached, since searching them for secrets is slow."""
    return environment(source=dict(variables)).values


@dataclass(frozen=True)
class Running:
    """A started program, found by its folder."""

    mark: str
    folder: Path
    supervisor: Identity

    @classmethod
    def find(cls, mark: str, folder: Path) -> "Running | None":
        """Find a program by its folder; None if it was never started."""
        note = read_note(folder, "running.json")
        return None if note is None else cls(mark, folder, Identity.from_text(note["supervisor"]))

    def ending(self) -> dict[str, Any] | None:
        """Return how it ended; None while it runs. End a program whose supervisor has died."""
        ended = read_note(self.folder, "ended.json")
        if ended is not None or self.supervisor.is_alive() is not False:
            return ended
        # The supervisor may have written its note between the two reads.
        ended = read_note(self.folder, "ended.json")
        if ended is None:
            launch.end_process_tree(self.mark)
            return {"reason": "lost", "exit_code": None, "signal": None, "signals_sent": [], "leftovers": 0}
        return ended

    @contextmanager
    def watched(self) -> Iterator[Callable[[float], bool]]:
        """Yield a function that waits for the supervisor's end for some seconds, and returns whether it may have ended.

        If its number is another process's by now, it has ended.
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

    def until_end(self, end_reason: Callable[[], str | None], stages: list[tuple[int, float]]) -> dict[str, Any]:
        """Wait for its end and return how it ended; stop it by these stages as soon as `end_reason` returns a reason."""
        is_ending, may_be_over = False, True
        with self.watched() as wait:
            while not may_be_over or (ended := self.ending()) is None:
                if not is_ending and end_reason() is not None:
                    is_ending = True
                    self.stop(stages)
                may_be_over = wait(_LOOK_SECONDS)
        return ended

    def stop(self, stages: list[tuple[int, float]]) -> None:
        """Make the supervisor end the program and its children by these signals, with seconds to wait after each."""
        new = self.folder / f"stop.json.{os.getpid()}"
        new.write_text(json.dumps(stages), encoding="utf-8")
        new.rename(self.folder / "stop.json")
        if not self.supervisor.send(signal.SIGTERM):
            launch.end_process_tree(self.mark)

    def adopt(self) -> None:
        """Make this process the owner of the program."""
        launch.adopt_command(self.folder)


def killed_by(ended: Mapping[str, Any]) -> str | None:
    """Return what killed a program from outside: a signal, or the loss of its supervisor; None if nothing did."""
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
    """End all processes with a mark."""
    launch.end_process_tree(mark)


# Private homes
#
# Settings may name programs, such as hooks, that run outside of the sandbox the next time. So a sandboxed agent never writes to
# the person's home. It has copies that are removed with its folder, reads some files through links, and writes only the state
# that is listed, such as credentials, which its program renews.


def prepare_home(files: PrivateHomeFiles, home: Path, environment: Mapping[str, str]) -> PrivateHome:
    """Fill a new home with copies of and links to files of the person's home."""
    moved = {folder: environment[name] for name, folder in files.variables.items() if environment.get(name)}
    for path in files.copied:
        source, target = _source(path, moved), _target(path, home)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(source, target)
            target.chmod(0o600)
    readable, writable = (
        tuple(found for path in paths if (found := _link(path, moved, home))) for paths in (files.readable, files.writable)
    )
    env = {name: str(_target(folder, home)) for name, folder in files.variables.items() if folder in moved}
    return PrivateHome(readable=readable, writable=writable, env=env)


def _link(path: str, moved: Mapping[str, str], home: Path) -> str | None:
    """Link a file or folder into the new home; return its real path, or None if there is none."""
    source, target = _source(path, moved), _target(path, home)
    if not source.exists():
        return None
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    real = os.path.realpath(source)
    if not target.is_symlink():
        target.symlink_to(real)
    return real


def _source(path: str, moved: Mapping[str, str]) -> Path:
    for folder, elsewhere in moved.items():
        if path.startswith(f"{folder}/"):
            return Path(elsewhere, path.removeprefix(f"{folder}/"))
    return Path(path).expanduser()


def _target(path: str, home: Path) -> Path:
    return home / path.removeprefix("~/")
