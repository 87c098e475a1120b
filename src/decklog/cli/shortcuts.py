"""Run a shortcut, such as `decklog next`, from its arguments."""

import os
import sys
from typing import TYPE_CHECKING, Any

from decklog.agents.caller import claims_folder_of, worker
from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.exits import print_json
from decklog.cli.parameters import Parameter, list_function_parameters, parse_arguments
from decklog.shortcuts.caller import Caller, ShortcutAnswer, ShortcutContext, Surface
from decklog.shortcuts.verbs import VERBS

if TYPE_CHECKING:
    from decklog import Decklog
    from decklog.location.locate import LogLocation


def common_options(
    _: Caller, *, as_: str | None = None, run: str | None = None, task: str | None = None, fence: int | None = None
) -> None:
    """Define the parameters of every shortcut."""


def message_options(_: Caller, *, from_: str | None = None, plain: bool = False) -> None:
    """Define further parameters of the shortcuts that people use to write to agents."""


COMMON = list_function_parameters(common_options)
# Shortcuts that people also use, to write to agents.
_MESSAGE_OPTIONS = {name: list_function_parameters(message_options) for name in ("ask", "note")}


def shortcut_parameters(name: str) -> list[Parameter]:
    """List the parameters of a shortcut, the common ones last."""
    return [*list_function_parameters(VERBS[name]), *_MESSAGE_OPTIONS.get(name, ()), *COMMON]


def run_shortcut(call: Invocation) -> int:
    """Run a shortcut, print its answer and return the exit code."""
    name, *words = call.words
    known = shortcut_parameters(name)
    flags = {parameter.flag for parameter in known}
    words = call.take_agent(words, flags)
    if name == "ask":
        words = call.take_key(words, flags)
    try:
        given = parse_arguments(known, words)
    except WrongUsage as problem:
        raise _with_example(name, words, problem) from None
    shared = {parameter.name: given.pop(parameter.name, None) for parameter in COMMON}
    place = call.place()
    place.must_exist()
    if name in _MESSAGE_OPTIONS:
        about = {parameter.name: given.pop(parameter.name, None) for parameter in _MESSAGE_OPTIONS[name]}
        if about["from_"] is not None or _is_typed_by_person(call, place, given, shared):
            return _send_message(call, name, given, shared, about)
    with place.open() as log:
        return _show_answer(VERBS[name](_build_caller(call, place, log, shared), **given), as_json=call.json)


def _build_caller(call: Invocation, place: "LogLocation", log: "Decklog", options: dict[str, Any]) -> Caller:
    who = worker(options["as_"])
    named = {"agent": call.agent, "agent_id": call.agent_id, "run_id": options["run"], "task_id": options["task"]}
    context = ShortcutContext({**named, "fence": options["fence"]}, os.environ)
    if options["fence"] is not None and not context.task_id:
        raise WrongUsage("--fence needs --task", hint="Add --task TASK, or leave it out.")
    return Caller(log, who, claims_folder_of(place), context, _SURFACE)


def _is_typed_by_person(call: Invocation, place: "LogLocation", given: dict[str, Any], shared: dict[str, Any]) -> bool:
    """Return whether a person writes to the agents: at a terminal, without options for agents."""
    if not sys.stdin.isatty() or len(given) > 1 or any(shared.values()) or call.agent is not None:
        return False
    from decklog.agents.caller import StoredClaims, is_agent

    return not is_agent() and StoredClaims(claims_folder_of(place), worker(None)).load() is None


def _send_message(call: Invocation, name: str, given: dict[str, Any], shared: dict[str, Any], about: dict[str, Any]) -> int:
    text = given.pop("question" if name == "ask" else "text")
    key = given.pop("key", None)
    agents = [*given, *(option for option in ("as_", "fence") if shared[option] is not None)]
    if agents:
        flag = agents[0].rstrip("_").replace("_", "-")
        raise WrongUsage(f"--{flag} is for agents, and --from for people", hint="Leave one of them out.")
    from decklog.cli.conversation import send_message

    return send_message(call, name, text, run_id=shared["run"], task_id=shared["task"], key=key, **about)


def _format_option(name: str, value: object) -> str:
    return f"--{name.rstrip('_').replace('_', '-')} {value}"


def _format_command(verb: str, *words: str, **options: object) -> str:
    return " ".join(("decklog", verb, *words, *(_format_option(name, value) for name, value in options.items())))


_SURFACE = Surface(_format_command, _format_option, WrongUsage, read_input=lambda: sys.stdin.read(), reads_files=True)


def _show_answer(answer: ShortcutAnswer, *, as_json: bool) -> int:
    """Print an answer and return its exit code."""
    if as_json:
        more = {"reason": answer.reason, "notes": answer.notes, "warnings": answer.warnings}
        print_json({"ok": True, "data": answer.data, **{name: value for name, value in more.items() if value}})
        return answer.code
    terminal.print_text("\n".join([*answer.notes, answer.text]))
    for warning in answer.warnings:
        sys.stderr.write(f"warning: {terminal.escape_for_terminal(warning, sys.stderr)}\n")
    return answer.code


def _with_example(name: str, words: list[str], problem: WrongUsage) -> WrongUsage:
    """Return the error with an example of the quoted text, if blanks split it into several arguments."""
    plain = [word for word in words if not word.startswith("-")]
    if problem.message.startswith("unexpected argument") and len(plain) == len(words):
        return WrongUsage(problem.message, hint=f'Put the text in quotes: decklog {name} "{" ".join(plain)}"')
    return problem
