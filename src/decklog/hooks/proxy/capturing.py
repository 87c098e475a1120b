"""Capture the edits of an agent behind the proxy, in a separate thread.

Before the relay passes on a message that may start a change, it waits until the affected files are stored. This wait has a
limit; nothing else waits for a capture.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from decklog.agents.acp import tool_calls
from decklog.agents.acp.exchange import (
    AGENT,
    EDITOR,
    PERMISSION,
    PROMPT,
    RUN_COMMAND,
    UPDATE,
    WRITE_FILE,
    AcpMessage,
    Message,
    call_of,
    params_of,
    result_of,
)
from decklog.agents.texts import dict_of, list_of
from decklog.hooks.capturing import file_call, is_switched_off
from decklog.hooks.judging import is_read_only_command
from decklog.location.locate import repository
from decklog.provenance.capture import Capture
from decklog.provenance.git import GitRepository
from decklog.provenance.tool_calls import FileCall

# Records captured changes: the session, the changes, and the id of the tool call.
Put = Callable[[str, dict[str, Any], str | None], None]

_Replacements = dict[str, list[tuple[bytes, bytes]]]
# If git takes longer, the edits are not captured; the session is not delayed further.
LONGEST_WAIT_SECONDS = 2.0
_MOST_CALLS = 1000
_WAIT_FOR_COMMAND, _RELEASE = "terminal/wait_for_exit", "terminal/release"
_REQUESTS = frozenset([PERMISSION, WRITE_FILE, RUN_COMMAND, _WAIT_FOR_COMMAND, _RELEASE])
# Messages that are delayed until the capture is done: the change, or the next one, can't begin before they arrive.
_DELAYED = frozenset([(EDITOR, PROMPT), (AGENT, WRITE_FILE), (AGENT, RUN_COMMAND), (EDITOR, PERMISSION), (EDITOR, WRITE_FILE)])
_SHELL, _TOOL = "shell", "tool"


@dataclass(frozen=True)
class _Job:
    sender: str
    message: Message
    method: str
    is_answer: bool
    session: str
    program: str
    root: str
    at: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)


@dataclass
class _OpenCapture:
    """A capture in progress: how the call changes files, and the tool call that contains it."""

    kind: str
    target: FileCall | None
    call: str | None
    paths: frozenset[str] = frozenset()


class ProxyCapture:
    """Captures the file changes of the agent of one connection.

    `put` records a capture, `is_recorded` returns whether a folder's sessions are recorded, `process` names the agent's process.
    """

    def __init__(self, put: Put, is_recorded: Callable[[str], bool], process: str | None) -> None:
        self._put = put
        self._is_recorded = is_recorded
        self._process = process
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        # Calls that have not ended, and captures in progress, by session and name.
        self._calls: dict[tuple[str, str], tool_calls.Call] = {}
        self._begun: dict[tuple[str, str], _OpenCapture] = {}
        # Requests of the agent, by their ids.
        self._asked: dict[str, Message] = {}
        self._terminals: dict[tuple[str, str], str] = {}
        # After a capture that took too long, messages pass without a wait until the queue is empty.
        self._is_behind = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Start the thread; it inherits the caller's signal mask."""
        self._thread.start()

    def see(self, sender: str, message: Message, seen: AcpMessage, program: str, root: str) -> None:
        """Queue a message before it is passed on; wait, up to a limit, until the files that it may change are stored."""
        if seen.session is None or not _is_about_files(sender, message, seen) or not self._is_recorded(root):
            return
        job = _Job(sender, message, seen.method, seen.is_answer, seen.session, program, root)
        self._jobs.put(job)
        if (sender, seen.method) in _DELAYED and not self._is_behind:
            self._is_behind = not job.done.wait(LONGEST_WAIT_SECONDS)

    def close(self) -> None:
        """Wait for the captures in progress, up to a limit."""
        self._jobs.put(None)
        self._thread.join(LONGEST_WAIT_SECONDS)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if repository(job.root) is not None and not is_switched_off(job.root):
                    self._take(job)
            except Exception as problem:  # noqa: BLE001
                self._put(job.session, {"failed": f"{type(problem).__name__}: {problem}"[:500]}, None)
            finally:
                job.done.set()
                self._is_behind = self._is_behind and not self._jobs.empty()

    def _take(self, job: _Job) -> None:
        if job.method == PROMPT:
            self._capture_turn(job)
        elif job.is_answer:
            self._answered(job)
        elif job.method == UPDATE:
            self._handle_update(job, dict_of(params_of(job.message).get("update")) or params_of(job.message))
        else:
            self._handle_request(job)

    # Turns

    def _capture_turn(self, job: _Job) -> None:
        capture = self._capture(job, job.root)
        if capture is None:
            return
        if job.is_answer:
            for one in [one for one in self._begun if one[0] == job.session]:
                del self._begun[one]
            capture.end_turn()
        self._put(job.session, capture.snapshot("end" if job.is_answer else "start"), None)

    # Tool calls

    def _handle_update(self, job: _Job, update: dict[str, Any]) -> None:
        name = str(update.get("toolCallId"))
        place = (job.session, name)
        call = tool_calls.merged(self._calls.pop(place, None), update)
        if call.get("status") in tool_calls.ENDED:
            self._end(job, name)
            return
        self._calls[place] = call
        if len(self._calls) > _MOST_CALLS:
            self._calls.pop(next(iter(self._calls)))
        if tool_calls.is_described(call) and not call.get("asked"):
            self._begin_call(job, name, call)

    def _begin_call(self, job: _Job, name: str, call: tool_calls.Call) -> None:
        kind = _find_change_kind(name, call)
        if kind is None or (job.session, name) in self._begun:
            return
        paths = [os.path.join(job.root, path) for path in tool_calls.paths_of(call)] if kind == _TOOL else []
        self._begin(job, name, kind, name, paths, tool_calls.arguments_of(call), _find_replacements(job.root, call))

    # Requests of the agent, and their answers

    def _handle_request(self, job: _Job) -> None:
        params, number = params_of(job.message), str(job.message.get("id"))
        if len(self._asked) > _MOST_CALLS:
            self._asked.pop(next(iter(self._asked)))
        self._asked[number] = job.message
        if job.method == PERMISSION:
            self._wait_for_permission(job, call_of(job.message))
        elif job.method == WRITE_FILE and isinstance(path := params.get("path"), str):
            whole = os.path.join(job.root, path)
            # The open tool call that names this file.
            about = (one.call for (session, _), one in self._begun.items() if session == job.session and whole in one.paths)
            self._begin(job, f"write:{number}", _TOOL, next(about, None), [whole], {"content": params.get("content")})
        elif job.method == RUN_COMMAND and not any(
            session == job.session and one.kind == _SHELL for (session, _), one in self._begun.items()
        ):
            self._begin(job, f"terminal:{number}", _SHELL, None, [], {})
        elif job.method == _RELEASE:
            self._end(job, self._terminals.pop((job.session, str(params.get("terminalId"))), ""))

    def _answered(self, job: _Job) -> None:
        number = str(job.message.get("id"))
        request = self._asked.pop(number, {})
        if job.method == PERMISSION and _is_allowed(request, job.message):
            place = (job.session, str(call_of(request).get("toolCallId")))
            if (call := self._calls.get(place)) is not None:
                self._begin_call(job, place[1], call)
        elif job.method == WRITE_FILE:
            self._end(job, f"write:{number}")
        elif job.method == RUN_COMMAND:
            self._terminals[job.session, str(result_of(job.message).get("terminalId"))] = f"terminal:{number}"
        elif job.method == _WAIT_FOR_COMMAND:
            self._end(job, self._terminals.get((job.session, str(params_of(request).get("terminalId"))), ""))

    def _wait_for_permission(self, job: _Job, request: tool_calls.Call) -> None:
        """Discard the capture of a call that waits for permission: until then a person may change files."""
        place = (job.session, str(request.get("toolCallId")))
        call = tool_calls.merged(self._calls.get(place), {**request, "status": None})
        self._calls[place] = {**call, "asked": True}
        if (begun := self._begun.pop(place, None)) is not None and (capture := self._capture_of(job, begun)) is not None:
            capture.forget(place[1])

    # Captures

    def _begin(
        self,
        job: _Job,
        name: str,
        kind: str,
        call: str | None,
        paths: list[str],
        arguments: dict[str, Any],
        replacements: _Replacements | None = None,
    ) -> None:
        repo = GitRepository.find(os.path.dirname(paths[0]) if paths else job.root)
        if repo is None:
            return
        target = file_call(repo, paths, {}, arguments) if kind == _TOOL else None
        if target is not None and not target.paths:
            return
        self._begun[job.session, name] = begun = _OpenCapture(kind, target, call, frozenset(paths))
        capture = self._capture_of(job, begun)
        assert capture is not None
        named = {repo.relative(path): changes for path, changes in (replacements or {}).items()}
        capture.begin(name, target, {path: changes for path, changes in named.items() if path is not None})

    def _end(self, job: _Job, name: str) -> None:
        begun = self._begun.pop((job.session, name), None)
        capture = self._capture_of(job, begun) if begun is not None else None
        if begun is None or capture is None:
            return
        if time.monotonic() - job.at > LONGEST_WAIT_SECONDS:
            # Others may have changed files since the call ended.
            capture.forget(name)
            self._put(job.session, {"failed": "git took too long"}, begun.call)
            return
        found = capture.end(name, begun.target)
        if begun.target is not None:
            capture.update_index(begun.target.paths)
        if found is not None:
            self._put(job.session, {**found, "kind": begun.kind}, begun.call)

    def _capture_of(self, job: _Job, begun: _OpenCapture) -> Capture | None:
        return self._capture(job, os.path.dirname(min(begun.paths)) if begun.paths else job.root)

    def _capture(self, job: _Job, folder: str) -> Capture | None:
        repo = GitRepository.find(folder)
        return None if repo is None else Capture(repo, f"{job.program}:{job.session}", process=self._process)


def _is_about_files(sender: str, message: Message, seen: AcpMessage) -> bool:
    """Return whether a message begins or ends something that may change files."""
    if seen.method == PROMPT:
        return sender == (AGENT if seen.is_answer else EDITOR)
    if seen.is_answer:
        return sender == EDITOR and seen.method in _REQUESTS
    update = dict_of(params_of(message).get("update")) or params_of(message)
    is_call = seen.method == UPDATE and update.get("sessionUpdate") in ("tool_call", "tool_call_update")
    return sender == AGENT and (is_call or seen.method in _REQUESTS)


def _find_change_kind(name: str, call: tool_calls.Call) -> str | None:
    """Return how a call changes files: the named ones (`tool`), any (`shell`), or none (None)."""
    command = tool_calls.command_of(call)
    if command is None and tool_calls.writes(call):
        return _TOOL if tool_calls.paths_of(call) else _SHELL
    if command is not None:
        return None if isinstance(command, str) and is_read_only_command(command) else _SHELL
    return _SHELL if call.get("kind") == "execute" or tool_calls.tool_of(name, call).startswith("mcp__") else None


def _find_replacements(root: str, call: tool_calls.Call) -> _Replacements:
    """Return the texts that a call replaces in each file."""
    found: _Replacements = {}
    for diff in tool_calls.diffs_of(call):
        path, old, new = diff.get("path"), diff.get("oldText") or "", diff.get("newText")
        if isinstance(path, str) and isinstance(old, str) and isinstance(new, str):
            texts = (old.encode(errors="surrogatepass"), new.encode(errors="surrogatepass"))
            found.setdefault(os.path.join(root, path), []).append(texts)
    return found


def _is_allowed(request: Message, answer: Message) -> bool:
    """Return whether an answer grants the permission request of a call."""
    chosen = dict_of(result_of(answer).get("outcome")).get("optionId")
    options = list_of(params_of(request).get("options"))
    return any(str(one.get("kind")).startswith("allow") and one.get("optionId") == chosen for one in options)
