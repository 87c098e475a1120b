"""Run a command for an agent: check it, sandbox it, wait for its end and record it."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from decklog import redaction
from decklog.core.errors import Invalid, StillPending, TimedOut, Unavailable
from decklog.guard.calls.guard import Command
from decklog.guard.calls.tool import EffectCheck, ToolCall, to_data
from decklog.guard.files.access import Op
from decklog.guard.policy import is_name
from decklog.guard.sandbox import sandbox
from decklog.guard.sandbox.landlock import require_linux
from decklog.guard.sandbox.sandbox import CommandContext, SandboxKind
from decklog.guard.shell import launch, process_tree
from decklog.guard.shell.spool import Chunk, Output, read_output
from decklog.stores.effects.effects import Effect

NAMES = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "TMPDIR", "NO_COLOR"})
# The categories of locale(7) and their override. Other names with this prefix are not part of the locale.
LOCALE = frozenset(
    f"LC_{name}"
    for name in (
        *("ALL", "ADDRESS", "COLLATE", "CTYPE", "IDENTIFICATION", "MEASUREMENT", "MESSAGES"),
        *("MONETARY", "NAME", "NUMERIC", "PAPER", "TELEPHONE", "TIME"),
    )
)
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Environment:
    """Variables of a command, and the names of requested variables that were withheld because they hold secrets."""

    values: dict[str, str]
    withheld: tuple[str, ...]


def environment(
    passed: Iterable[str] = (), extra: Mapping[str, str] | None = None, source: Mapping[str, str] | None = None
) -> Environment:
    """Select the variables of a command: the usual ones, those named in `passed`, and the values in `extra`."""
    source_variables = os.environ if source is None else source
    wanted = NAMES | LOCALE | set(passed)
    selected = {name: source_variables[name] for name in source_variables if name in wanted}
    withheld = sorted(name for name, value in selected.items() if is_secret(name, value))
    values = {name: value for name, value in selected.items() if name not in withheld}
    values.setdefault("PATH", _FALLBACK_PATH)
    for name, value in (extra or {}).items():
        _check(name, value)
        values[name] = value
    return Environment(values, tuple(withheld))


# Every command has the same few variables.
@lru_cache(maxsize=256)
def is_secret(name: str, value: str) -> bool:
    """Return whether redaction finds a secret in a variable."""
    return redaction.scan(f"{name}={value}")[1] or redaction.scan(value)[1]


def _check(name: str, value: str) -> None:
    if not is_name(name) or "\0" in value:
        hint = "Use a name of letters, digits and underscores, and a value without NUL."
        raise Invalid(f"{name!r} can't be set in an environment", hint=hint, name=name)
    if name.startswith("DECKLOG_"):
        raise Invalid(f"{name} is reserved for Decklog", hint="Choose another name.", name=name)


LONGEST_SECONDS = 24 * 3600.0
STREAM_SECONDS = 2.0
SHOWN_CHARACTERS = 4000


@dataclass(frozen=True)
class CommandResult:
    """A finished command. `chunks` is its output in order of arrival.

    `exit_code` is None if a signal ended it; `leftovers` counts child processes that were still running and were ended.
    """

    exit_code: int | None
    signal: str | None
    chunks: tuple[Chunk, ...]
    cut_bytes: int
    duration_ms: int
    sandbox: str
    leftovers: int = 0

    @property
    def output(self) -> str:
        """All output."""
        return "".join(chunk.text for chunk in self.chunks)

    @property
    def stdout(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if chunk.stream == "stdout")

    @property
    def stderr(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if chunk.stream == "stderr")


def build_order(call: ToolCall, command: Command, cwd: str, env: dict[str, str] | None, **terms: Any) -> launch.LaunchOrder:
    """Build the order for the supervisor."""
    require_linux()
    place = resolve_directory(call, cwd)
    selected = environment(call.commands.passed, env)
    if selected.withheld:
        call.notes["withheld"] = list(selected.withheld)
    # A detached command outlives the toolbox and needs its own scratch directory.
    scratch = call.commands.folder(call.mark) if terms.get("detached") else call.commands.scratch
    context = CommandContext(call.root.path, scratch, selected.values, call.log.db.file)
    sandboxed = sandbox.apply_sandbox(
        call.commands.sandbox.resolve_kind(), build_argv(command), context, os.path.join(context.root, place)
    )
    call.notes["sandbox"] = sandboxed.report
    return launch.LaunchOrder(
        mark=call.mark,
        argv=sandboxed.argv,
        env=sandboxed.env,
        cwd_fd=call.root.open_exact(place, os.O_PATH | os.O_DIRECTORY),
        folder=call.commands.folder(call.mark),
        allowed_paths=sandboxed.allowed_paths,
        cap_bytes=call.commands.cap_bytes,
        **terms,
    )


def build_argv(command: Command) -> list[str]:
    """Return the arguments that run a command: its own, or those of bash for a shell string."""
    if isinstance(command, list):
        return command
    return ["bash", "--noprofile", "--norc", "-c", command]


def resolve_directory(call: ToolCall, cwd: str) -> str:
    """Return the working directory of a command, relative to the root, without links."""
    place = call.root.place(cwd, Op.LIST)
    if place.found is None or not os.path.isdir(os.path.join(call.root.path, place.path)):
        raise Invalid(f"{cwd!r} is not a directory to run in", hint="Name one beneath the root.", cwd=cwd)
    return place.path


def check_command(command: Command) -> None:
    """Raise Invalid for an empty or unusable command."""
    words = [command] if isinstance(command, str) else command
    if not words or not words[0].strip():
        raise Invalid("The command is empty", hint="Give a program and its arguments, or a shell string.", field="command")
    if any("\0" in word for word in words):
        raise Invalid("A command can't contain a NUL byte", hint="Remove it.", field="command")


def guard_command(call: ToolCall, arguments: dict[str, Any]) -> None:
    """Check a command before it runs."""
    command = arguments["command"]
    check_command(command)
    seconds = arguments.get("timeout_seconds")
    if seconds is not None and not 0 < seconds <= LONGEST_SECONDS:
        raise Invalid(
            f"timeout_seconds is {seconds}; it must be more than 0 and at most {LONGEST_SECONDS:g}", field="timeout_seconds"
        )
    cwd = resolve_directory(call, arguments.get("cwd", "."))
    call.notes["guard"] |= call.guard.check_command(command, cwd, arguments.get("env"))


def run(
    call: ToolCall, command: list[str] | str, cwd: str = ".", timeout_seconds: float = 120.0, env: dict[str, str] | None = None
) -> CommandResult:
    """Run a command and wait for its end: a list of arguments, or a string for bash.

    The policy may deny it or ask a person first. A non-zero exit code is a normal result. After the timeout the command and
    its child processes are ended and `TimedOut` is raised. Standard input is empty. `env` adds variables to the few that are
    passed on.
    """
    started = time.monotonic()
    order = build_order(
        call,
        command,
        cwd,
        env,
        timeout_seconds=timeout_seconds,
        # The command of a step continues after its starter dies, so its result is stored and it need not run again.
        bound=call.step is None,
        durable=call.step is not None,
    )
    call.on_end(lambda: launch.remove_folder(order.folder))
    call.record_event(
        "run.begun", {"command": command, "cwd": cwd, "guard": call.notes["guard"], "sandbox": call.notes["sandbox"]}
    )
    try:
        supervised = launch.launch(order)
    finally:
        os.close(order.cwd_fd)
    try:
        ended = supervised.wait(_Stream(call, order.folder))
    finally:
        supervised.close()
    result = _build_result(
        ended, read_output(order.folder), int((time.monotonic() - started) * 1000), call.commands.sandbox.resolve_kind().kind
    )
    if ended["reason"] == "timed_out":
        raise _build_timeout(result, timeout_seconds, ended)
    return result


def _build_result(ended: dict[str, Any], output: Output, milliseconds: int, kind: SandboxKind) -> CommandResult:
    return CommandResult(
        ended["exit_code"], ended["signal"], output.chunks, output.cut_bytes, milliseconds, kind.value, ended["leftovers"]
    )


def _build_timeout(result: CommandResult, seconds: float, ended: dict[str, Any]) -> TimedOut:
    return TimedOut(
        f"The command was ended after {seconds:g} seconds, with its child processes",
        hint="Give it more time, or start it in the background with start_process.",
        timeout_seconds=seconds,
        signals_sent=ended["signals_sent"],
        output=result.output[-SHOWN_CHARACTERS:],
    )


class _Stream:
    """Records the output while the command runs."""

    def __init__(self, call: ToolCall, folder: Path) -> None:
        self._call = call
        self._folder = folder
        self._said = ""
        self._next = time.monotonic() + STREAM_SECONDS

    def __call__(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + STREAM_SECONDS
        text = read_output(self._folder).text
        # Redact whole lines together with all earlier ones: half of a secret is not recognized.
        clean = redaction.redact(text[: text.rfind("\n") + 1])
        if clean.startswith(self._said) and len(clean) > len(self._said):
            self._call.record_event("run.output", {"text": clean[len(self._said) :]})
            self._said = clean


# After a crash


def expect_command(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that identify a started command after a crash."""
    folder = call.commands.folder(call.mark)
    return {"mark": call.mark, "folder": str(folder), "command": to_data(arguments["command"])}


def verify_run(call: ToolCall, effect: Effect) -> EffectCheck:
    """Return the outcome of a command whose starter died."""
    mark, folder = str(effect.facts["mark"]), Path(str(effect.facts["folder"]))
    if process_tree.find_marked_processes(mark):
        raise StillPending(
            f"{effect.tool} of step {effect.step!r} is still running", hint="Call it again when it is over.", effect_id=effect.id
        )
    # All processes have ended, so the files are final.
    ended = read_note(folder, "ended.json")
    if ended is None and (read_note(folder, "started.json") is not None or not folder.is_dir()):
        return EffectCheck(None)
    call.on_end(lambda: launch.remove_folder(folder))
    if ended is None or "refused" in ended:
        return EffectCheck(False)
    return EffectCheck(True, to_data(_build_result(ended, read_output(folder), 0, call.commands.sandbox.resolve_kind().kind)))


def read_note(folder: Path, name: str) -> dict[str, Any] | None:
    """Read a file written by a supervisor; return None if it is missing."""
    try:
        note: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Unavailable(f"{folder / name} can't be read: {error}", hint="Check what the command did.") from error
    return note
