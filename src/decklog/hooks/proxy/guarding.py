"""Policy decisions about an agent's requests to its editor, before a person sees them."""

from collections.abc import Iterator

from decklog.agents.acp import tool_calls
from decklog.agents.acp.exchange import (
    PERMISSION,
    READ_FILE,
    RUN_COMMAND,
    UPDATE,
    WRITE_FILE,
    Message,
    answer,
    call_of,
    params_of,
    refusal,
)
from decklog.agents.texts import dict_of, list_of
from decklog.hooks.judging import decide, find_call_files, read_command, write_command

Command = str | list[str]

_MOST_CALLS = 1000
# Kinds of calls that change nothing.
_HARMLESS = frozenset(["read", "search", "think", "switch_mode"])


class ProxyGuard:
    """Judge of an agent's requests. A request may contain only the id of a call that was reported before."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], tool_calls.Call] = {}

    def see(self, message: Message) -> None:
        """Store the call in an update."""
        params = params_of(message)
        update = dict_of(params.get("update")) or params
        if message.get("method") == UPDATE and update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            self._take(str(params.get("sessionId")), update)

    def _take(self, session: str, update: tool_calls.Call) -> tool_calls.Call:
        place = (session, str(update.get("toolCallId")))
        call = tool_calls.merged(self._calls.pop(place, None), update)
        if call.get("status") not in tool_calls.ENDED:
            self._calls[place] = call
        if len(self._calls) > _MOST_CALLS:
            self._calls.pop(next(iter(self._calls)))
        return call

    def block_reason(self, message: Message, root: str) -> str | None:
        """Return why a request is blocked; None if it needs no decision, or a person may decide."""
        found = (decide(command, root, cwd or root) for command, cwd in self._commands(message))
        return next((reason for decision, reason, _ in found if decision == "deny"), None)

    def decision(self, request: Message, root: str) -> tuple[str, str, dict[str, str]]:
        """Return the policy's decision about a permission request, and the reason; `ask` if it can't judge.

        The third value has the rule and its reason, if a rule decided.
        """
        found = [decide(command, root, cwd or root) for command, cwd in self._commands(request)]
        for worst in ("deny", "ask"):
            if found_worst := [one for one in found if one[0] == worst]:
                return found_worst[-1]
        return ("allow", "", {}) if _is_known(self.call(request)) else ("ask", "its effects are not known", {})

    def call(self, request: Message) -> tool_calls.Call:
        """Return the merged data of the call in a permission request."""
        return self._take(str(params_of(request).get("sessionId")), call_of(request))

    def _commands(self, message: Message) -> Iterator[tuple[Command, str | None]]:
        """Yield the commands of a request: those that it runs, and equivalents for the files it accesses."""
        params = params_of(message)
        path, cwd = params.get("path"), params.get("cwd")
        match message.get("method"):
            case "session/request_permission":
                yield from _call_commands(self._take(str(params.get("sessionId")), call_of(message)))
            case "fs/write_text_file" if isinstance(path, str):
                yield write_command(path), None
            case "fs/read_text_file" if isinstance(path, str):
                yield read_command(path), None
            case "terminal/create":
                words = [str(params.get("command")), *map(str, params.get("args") or ())]
                # A command without arguments is a shell command line.
                yield words if len(words) > 1 else words[0], cwd if isinstance(cwd, str) else None


JUDGED = frozenset([PERMISSION, WRITE_FILE, READ_FILE, RUN_COMMAND])


def _call_commands(call: tool_calls.Call) -> Iterator[tuple[Command, str | None]]:
    raw = dict_of(call.get("rawInput"))
    cwd = raw.get("cwd") or raw.get("workdir")
    command = tool_calls.command_of(call)
    if command is not None:
        yield command, cwd if isinstance(cwd, str) else None
    # An editing tool may use `command` for the name of its operation.
    if tool_calls.writes(call):
        yield from ((write_command(path), None) for path in tool_calls.paths_of(call))
    elif command is None:
        read, written = find_call_files(tool_calls.tool_of("", call), raw)
        yield from ((write_command(path), None) for path in written)
        yield from ((read_command(path), None) for path in dict.fromkeys((*read, *tool_calls.paths_of(call))))


def _is_known(call: tool_calls.Call) -> bool:
    """Return whether the effects of a call are known: it runs a command, writes or reads files, or changes nothing."""
    if tool_calls.command_of(call) is not None:
        return True
    if tool_calls.writes(call):
        return bool(tool_calls.paths_of(call))
    return call.get("kind") in _HARMLESS or tool_calls.tool_of("", call) == "Read"


def denial(request: Message, reason: str) -> Message:
    """Return the answer to a blocked request: a reject option if it has one, otherwise a cancellation or an error."""
    if request.get("method") != PERMISSION:
        return refusal(request, reason)
    options = list_of(params_of(request).get("options"))
    for kind in ("reject_once", "reject_always"):
        for option in options:
            if option.get("kind") == kind:
                return answer(request, {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}})
    return answer(request, {"outcome": {"outcome": "cancelled"}})
