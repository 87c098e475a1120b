"""Check whether a run can start here: its settings, sandbox and remote, and a trial start of every agent and check."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from decklog.conductor import commands, settings
from decklog.conductor.agents.description import READABLE, Description, agent_command
from decklog.conductor.checks.running import Runner
from decklog.conductor.git.refs import Remote
from decklog.conductor.git.repository import REF_PREFIX, Repository, starting_commit, write_git_directory
from decklog.conductor.settings import Check, Configuration
from decklog.core.display import one_line
from decklog.core.errors import DecklogError
from decklog.guard.sandbox import sandbox
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.guard.shell.spool import read_output
from decklog.stores.workflow.verdicts import CheckOutcome

SECONDS = 60.0
_SHOWN = 300
_ABSENT = ", which is not installed. Install it, or change decklog.toml."
_NO_NETWORK = re.compile(
    r"(?i)name resolution|could not resolve|network is unreachable|getaddrinfo|EAI_AGAIN|ENETUNREACH|no route to host"
    r"|failed to establish a new connection|nodename nor servname"
)


def problems(cwd: Path, commit: str) -> list[str]:
    """List the problems that keep a run from starting here, each in a sentence."""
    with tempfile.TemporaryDirectory(prefix="decklog-") as state:
        try:
            repository = Repository.find(cwd, Path(state))
            first = starting_commit(repository, commit)
            configuration = settings.read(repository, first)
            Sandbox(kind=configuration.sandbox).resolve_kind()
            if configuration.remote is not None:
                remote = Remote(repository, configuration.remote)
                remote.check()
                remote.refs(REF_PREFIX)
            return list(
                Trials(settings=configuration, repository=repository, commit=first, folder=Path(state, "trials")).problems()
            )
        except DecklogError as problem:
            return [" ".join(part for part in (problem.message + ".", problem.hint) if part)]


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Trial starts within the sandbox of a run; `folder` has all files that they leave."""

    settings: Configuration
    repository: Repository
    commit: str
    folder: Path

    @property
    def _kind(self) -> SandboxKind:
        return Sandbox(kind=self.settings.sandbox).resolve_kind().kind

    def problems(self) -> Iterator[str]:
        """Yield each failure in a sentence, with the line to add to the settings if one is known."""
        # All of them: a plan may name any that is described.
        for agent in self.settings.agents.values():
            yield from self._agent(agent)
        for check in self.settings.checks:
            yield from self._check(check)

    # Agents

    def _agent(self, agent: Description) -> Iterator[str]:
        program, table = str(agent.command[0]), f"[agents.{agent.name}]"
        if shutil.which(program) is None:
            yield f"agent {agent.name} needs the program {program!r}{_ABSENT}"
            return
        if agent.trial and (problem := self._start(agent, [program, *agent.trial], "start")) is not None:
            missing = self._unreadable(program, agent.reads)
            other = f"If {program} does not know {' '.join(agent.trial)}, set in {table}: trial = []"
            yield f"agent {agent.name} does not start in the sandbox: {problem} {_line(table, missing) or other}"
            return
        probe, environment = list(agent.probe), commands.build_environment(agent.pass_env, agent.env)
        if any(environment.get(name) for name in agent.login_env):
            return
        if probe and shutil.which(probe[0]) and (problem := self._start(agent, probe, "login")) is not None:
            keys = " or ".join(agent.login_env or agent.pass_env[:1])
            yield (
                f"agent {agent.name} is not logged in, by {' '.join(probe)!r}: {problem} Log in"
                f"{f', or set {keys}' if keys else ''}. If it needs no login, set in {table}: probe = []"
            )

    def _start(self, agent: Description, argv: list[str], name: str) -> str | None:
        """Start a program like an agent; return how it failed, or None."""
        folder = self.folder / f"{agent.name}-{name}"
        # Some programs only work in a repository; this one is empty.
        write_git_directory(folder / "tree/.git", branch="none")
        command = agent_command(
            agent,
            argv,
            kind=self._kind,
            readable=READABLE,
            mark=f"trial:{os.getpid()}:{agent.name}:{name}",
            root=folder / "tree",
            folder=folder / "command",
            timeout_seconds=SECONDS,
            grace_seconds=1.0,
        )
        try:
            ended = commands.run(command)
        except (DecklogError, OSError) as problem:
            return f"{problem}."
        if ended["reason"] == "exited" and ended["exit_code"] == 0:
            return None
        how = f"exit code {ended['exit_code']}" if ended["reason"] == "exited" else str(ended["reason"]).replace("_", " ")
        return f"{how}: {_tail(read_output(command.folder).text)}."

    # Checks

    def _check(self, check: Check) -> Iterator[str]:
        program, table = check.command[0], f"[[checks]] {check.name}"
        if "/" not in program and shutil.which(program) is None:
            yield f"check {check.name} needs the program {program!r}{_ABSENT}"
            return
        runner = Runner(
            repository=self.repository,
            person=self.repository.person(),
            sandbox=self._kind,
            log_file=None,
            folder=self.folder / "checks",
        )
        result = runner.run(check, self.commit, f"trial-{os.getpid()}-{check.name}")
        if result.outcome is CheckOutcome.PASS:
            return
        lines = [_line(table, self._unreadable(program, check.readable))]
        if not check.network and _NO_NETWORK.search(result.output):
            lines.append(f"It looks for the network. Add to {table}: network = true")
        failure = f"{result.reason}: {', '.join(result.failing[:5]) or _tail(result.output)}"
        yield " ".join(
            part
            for part in (f"check {check.name} does not pass on {self.commit[:12]} in the sandbox: {failure}.", *lines)
            if part
        )

    # Paths that the sandbox lacks

    def _unreadable(self, program: str, readable: Sequence[str]) -> list[str]:
        """List the folders of a program and its interpreter that the sandbox hides."""
        if self._kind is SandboxKind.NONE:
            return []
        env = commands.build_environment((), {})
        context = sandbox.CommandContext(str(self.folder), self.folder / "ground", env)
        ground = sandbox.find_allowed_paths(Sandbox(kind=self._kind, readable=commands.expanded(readable)), context)
        known = [os.path.realpath(path) for path in (*ground.readable, *ground.writable)]
        homes = [_installed_in(path) for path in _programs_of(program)]
        return [home for home in dict.fromkeys(homes) if not any(_is_below(os.path.expanduser(home), path) for path in known)]


def _programs_of(program: str) -> list[str]:
    """Return the files of a program: its executable, and the interpreter in its first line."""
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
    """Return the folder in which a program is installed; below a home the top one, such as `~/.pyenv`."""
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
    return one_line(output)[-_SHOWN:] or "it printed nothing"
