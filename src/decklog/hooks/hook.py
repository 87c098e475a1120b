"""One hook call: read an event from stdin, store it in the spool, and answer it if needed.

Exit 2 with a reason on stderr blocks a tool call: one that the policy denies, or that could not be judged. An event that could
not be recorded never stops the agent. Heavy modules are imported only when needed.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from decklog.agents.spool import Spool
from decklog.agents.texts import as_name

if TYPE_CHECKING:
    from datetime import datetime

    from decklog.location.locate import LogLocation
    from decklog.log import Decklog

BLOCKED = 2
# The call was judged and may run, but could not be recorded.
UNRECORDED = 3
# Events without further work: they wait in the spool for the next intake.
_ONLY_RECORDED = frozenset(["PostToolUse", "PostToolUseFailure", "PostToolBatch", "SubagentStart", "Notification", "AfterTool"])
# Events that a model reviews, if the repository enables it; the answer must name the event.
_REVIEWED = frozenset(["PostToolUse", "AfterTool"])
_JUDGED = frozenset(["PreToolUse", "BeforeTool"])
# Longest wait for a locked log at the start of a session.
_PATIENCE_SECONDS = 5.0
# Longest wait for the intake: an old transcript may have hundreds of megabytes that no hook has read.
_LONGEST_TAKING_IN_SECONDS = 5.0
# Longest wait for a program to exit after its last event: it writes its totals then.
_LONGEST_END_SECONDS = 5.0


class Hook:
    """One hook call: the calling program, its environment and the event."""

    def __init__(self, program: str, raw: bytes, environment: Mapping[str, str]) -> None:
        self.program = program
        self._raw = raw
        self._environment = environment
        self.payload: dict[str, Any] = _object(raw)
        event = self.payload.get("hook_event_name")
        self.event = event if isinstance(event, str) else ""

    @property
    def is_judged(self) -> bool:
        """Whether the event is a tool call, or is unreadable and may be one."""
        return self.event in _JUDGED or not self.event

    def answer(self, out: IO[str], err: IO[str]) -> int:
        """Judge, record and answer the event. A blocked call stays blocked if it can't be recorded."""
        location, problem = None, None
        try:
            # Use the session's root: a command may change to a folder without a log, and so without a guard.
            location = self._find_log()
        except Exception as unusable:  # noqa: BLE001
            # A call must be judged even if the log can't be used.
            problem = unusable
        if location is None and problem is None:
            return 0
        denied = self._why_blocked()
        if denied:
            err.write(denied + "\n")
            err.flush()
        try:
            if problem is not None:
                raise problem
            assert location is not None
            self._record(location, denied, out)
        except Exception as unrecorded:
            if not denied:
                raise
            err.write(f"It is not on record: {unrecorded}\n")
        return BLOCKED if denied else 0

    def _record(self, location: "LogLocation", denied: str | None, out: IO[str]) -> None:
        from decklog.location.locate import spool_folder

        spool = Spool(spool_folder(location))
        captured = None if denied else self._capture()
        facts = self._facts(denied) | ({"provenance": captured} if captured else {})
        spool.put(self.program, self._session, facts, self._payload_to_record())
        if not location.exists:
            # The next event takes this one in, once the log's file exists again.
            return
        if self.event == "SessionStart":
            self._prime(location, spool, out)
        elif self.event in _REVIEWED:
            self._review(location, out)
        elif self.event not in _ONLY_RECORDED and not (self.event in _JUDGED and spool.is_being_taken_in):
            # The check takes the intake lock for a moment, so other hooks may have left the work to this one.
            self._start_intake(location, spool)

    def _capture(self) -> dict[str, Any] | None:
        """Store the files that the call changes as git objects. Import nothing if there is no repository."""
        from decklog.location.locate import repository

        if repository(self._root) is None:
            return None
        from decklog.hooks.capturing import capture

        return capture(self.payload, self._root, f"{self.program}:{self._session}", self._process)

    def _process(self) -> str | None:
        from decklog.core.processes import Identity

        process = Identity.of(self._program_pid())
        return None if process is None else process.as_text()

    def _payload_to_record(self) -> bytes:
        """Return the payload. At a session start, add the program's process, so that its death can be detected later."""
        if self.event != "SessionStart":
            return self._raw
        process = self._process()
        return self._raw if process is None else json.dumps({**self.payload, "process": process}).encode()

    def _program_pid(self) -> int:
        """Return the process id of the program: the one it names, or the process that called this hook."""
        from decklog.agents.caller import calling_process

        # Only for Claude Code: a program that it started inherits its variables.
        named = self._environment.get("CLAUDE_PID", "") if self.program == "claude" else ""
        return int(named) if named.isdigit() else calling_process().number

    def _prime(self, location: "LogLocation", spool: Spool, out: IO[str]) -> None:
        """Take in waiting events and print the agent's briefing, which becomes part of its conversation."""
        from decklog.agents.caller import RememberedClaims, claims_folder_of, worker

        who = worker(None, self._environment)
        claim = RememberedClaims(claims_folder_of(location), who).load()
        mine = claim if claim is not None and claim.is_open else None
        run_id = self._environment.get("DECKLOG_RUN_ID") or (mine and mine.run_id) or None
        task_id = self._environment.get("DECKLOG_TASK_ID") or (mine and mine.task_id) or None
        with location.open(busy_seconds=_PATIENCE_SECONDS) as log:
            since = self._last_here(log)
        child = self._start_intake(location, spool)
        is_taken_in = _wait_until(lambda: bool(os.waitpid(child, os.WNOHANG)[0]), _LONGEST_TAKING_IN_SECONDS)
        asked = {"worker": who.name, "run_id": run_id, "task_id": task_id, "since": since, "folder": self._root}
        out.write(_briefing(location, asked, is_locked=not is_taken_in))

    def _review(self, location: "LogLocation", out: IO[str]) -> None:
        """Review what a tool has changed, and report certain errors to the agent."""
        from decklog.hooks.capturing import errors_of_call, settings_with

        if settings_with(self._root, b"[critique]") is None:
            return
        with location.open(busy_seconds=_PATIENCE_SECONDS) as log:
            lines = errors_of_call(
                log, self.payload, self._root, session=f"{self.program}:{self._session}", named=self._facts(None)
            )
        if lines:
            answer = {"hookEventName": self.event, "additionalContext": "\n".join(lines)}
            out.write(json.dumps({"hookSpecificOutput": answer}) + "\n")

    def _last_here(self, log: "Decklog") -> "datetime | None":
        from decklog.agents.entries import run_of_session
        from decklog.core.errors import NotFound

        try:
            found = log.journal.find(run_of_session(self.program, self._session), limit=1)
        except NotFound:
            return None
        return found[0].at if found else None

    def _start_intake(self, location: "LogLocation", spool: Spool) -> int:
        """Take waiting events into the log in a detached process; return its pid."""
        # The next event retries a failed intake; `decklog doctor agents` shows the error.
        return run_detached(lambda: self._take_in(location, spool), spool.keep_trouble)

    def _take_in(self, location: "LogLocation", spool: Spool) -> None:
        from decklog.agents.closing import close_killed_sessions
        from decklog.agents.intake import take_in

        with location.open() as log:
            take_in(log, spool)
            if self.event not in _JUDGED:
                close_killed_sessions(log, spool)
            program = self._environment.get("CLAUDE_PID", "")
            if (
                self.event == "SessionEnd"
                and program.isdigit()
                and _wait_until(lambda: _has_exited(int(program)), _LONGEST_END_SECONDS)
            ):
                gone = {**self.payload, "hook_event_name": "ProgramGone"}
                spool.put(self.program, self._session, self._facts(None), json.dumps(gone).encode())
                take_in(log, spool)

    @property
    def _session(self) -> str:
        session = self.payload.get("session_id")
        return session if isinstance(session, str) and session else "unread"

    def _find_log(self) -> "LogLocation | None":
        """Return the log of the session's folder; None means that nothing is recorded."""
        from decklog.location.locate import of_session

        return of_session(self._root, self._environment)

    def _facts(self, denied: str | None) -> dict[str, Any]:
        named = {"run": "DECKLOG_RUN_ID", "task": "DECKLOG_TASK_ID"}
        facts = {fact: self._environment[name] for fact, name in named.items() if self._environment.get(name)}
        facts["session"] = self._session
        return {**facts, "denied": denied} if denied else facts

    @property
    def _root(self) -> str:
        """The project folder of the session. A nested program inherits CLAUDE_PROJECT_DIR, so it counts for Claude Code only."""
        named = self._environment.get("CLAUDE_PROJECT_DIR") if self.program == "claude" else None
        cwd = self.payload.get("cwd")
        return named or (cwd if isinstance(cwd, str) and cwd else os.getcwd())

    def _why_blocked(self) -> str | None:
        """Return why a call is blocked, None if it is not. A call that can't be judged is blocked."""
        if not self.is_judged:
            return None
        if not self.event:
            return "Decklog can't read this event, so it is blocked."
        try:
            from decklog.hooks.judging import block_reason

            return block_reason(self.payload, self._root)
        except Exception as problem:  # noqa: BLE001
            hint = getattr(problem, "hint", None)
            return f"Decklog could not judge this call, so it is blocked: {problem}" + (f"\n  {hint}" if hint else "")


_USAGE = """Usage: decklog hook claude|codex|gemini|opencode

  Put one event of an agent's program on record, which comes as JSON on standard input. Programs call it themselves:
  `decklog setup claude` has Claude Code do so.
"""


def run(words: list[str]) -> int:
    """Answer one event of the named program."""
    if words in (["--help"], ["-h"]):
        sys.stdout.write(_USAGE)
        return 0
    # Exit 1, because the usual exit 2 for wrong usage would block the tool call.
    if len(words) != 1 or words[0].startswith("-") or as_name(words[0]) != words[0]:
        sys.stderr.write(f"decklog hook: one program is to be named\n{_USAGE}")
        return 1
    hook = Hook(words[0], sys.stdin.buffer.read(), os.environ)
    try:
        return hook.answer(sys.stdout, sys.stderr)
    except Exception as problem:  # noqa: BLE001
        # The program shows the error in its log; only exit code 2 stops the agent.
        hint = getattr(problem, "hint", None)
        sys.stderr.write(f"decklog hook: {problem}\n" + (f"  {hint}\n" if hint else ""))
        return UNRECORDED if hook.is_judged else 1


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _briefing(location: "LogLocation", asked: dict[str, Any], *, is_locked: bool) -> str:
    """Return the agent's briefing; open the log read-only while another process has locked it."""
    from decklog.agents.prime import Prime
    from decklog.core.errors import Busy

    try:
        with location.open(busy_seconds=_PATIENCE_SECONDS, read_only=is_locked) as log:
            return Prime(log, **asked).text()
    except Busy:
        if is_locked:
            raise
    return _briefing(location, asked, is_locked=True)


def _wait_until(is_done: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition up to a time limit; return whether it was met."""
    end = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _has_exited(process: int) -> bool:
    """Return whether a process has ended; False for one that can't be checked."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def run_detached(work: Callable[[], None], report: Callable[[Exception], None] | None = None) -> int:
    """Run work in a detached process, which neither delays this one nor ends with it; return its pid."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        work()
    except Exception as problem:  # noqa: BLE001
        if report is not None:
            report(problem)
    finally:
        os._exit(0)
