"""Start, list, read and stop background processes of an agent. They outlive the agent's program."""

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.core.processes import Identity
from decklog.guard.calls.tool import EffectCheck, ToolCall, to_data
from decklog.guard.shell import launch, process_tree
from decklog.guard.shell.shell import build_order, read_note, resolve_directory
from decklog.guard.shell.spool import read_output
from decklog.stores.effects.effects import Effect
from decklog.stores.effects.processes import Process, ProcessState

INTERRUPT_SECONDS = 10.0
TERMINATE_SECONDS = 5.0
KILL_SECONDS = 10.0
MOST_LISTED = 200


@dataclass(frozen=True)
class StartedProcess:
    """A background process that was started."""

    process_id: str
    pid: int
    sandbox: str


@dataclass(frozen=True)
class BackgroundProcess:
    """Current state of a background process. `exit_code` is None while it runs, or if a signal ended it."""

    process_id: str
    pid: int
    command: list[str] | str
    cwd: str
    state: str
    started_at: str
    exit_code: int | None = None
    signal: str | None = None


@dataclass(frozen=True)
class StoppedProcess:
    """Result of stopping a background process: whether it was running, the signals sent, and how it ended."""

    process_id: str
    was_running: bool
    state: str
    exit_code: int | None
    signal: str | None
    signals_sent: tuple[str, ...]


def start_process(call: ToolCall, command: list[str] | str, cwd: str = ".", env: dict[str, str] | None = None) -> StartedProcess:
    """Start a command in the background: a list of arguments, or a string for bash.

    The policy checks it first, as for `run`. It continues after the agent's program ends: `list_processes` lists it with its
    `process_id`, `process_logs` reads its output, and `stop_process` ends it with its child processes.
    """
    order = build_order(call, command, cwd, env, bound=False, detached=True, durable=call.step is not None)
    sandbox = call.notes["sandbox"]
    call.record_event("start_process.begun", {"command": command, "cwd": cwd, "guard": call.notes["guard"], "sandbox": sandbox})
    try:
        supervised = launch.launch(order)
    finally:
        os.close(order.cwd_fd)
    supervised.close()
    _record(
        call,
        call.mark,
        {"pid": supervised.pid, "supervisor": supervised.supervisor.as_text()},
        _facts(call, command, cwd, str(order.folder)),
    )
    return StartedProcess(call.mark, supervised.pid, str(sandbox["kind"]))


def _facts(call: ToolCall, command: Any, cwd: str, folder: str) -> dict[str, Any]:
    kind = call.commands.sandbox.resolve_kind().kind.value
    place = resolve_directory(call, cwd)
    return {"mark": call.mark, "folder": folder, "command": to_data(command), "cwd": place, "sandbox": kind}


def _record(call: ToolCall, process_id: str, running: dict[str, Any], facts: dict[str, Any]) -> Process:
    return call.log.processes.started(
        call.run_id,
        process_id,
        command={"argv" if isinstance(facts["command"], list) else "shell": facts["command"]},
        cwd=str(facts["cwd"]),
        root=call.root.path,
        folder=str(facts["folder"]),
        sandbox=str(facts["sandbox"]),
        keeper=str(running["supervisor"]),
        pid=int(running["pid"]),
        task_id=call.task_id,
    )


def expect_process(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that identify a started process after a crash."""
    return _facts(call, arguments["command"], arguments.get("cwd", "."), str(call.commands.folder(call.mark)))


def verify_process(call: ToolCall, effect: Effect) -> EffectCheck:
    """Return whether a process was started, although its starter died."""
    facts = dict(effect.facts)
    folder, mark = Path(str(facts["folder"])), str(facts["mark"])
    running = read_note(folder, "running.json")
    if running is not None:
        _record(call, mark, running, facts)
        return EffectCheck(True, to_data(StartedProcess(mark, int(running["pid"]), str(facts["sandbox"]))))
    refused = "refused" in (read_note(folder, "ended.json") or {})
    is_begun = read_note(folder, "started.json") is not None or bool(process_tree.find_marked_processes(mark))
    return EffectCheck(False) if refused or (folder.is_dir() and not is_begun) else EffectCheck(None)


def list_processes(call: ToolCall) -> list[BackgroundProcess]:
    """List the background processes of this run, newest first, with their current states and exit codes."""
    return [_describe(refresh(call, one)) for one in call.log.processes.find(call.run_id, limit=MOST_LISTED)]


def process_logs(call: ToolCall, process_id: str, tail_lines: int = 100) -> str:
    """Read the last lines of a background process's output, both streams in order of arrival."""
    if tail_lines < 0:
        raise Invalid(f"tail_lines is {tail_lines}; it must be 0 or more", field="tail_lines")
    process = refresh(call, _find_process(call, process_id))
    if tail_lines == 0:
        return ""
    return "".join(read_output(process.folder).text.splitlines(keepends=True)[-tail_lines:])


def stop_process(call: ToolCall, process_id: str, force: bool = False, grace_seconds: float | None = None) -> StoppedProcess:
    """Stop a background process and its child processes: interrupt, then terminate, then kill.

    It has 10 seconds after the interrupt and 5 after the termination, or `grace_seconds` after each; `force` kills at once.
    For a process that has already ended, report its end.
    """
    process = refresh(call, _find_process(call, process_id))
    if not process.is_running:
        return _build_stopped(process, was_running=False)
    stages = _stages(force, grace_seconds)
    supervisor = Identity.from_text(process.keeper)
    (Path(process.folder) / "stop.json").write_text(json.dumps(stages), encoding="utf-8")
    if not supervisor.send(signal.SIGTERM):
        launch.end_process_tree(process.id)
    _await_end(process, sum(seconds for _, seconds in stages))
    ended = refresh(call, process)
    if ended.is_running:
        raise Conflict(f"Process {process_id} still runs after a kill", hint="Check it with ps.", pid=process.pid)
    return _build_stopped(ended, was_running=True)


def _stages(force: bool, grace_seconds: float | None) -> list[tuple[int, float]]:
    if grace_seconds is not None and grace_seconds < 0:
        raise Invalid(f"grace_seconds is {grace_seconds}; it must be 0 or more", field="grace_seconds")
    kill = (int(signal.SIGKILL), KILL_SECONDS)
    if force:
        return [kill]
    waits = (INTERRUPT_SECONDS, TERMINATE_SECONDS) if grace_seconds is None else (grace_seconds, grace_seconds)
    return [(int(signal.SIGINT), waits[0]), (int(signal.SIGTERM), waits[1]), kill]


def _await_end(process: Process, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not _is_alive(process):
            return
        time.sleep(0.02)


def _find_process(call: ToolCall, process_id: str) -> Process:
    process = call.log.processes.get(process_id)
    if process.run_id != call.run_id:
        raise NotFound(f"Process {process_id} belongs to another run", hint="List this run's with list_processes.")
    return process


def _is_alive(process: Process) -> bool:
    """Return whether the supervisor of a process is alive, or any process with its mark."""
    return Identity.from_text(process.keeper).is_alive() is not False or bool(process_tree.find_marked_processes(process.id))


def refresh(call: ToolCall, process: Process) -> Process:
    """Return the current state of a process; record its end if it has ended."""
    if not process.is_running:
        return process
    is_alive = _is_alive(process)
    ended = read_note(Path(process.folder), "ended.json")
    if ended is None and is_alive:
        return process
    if ended is None:
        return call.log.processes.ended(process.id, ProcessState.LOST)
    state = {"stopped": ProcessState.STOPPED, "timed_out": ProcessState.TIMED_OUT}.get(ended["reason"], ProcessState.EXITED)
    ending = {name: ended[name] for name in ("exit_code", "signal", "signals_sent")}
    return call.log.processes.ended(process.id, state, **ending)


def _describe(process: Process) -> BackgroundProcess:
    data = process.as_dict()
    names = ("pid", "cwd", "state", "started_at", "exit_code", "signal")
    command = next(iter(data["command"].values()))
    return BackgroundProcess(process_id=process.id, command=command, **{name: data[name] for name in names})


def _build_stopped(process: Process, *, was_running: bool) -> StoppedProcess:
    return StoppedProcess(
        process.id, was_running, process.state.value, process.exit_code, process.signal, tuple(process.signals_sent)
    )
