"""One hook call: read an event from stdin, store it in the spool, and answer it if needed.

Exit 2 with a reason on stderr blocks a tool call: one that the policy denies, or that could not be judged. An event that could
not be recorded never stops the agent. Heavy modules are imported only when needed.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from decklog.agents.spool import Spool
from decklog.agents.texts import as_name, text_or_none

if TYPE_CHECKING:
    from decklog.location.locate import LogLocation

BLOCKED = 2
# The call was judged and may run, but could not be recorded.
UNRECORDED = 3
# Events without further work: they wait in the spool for the next intake.
_ONLY_RECORDED = frozenset(["PostToolUse", "PostToolUseFailure", "PostToolBatch", "SubagentStart", "Notification", "AfterTool"])
# Events that a model reviews, if the repository enables it; the answer must name the event.
_REVIEWED = frozenset(["PostToolUse", "AfterTool"])
_JUDGED = frozenset(["PreToolUse", "BeforeTool"])
# Longest wait for a locked log at the start of a session.
_LOCK_WAIT_SECONDS = 5.0
# Longest wait for the intake: an old transcript may have hundreds of megabytes that no hook has read.
_LONGEST_INTAKE_SECONDS = 5.0
# Longest wait for a program to exit after its last event: it writes its totals then.
_LONGEST_END_SECONDS = 5.0


class Hook:
    """One hook call: the calling program, its environment and the event."""

    def __init__(self, program: str, raw: bytes, environment: Mapping[str, str]) -> None:
        self.program = program
        self._raw = raw
        self._environment = environment
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError):
            found = {}
        self.payload: dict[str, Any] = found if isinstance(found, dict) else {}
        self.event = text_or_none(self.payload.get("hook_event_name")) or ""
        self._session = text_or_none(self.payload.get("session_id")) or "unread"

    @property
    def _root(self) -> str:
        """The project folder of the session. A nested program inherits CLAUDE_PROJECT_DIR, so it counts for Claude Code only."""
        named = self._environment.get("CLAUDE_PROJECT_DIR") if self.program == "claude" else None
        return named or text_or_none(self.payload.get("cwd")) or os.getcwd()

    @property
    def is_judged(self) -> bool:
        """Whether the event is a tool call, or is unreadable and may be one."""
        return self.event in _JUDGED or not self.event

    def answer(self, out: IO[str], err: IO[str]) -> int:
        """Judge, record and answer the event. A blocked call stays blocked if it can't be recorded."""
        from decklog.location.locate import locate_session_log

        location, problem = None, None
        try:
            # Use the session's root: a command may change to a folder without a log, and so without a guard.
            location = locate_session_log(self._root, self._environment)
        except Exception as unusable:  # noqa: BLE001
            # A call must be judged even if the log can't be used.
            problem = unusable
        if location is None and problem is None:
            return 0
        denied = self._find_block_reason()
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
            err.write(f"The call could not be recorded: {unrecorded}\n")
        return BLOCKED if denied else 0

    def _record(self, location: "LogLocation", denied: str | None, out: IO[str]) -> None:
        from decklog.location.locate import repository, spool_folder

        spool, raw, facts = Spool(spool_folder(location)), self._raw, self._facts(denied)
        # Store the files that the call changes as git objects. Import nothing if there is no repository.
        if not denied and repository(self._root) is not None:
            from decklog.hooks.capturing import capture

            if captured := capture(self.payload, self._root, f"{self.program}:{self._session}", self._process):
                facts["provenance"] = captured
        if self.event == "SessionStart" and (process := self._process()) is not None:
            # Store the program's process, so that its death can be detected later.
            raw = json.dumps({**self.payload, "process": process}).encode()
        spool.put(self.program, self._session, facts, raw)
        if not location.exists:
            # The next event after the log's file exists again records this one.
            return
        if self.event == "SessionStart":
            self._print_briefing(location, spool, out)
        elif self.event in _REVIEWED:
            self._review(location, out)
        elif self.event not in _ONLY_RECORDED and not (self.event in _JUDGED and spool.is_intake_running):
            # The check holds the intake lock briefly, so other hooks may have skipped their intake.
            run_detached(lambda: self._run_intake(location, spool), spool.store_error)

    def _process(self) -> str | None:
        """Return the process of the program: the one it names, or the process that called this hook."""
        from decklog.agents.caller import calling_process
        from decklog.core.processes import Identity

        # Only for Claude Code: a program that it started inherits its variables.
        named = self._environment.get("CLAUDE_PID", "") if self.program == "claude" else ""
        process = Identity.of(int(named)) if named.isdigit() else calling_process()
        return None if process is None else process.as_text()

    def _print_briefing(self, location: "LogLocation", spool: Spool, out: IO[str]) -> None:
        """Run the intake and print the agent's briefing, which becomes part of its conversation."""
        from decklog.agents.caller import StoredClaims, claims_folder_of, worker
        from decklog.agents.entries import session_run_id
        from decklog.agents.prime import Prime
        from decklog.core.errors import Busy, NotFound

        agent = worker(None, self._environment)
        claim = StoredClaims(claims_folder_of(location), agent).load()
        own_claim = (claim.run_id, claim.task_id) if claim is not None and claim.is_open else (None, None)
        run_id = self._environment.get("DECKLOG_RUN_ID") or own_claim[0]
        task_id = self._environment.get("DECKLOG_TASK_ID") or own_claim[1]
        since = None
        with location.open(busy_seconds=_LOCK_WAIT_SECONDS) as log, suppress(NotFound):
            for entry in log.journal.find(session_run_id(self.program, self._session), limit=1):
                since = entry.at
        child = run_detached(lambda: self._run_intake(location, spool), spool.store_error)
        is_locked = not _wait_until(lambda: bool(os.waitpid(child, os.WNOHANG)[0]), _LONGEST_INTAKE_SECONDS)
        while True:
            try:
                # Open the log read-only while another process has locked it.
                with location.open(busy_seconds=_LOCK_WAIT_SECONDS, read_only=is_locked) as log:
                    prime = Prime(log, agent.name, run_id, task_id, since=since, folder=self._root)
                    out.write(prime.text())
                    return
            except Busy:
                if is_locked:
                    raise
                is_locked = True

    def _review(self, location: "LogLocation", out: IO[str]) -> None:
        """Review the changes of a tool call, and report certain errors to the agent."""
        from decklog.hooks.capturing import errors_of_call, settings_with

        if settings_with(self._root, b"[critique]") is None:
            return
        with location.open(busy_seconds=_LOCK_WAIT_SECONDS) as log:
            lines = errors_of_call(
                log, self.payload, self._root, session=f"{self.program}:{self._session}", named=self._facts(None)
            )
        if lines:
            answer = {"hookEventName": self.event, "additionalContext": "\n".join(lines)}
            out.write(json.dumps({"hookSpecificOutput": answer}) + "\n")

    def _run_intake(self, location: "LogLocation", spool: Spool) -> None:
        """Record waiting events in the log. The next event retries a failed intake; `decklog doctor agents` shows the error."""
        from decklog.agents.closing import close_killed_sessions
        from decklog.agents.intake import run_intake

        with location.open() as log:
            run_intake(log, spool)
            if self.event not in _JUDGED:
                close_killed_sessions(log, spool)
            program = self._environment.get("CLAUDE_PID", "")
            if (
                self.event == "SessionEnd"
                and program.isdigit()
                and _wait_until(lambda: _has_exited(int(program)), _LONGEST_END_SECONDS)
            ):
                exit_event = {**self.payload, "hook_event_name": "ProgramGone"}
                spool.put(self.program, self._session, self._facts(None), json.dumps(exit_event).encode())
                run_intake(log, spool)

    def _facts(self, denied: str | None) -> dict[str, Any]:
        named = {"run": "DECKLOG_RUN_ID", "task": "DECKLOG_TASK_ID"}
        facts = {fact: self._environment[name] for fact, name in named.items() if self._environment.get(name)}
        facts["session"] = self._session
        return {**facts, "denied": denied} if denied else facts

    def _find_block_reason(self) -> str | None:
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

  Record one event of a coding agent, given as JSON on standard input. The agents call it themselves:
  `decklog setup claude` configures Claude Code to do so.
"""


def run(words: list[str]) -> int:
    """Answer one event of the named program."""
    if words in (["--help"], ["-h"]):
        sys.stdout.write(_USAGE)
        return 0
    # Exit 1, because the usual exit 2 for wrong usage would block the tool call.
    if len(words) != 1 or words[0].startswith("-") or as_name(words[0]) != words[0]:
        sys.stderr.write(f"decklog hook: name one program\n{_USAGE}")
        return 1
    hook = Hook(words[0], sys.stdin.buffer.read(), os.environ)
    try:
        return hook.answer(sys.stdout, sys.stderr)
    except Exception as problem:  # noqa: BLE001
        # The program shows the error in its log; only exit code 2 stops the agent.
        hint = getattr(problem, "hint", None)
        sys.stderr.write(f"decklog hook: {problem}\n" + (f"  {hint}\n" if hint else ""))
        return UNRECORDED if hook.is_judged else 1


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
    except OSError as problem:
        return isinstance(problem, ProcessLookupError)
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
