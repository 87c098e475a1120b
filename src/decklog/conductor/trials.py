"""Trial starts of agents and checks in the sandbox of a run, with the setting to add where one fails."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from decklog.conductor import commands
from decklog.conductor.agents.description import Description
from decklog.conductor.agents.protocol import READABLE
from decklog.conductor.checks.running import Runner
from decklog.conductor.commands import Command, Running
from decklog.conductor.git import skeleton
from decklog.conductor.git.repository import Repository
from decklog.conductor.settings.check import Check
from decklog.conductor.settings.configuration import Configuration
from decklog.core.errors import DecklogError
from decklog.guard.sandbox import sandbox
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.guard.shell.output import read_output
from decklog.stores.workflow.verdicts import CheckOutcome

SECONDS = 60.0
_KILL = [(9, 5.0)]
_SHOWN = 300
_ABSENT = ", and there is no such program. Install it, or change decklog.toml."
_NO_NETWORK = re.compile(
    r"(?i)name resolution|could not resolve|network is unreachable|getaddrinfo|EAI_AGAIN|ENETUNREACH|no route to host"
    r"|failed to establish a new connection|nodename nor servname"
)


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Starts what a run would start. Nothing runs outside of the sandbox, and `folder` has all that it leaves."""

    settings: Configuration
    repository: Repository
    commit: str
    folder: Path

    @property
    def _kind(self) -> SandboxKind:
        return Sandbox(kind=self.settings.sandbox).settled().kind

    def problems(self) -> Iterator[str]:
        """Yield what failed, each in a sentence with the line to add where one is known."""
        for name in dict.fromkeys((*self.settings.workers, *self.settings.strategists)):
            yield from self._agent(self.settings.agents[name])
        for check in self.settings.checks:
            yield from self._check(check)

    # Agents

    def _agent(self, agent: Description) -> Iterator[str]:
        program, table = str(agent.command[0]), f"[agents.{agent.name}]"
        if shutil.which(program) is None:
            yield f"agent {agent.name} is called as {program!r}{_ABSENT}"
            return
        if agent.trial and (said := self._start(agent, [program, *agent.trial], "start")) is not None:
            missing = self._unreadable(program, agent.reads)
            other = f"If {program} does not know {' '.join(agent.trial)}, set in {table}: trial = []"
            yield f"agent {agent.name} does not start in the sandbox: {said} {_line(table, missing) or other}"
            return
        probe = list(agent.probe)
        if probe and shutil.which(probe[0]) and (said := self._start(agent, probe, "login")) is not None:
            keys = " or ".join(agent.pass_env[:1])
            yield (
                f"agent {agent.name} is not logged in, by {' '.join(probe)!r}: {said} Log in"
                f"{f', or set {keys}' if keys else ''}. If it needs no login, set in {table}: probe = []"
            )

    def _start(self, agent: Description, argv: list[str], name: str) -> str | None:
        """Start a program as an agent would be; return how it failed, None if it did not."""
        folder, mark = self.folder / f"{agent.name}-{name}", f"trial:{os.getpid()}:{agent.name}:{name}"
        # Some programs work in nothing but a repository; this one is empty.
        skeleton.write(folder / "tree/.git", branch="none", commit=None, borrowed=None)
        command = Command(
            argv=argv,
            mark=mark,
            root=folder / "tree",
            folder=folder / "command",
            sandbox=Sandbox(
                kind=self._kind,
                network=agent.network,
                readable=_expanded((*agent.reads, *READABLE)),
                writable=_expanded(agent.writable),
            ),
            env=agent.env,
            pass_env=agent.pass_env,
            keeps_home=agent.keeps_home,
            home=agent.home_files,
            timeout_seconds=SECONDS,
            grace_seconds=1.0,
        )
        try:
            commands.start(command)
        except (DecklogError, OSError) as problem:
            return f"{problem}."
        running = Running.find(mark, command.folder)
        assert running is not None
        ended = running.until_end(lambda: None, _KILL)
        if ended["reason"] == "exited" and ended["exit_code"] == 0:
            return None
        how = f"exit code {ended['exit_code']}" if ended["reason"] == "exited" else str(ended["reason"]).replace("_", " ")
        return f"{how}: {_tail(read_output(command.folder).text)}."

    # Checks

    def _check(self, check: Check) -> Iterator[str]:
        program, table = check.command[0], f"[[checks]] {check.name}"
        if "/" not in program and shutil.which(program) is None:
            yield f"check {check.name} is called as {program!r}{_ABSENT}"
            return
        runner = Runner(
            repository=self.repository,
            person=self.repository.person(),
            sandbox=self._kind,
            log_file=None,
            folder=self.folder / "checks",
        )
        said = runner.run(check, self.commit, f"trial-{os.getpid()}-{check.name}")
        if said.outcome is CheckOutcome.PASS:
            return
        lines = [_line(table, self._unreadable(program, check.readable))]
        if not check.network and _NO_NETWORK.search(said.output):
            lines.append(f"It looks for the network. Add to {table}: network = true")
        told = f"{said.reason}: {', '.join(said.failing[:5]) or _tail(said.output)}"
        yield " ".join(
            part for part in (f"check {check.name} does not pass on {self.commit[:12]} in the sandbox: {told}.", *lines) if part
        )

    # What the sandbox lacks

    def _unreadable(self, program: str, readable: Sequence[str]) -> list[str]:
        """List the folders of a program and its interpreter that the sandbox keeps from it."""
        if self._kind is SandboxKind.NONE:
            return []
        env = commands.environment_of((), {})
        site = sandbox.CommandContext(str(self.folder), self.folder / "ground", env)
        ground = sandbox.ground_of(Sandbox(kind=self._kind, readable=_expanded(readable)), site)
        known = [os.path.realpath(path) for path in (*ground.readable, *ground.writable)]
        homes = [_installed_in(path) for path in _programs_of(program)]
        return [home for home in dict.fromkeys(homes) if not any(_is_below(os.path.expanduser(home), path) for path in known)]


def _programs_of(program: str) -> list[str]:
    """Return the files of a program: what is called, and the interpreter that its first line names."""
    path = shutil.which(program)
    if path is None:
        return []
    with open(path, "rb") as file:
        first = file.readline(256).decode(errors="replace")
    words = first[2:].split() if first.startswith("#!") else []
    name = next((word for word in words if not word.startswith("-") and os.path.basename(word) != "env"), None)
    interpreter = shutil.which(name) if name else None
    return [path, *([interpreter] if interpreter else [])]


def _installed_in(path: str) -> str:
    """Return the folder that a program was installed to: below a person's home the first one, such as `~/.pyenv`."""
    real, home = os.path.realpath(path), os.path.realpath(os.path.expanduser("~"))
    if _is_below(real, home):
        return f"~/{os.path.relpath(real, home).split(os.sep)[0]}"
    folder = os.path.dirname(real)
    return os.path.dirname(folder) if os.path.basename(folder) == "bin" else folder


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _line(table: str, missing: Sequence[str]) -> str:
    words = ", ".join(f'"{path}"' for path in missing)
    return f"Its program is kept from it. Add to {table}: readable = [{words}]" if missing else ""


def _tail(output: str) -> str:
    return " ".join(output.split())[-_SHOWN:] or "it printed nothing"


def _expanded(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(os.path.expanduser(path) for path in paths)
