"""One call of a hook: an event comes on stdin, waits in the spool from then on, and is answered where an answer is due.

Exit 2 with a reason on stderr blocks a tool call: one that the policy denies, and one that could not be judged. An event that
could not be recorded never stops the agent. Nothing heavy is imported before it is known to be needed.
"""

import json
import os
import sys
from typing import TYPE_CHECKING

from decklog.agents.spool import Spool
from decklog.agents.texts import as_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import IO, Any

    from decklog.location.locate import LogLocation
    from decklog.log import Decklog

HELD = 2
# The call was judged and may run, but is not on record.
UNRECORDED = 3
_LONGEST_SETTINGS = 1024 * 1024
# Only recorded: they wait in the spool for the next event that takes them in.
_ONLY_RECORDED = frozenset(["PostToolUse", "PostToolUseFailure", "PostToolBatch", "SubagentStart", "Notification", "AfterTool"])
# Told what a model thinks of it, where the repository asks for that; the answer has to say which event it is of.
_CRITICISED = frozenset(["PostToolUse", "AfterTool"])
_JUDGED = frozenset(["PreToolUse", "BeforeTool"])
# A tool or a turn of the agent begins or ends: files may change in between.
_MAY_CHANGE_FILES = frozenset(
    (
        *("PreToolUse", "PostToolUse", "PostToolUseFailure", "BeforeTool", "AfterTool"),
        *("UserPromptSubmit", "BeforeAgent", "Stop", "StopFailure", "AfterAgent", "Interrupt"),
    )
)
# An agent that begins waits no longer for a log that somebody else holds.
_PATIENCE_SECONDS = 5.0
# Nor for what is to be read: the transcript of an older session may have hundreds of megabytes that no hook has seen.
_LONGEST_TAKING_IN_SECONDS = 5.0
# A program that has told its end writes its totals and is gone.
_LONGEST_END_SECONDS = 5.0


class Hook:
    """What a hook knows: the program that called, where it is, and what it was told."""

    def __init__(self, program: str, payload: bytes, environment: "Mapping[str, str]") -> None:
        self.program = program
        self._payload = payload
        self._environment = environment
        self.told: dict[str, Any] = _object(payload)
        event = self.told.get("hook_event_name")
        self.event = event if isinstance(event, str) else ""

    @property
    def is_judged(self) -> bool:
        """Whether the event is a tool call, or can't be read and so may be one."""
        return self.event in _JUDGED or not self.event

    def answer(self, out: "IO[str]", err: "IO[str]") -> int:
        """Judge and record the event, and answer it. A blocked call stays blocked when it can't be recorded."""
        unplaced: Exception | None = None
        place = None
        try:
            place = self._place()
        except Exception as problem:  # noqa: BLE001
            # A log that can't be used is no reason to leave the call unjudged.
            unplaced = problem
        if place is None and unplaced is None:
            return 0
        denied = self._why_blocked()
        if denied:
            err.write(denied + "\n")
            err.flush()
        try:
            if place is None:
                raise unplaced or LookupError("there is no log")
            self._record(place, denied, out)
        except Exception as problem:
            if not denied:
                raise
            err.write(f"It is not on record: {problem}\n")
        return HELD if denied else 0

    def _record(self, place: "LogLocation", denied: str | None, out: "IO[str]") -> None:
        from decklog.location.locate import spool_folder

        spool = Spool(spool_folder(place))
        captured = None if denied else self._capture()
        facts = self._facts(denied) | ({"provenance": captured} if captured else {})
        spool.put(self.program, self._session, facts, self._told_with_process())
        if not place.exists:
            # The next event takes this one in once the log's file is back.
            return
        if self.event == "SessionStart":
            self._prime(place, spool, out)
        elif self.event in _CRITICISED and self._asks_for_critique():
            self._criticise(place, out)
        elif self.event not in _ONLY_RECORDED and not (self.event in _JUDGED and spool.is_being_taken_in):
            # Who finds that nobody is at it starts a process: for that moment others took this one for it.
            _apart(lambda: self._take_in(place, spool), spool)

    def _capture(self) -> "dict[str, Any] | None":
        """Store what the event's call changes, as git objects; where there is no repository nothing is imported for it."""
        from decklog.location.locate import repository

        if self.event not in _MAY_CHANGE_FILES or repository(self._root) is None:
            return None
        from decklog.hooks.capturing import capture, is_captured

        if not is_captured(self.told):
            return None
        return capture(self.told, self._root, f"{self.program}:{self._session}", self._process)

    def _process(self) -> str | None:
        from decklog.core.processes import Identity

        process = Identity.of(self._program_pid())
        return None if process is None else process.as_text()

    def _told_with_process(self) -> bytes:
        """Return the payload. That of a start names the program's process, so that a later look sees whether it was killed."""
        if self.event != "SessionStart":
            return self._payload
        process = self._process()
        return self._payload if process is None else json.dumps({**self.told, "process": process}).encode()

    def _program_pid(self) -> int:
        """Return the process id of the program: the one it names, or the process that called this hook."""
        from decklog.agents.context.worker import calling_process

        # A program that was started by Claude Code inherits its variables.
        named = self._environment.get("CLAUDE_PID", "") if self.program == "claude" else ""
        return int(named) if named.isdigit() else calling_process().number

    def _prime(self, place: "LogLocation", spool: Spool, out: "IO[str]") -> None:
        """Take in what waits, and tell the agent where it stands: what is printed here becomes a part of its conversation."""
        from decklog.agents.context.claims import RememberedClaims, folder_beside
        from decklog.agents.context.worker import worker

        who = worker(None, self._environment)
        claim = RememberedClaims(folder_beside(place), who).load()
        mine = claim if claim is not None and claim.is_open else None
        run_id = self._environment.get("DECKLOG_RUN_ID") or (mine and mine.run_id) or None
        task_id = self._environment.get("DECKLOG_TASK_ID") or (mine and mine.task_id) or None
        with place.open(busy_seconds=_PATIENCE_SECONDS) as log:
            since = self._last_here(log)
        taking_in = _apart(lambda: self._take_in(place, spool), spool)
        is_taken_in = _wait_for(taking_in, _LONGEST_TAKING_IN_SECONDS)
        asked = {"worker": who.name, "run_id": run_id, "task_id": task_id, "since": since, "folder": self._root}
        out.write(_situation(place, asked, is_held=not is_taken_in))

    def _asks_for_critique(self) -> bool:
        """Return whether it may be worth to look: nearly no repository asks for it, and every step of an agent comes by here."""
        try:
            with open(os.path.join(self._root, "decklog.toml"), "rb") as file:
                return b"[critique]" in file.read(_LONGEST_SETTINGS)
        except OSError:
            return False

    def _criticise(self, place: "LogLocation", out: "IO[str]") -> None:
        """Have what a tool has just changed looked at, and tell the agent what is surely wrong with it."""
        from decklog.hooks.critique import said_of

        with place.open(busy_seconds=_PATIENCE_SECONDS) as log:
            lines = said_of(log, self.told, self._root, session=f"{self.program}:{self._session}", named=self._facts(None))
        if lines:
            told = {"hookEventName": self.event, "additionalContext": "\n".join(lines)}
            out.write(json.dumps({"hookSpecificOutput": told}) + "\n")

    def _last_here(self, log: "Decklog") -> "datetime | None":
        from decklog.agents.entries import run_of_session
        from decklog.core.errors import NotFound

        try:
            found = log.journal.find(run_of_session(self.program, self._session), limit=1)
        except NotFound:
            return None
        return found[0].at if found else None

    def _take_in(self, place: "LogLocation", spool: Spool) -> None:
        _take_in(place, spool, closes_killed=self.event not in _JUDGED)
        program = self._environment.get("CLAUDE_PID", "")
        if self.event == "SessionEnd" and program.isdigit() and _is_gone(int(program)):
            told = {**self.told, "hook_event_name": "ProgramGone"}
            spool.put(self.program, self._session, self._facts(None), json.dumps(told).encode())
            _take_in(place, spool)

    @property
    def _session(self) -> str:
        session = self.told.get("session_id")
        return session if isinstance(session, str) and session else "unread"

    def _place(self) -> "LogLocation | None":
        """Find the log of the session's folder; where there is none, nothing is recorded."""
        from decklog.location.locate import of_session

        # Not by the folder that a command has led the session to: that one may have no log, and so no guard.
        return of_session(self._root, self._environment)

    def _facts(self, denied: str | None) -> "dict[str, Any]":
        named = {"run": "DECKLOG_RUN_ID", "task": "DECKLOG_TASK_ID"}
        facts = {fact: self._environment[name] for fact, name in named.items() if self._environment.get(name)}
        facts["session"] = self._session
        return {**facts, "denied": denied} if denied else facts

    @property
    def _root(self) -> str:
        """The folder that the session is about. A program that another one started has inherited the other's variables."""
        named = self._environment.get("CLAUDE_PROJECT_DIR") if self.program == "claude" else None
        told = self.told.get("cwd")
        return named or (told if isinstance(told, str) and told else os.getcwd())

    def _why_blocked(self) -> str | None:
        """Return why a call is blocked, None if it is not. A call that can't be judged is blocked."""
        if not self.is_judged:
            return None
        if not self.event:
            return "Decklog can't read this event, so it is blocked."
        try:
            from decklog.hooks.judging import held

            return held(self.told, self._root)
        except Exception as problem:  # noqa: BLE001
            hint = getattr(problem, "hint", None)
            return f"Decklog could not judge this call, so it is blocked: {problem}" + (f"\n  {hint}" if hint else "")


_USAGE = """Usage: decklog hook claude|codex|gemini|opencode

  Put one event of an agent's program on record, which comes as JSON on standard input. Programs call it themselves:
  `decklog setup claude` has Claude Code do so.
"""


def run(words: list[str]) -> int:
    """Answer one event for the program that is named."""
    if words in (["--help"], ["-h"]):
        sys.stdout.write(_USAGE)
        return 0
    # Who calls it in a wrong way would be held by the exit that all other commands have for that.
    if len(words) != 1 or words[0].startswith("-") or as_name(words[0]) != words[0]:
        sys.stderr.write(f"decklog hook: one program is to be named\n{_USAGE}")
        return 1
    hook = Hook(words[0], sys.stdin.buffer.read(), os.environ)
    try:
        return hook.answer(sys.stdout, sys.stderr)
    except Exception as problem:  # noqa: BLE001
        # The program shows it in its own log; an exit with anything but 2 lets the agent go on.
        hint = getattr(problem, "hint", None)
        sys.stderr.write(f"decklog hook: {problem}\n" + (f"  {hint}\n" if hint else ""))
        return UNRECORDED if hook.is_judged else 1


def _object(payload: bytes) -> "dict[str, Any]":
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _take_in(place: "LogLocation", spool: Spool, *, closes_killed: bool = False) -> None:
    from decklog.agents.intake import take_in
    from decklog.agents.interrupted import close_killed_sessions

    with place.open() as log:
        take_in(log, spool)
        if closes_killed:
            close_killed_sessions(log, spool)


def _situation(place: "LogLocation", asked: "dict[str, Any]", *, is_held: bool) -> str:
    """Return where an agent stands; while somebody holds the log, only by reading it, which waits for nobody."""
    from decklog.agents.prime import Prime
    from decklog.core.errors import Busy

    try:
        with place.open(busy_seconds=_PATIENCE_SECONDS, read_only=is_held) as log:
            return Prime(log, **asked).text()
    except Busy:
        if is_held:
            raise
    return _situation(place, asked, is_held=True)


def _wait_for(child: int, seconds: float) -> bool:
    """Wait until a process that was started here has ended, or long enough; say whether it has."""
    import time

    end = time.monotonic() + seconds
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def _is_gone(process: int) -> bool:
    """Wait for a process to end, for a while."""
    import time

    end = time.monotonic() + _LONGEST_END_SECONDS
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        time.sleep(0.05)
    return False


def _apart(work: "Callable[[], None]", spool: Spool) -> int:
    """Do work in a process of its own, so that the agent need not wait for it, nor can end it with the hook; give its number."""
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
        # The events wait on, and the next one takes them in; `decklog doctor agents` tells why they do.
        spool.say_trouble(problem)
    finally:
        os._exit(0)
