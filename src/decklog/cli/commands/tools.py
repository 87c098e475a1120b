"""Judge commands and paths, use an agent's tools, and redact text."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from typing import IO, Any

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.exits import print_json
from decklog.cli.groups import SuggestingGroup
from decklog.cli.show import show
from decklog.core.errors import Denied
from decklog.guard.calls.tool import to_data
from decklog.guard.files.path_check import DEFAULT, resolve
from decklog.guard.policy import Policy
from decklog.guard.policy import judge as decide
from decklog.guard.toolbox.catalogue import TOOLS
from decklog.guard.toolbox.toolbox import Toolbox
from decklog.hooks.capturing import critic_for
from decklog.hooks.judging import find_gate_refusal
from decklog.redaction import explain as explain_text
from decklog.redaction import redact as redact_text

_EXITS = {"allow": 0, "ask": 7, "deny": 6}


@click.group(cls=SuggestingGroup)
def tools() -> None:
    """Judge commands and paths, and use an agent's tools."""


@tools.command()
@click.argument("file", type=click.File("r", encoding="utf-8", errors="replace"), default="-")
@click.option("--jsonl", is_flag=True, help='a command a line as a JSON string, a list of arguments or {"command": …}')
@click.option("--policy", metavar="FILE", help="a policy file laid over the shipped one")
@click.option("--root", metavar="FOLDER", help="the absolute path of the repository")
@click.option("--exit-code", is_flag=True, help="end with 6 when anything is denied, 7 when anything must be asked")
@click.pass_obj
def judge(call: Invocation, file: IO[str], jsonl: bool, policy: str | None, root: str | None, exit_code: bool) -> int:
    """Judge each command: allow, ask or deny, and the rule; with --json also the reason.

    Commands come one a line from FILE or stdin. Nothing is executed.
    """
    rules = Policy.load(policy) if policy else Policy.default()
    answers = _AnswerPrinter(call, jsonl)
    worst = 0
    for command in _read_commands(file, jsonl):
        verdict = decide(command, rules, root=root)
        decision = verdict.decision.value
        worst = worst if (worst == _EXITS["deny"] or decision == "allow") else _EXITS[decision]
        answer = {"command": command, "decision": decision, "rule": verdict.rule, "reason": verdict.reason}
        answers.give(answer, f"{decision}\t{verdict.rule}\t{_command_line(command)}")
    answers.end()
    return worst if exit_code else 0


def _read_commands(file: IO[str], jsonl: bool) -> Iterator[str | list[str]]:
    for number, line in enumerate(file, 1):
        text = line.rstrip("\n")
        if text.strip():
            yield _parse_command(number, text) if jsonl else text


def _parse_command(number: int, line: str) -> str | list[str]:
    try:
        value = json.loads(line)
    except ValueError:
        raise WrongUsage(f"line {number} is not JSON") from None
    command = value.get("command") if isinstance(value, dict) else value
    if isinstance(command, (str, list)):
        return command
    raise WrongUsage(f"line {number} holds no command", hint='Give a string, a list of strings, or {"command": …}.')


def _command_line(command: str | list[str]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


class _AnswerPrinter:
    """Prints answers as they come, one per line; with --json, all in one envelope at the end."""

    def __init__(self, call: Invocation, jsonl: bool) -> None:
        self._jsonl = jsonl
        self._all: list[dict[str, Any]] | None = [] if call.json and not jsonl else None

    def give(self, answer: dict[str, Any], line: str) -> None:
        if self._all is not None:
            self._all.append(answer)
        elif self._jsonl:
            print_json(answer)
        else:
            sys.stdout.write(line + "\n")

    def end(self) -> None:
        if self._all is not None:
            show(self._all, as_json=True)


@tools.command("check-path")
@click.argument("paths", nargs=-1)
@click.option("--root", default=".", metavar="FOLDER", help="the folder the paths must stay in, default here")
@click.option("--op", type=click.Choice(["read", "write", "list"]), default="read", help="default read")
@click.option("--allowed", multiple=True, metavar="GLOB", help="what may be written; may be given several times")
@click.option("--forbidden", multiple=True, metavar="GLOB", help="what may not be written")
@click.option("--jsonl", is_flag=True, help="a JSON string a line in, a JSON object a line out")
@click.option("--exit-code", is_flag=True, help="end with 4 when any path is refused")
@click.pass_obj
def check_path(
    call: Invocation,
    paths: tuple[str, ...],
    root: str,
    op: str,
    allowed: tuple[str, ...],
    forbidden: tuple[str, ...],
    jsonl: bool,
    exit_code: bool,
) -> int:
    """Check whether a tool may use each path under a root, and resolve it; without PATHS, one a line from stdin."""
    rules = DEFAULT.of_task(allowed, forbidden)
    answers = _AnswerPrinter(call, jsonl)
    refused = False
    for path in paths or _read_paths(jsonl):
        answer: dict[str, Any] = {"path": path, "allowed": True, "rule": None}
        try:
            answer["leads_to"] = str(resolve(root, path, op, rules=rules))
        except Denied as problem:
            refused = True
            answer |= {"allowed": False, "rule": problem.details.get("rule"), "reason": problem.message}
        word = "allow" if answer["allowed"] else "deny"
        answers.give(answer, f"{word}\t{answer['rule'] or '-'}\t{path!r}"[:4000])
    answers.end()
    return 4 if refused and exit_code else 0


def _read_paths(jsonl: bool) -> Iterator[str]:
    for number, line in enumerate(sys.stdin, 1):
        text = line.rstrip("\n")
        if jsonl and text.strip():
            value = _parse_command(number, text)
            yield str(value)
        elif text:
            yield text


@tools.command("list")
@click.pass_obj
def list_tools(call: Invocation) -> int:
    """List the tools and what each does; --json gives the schemas that a model needs."""
    from decklog.review.agent_tool import REVIEW

    every = (*TOOLS, REVIEW)
    rows = [{"tool": tool.name, "changes": tool.changes, "does": tool.summary} for tool in every]
    return show(every if call.json else rows, as_json=call.json)


@tools.command("call")
@click.argument("run_id", metavar="RUN")
@click.argument("tool")
@click.argument("arguments", default="{}", metavar="JSON")
@click.option("--root", default=".", metavar="FOLDER", help="the folder to work in, default here")
@click.option("--task", metavar="ID", help="the task whose allowed paths hold")
@click.option("--step", metavar="NAME", help="do it once under this name, and give the first result from then on")
@click.option("--agent", metavar="NAME", help="who calls")
@click.pass_obj
def call_tool(
    call: Invocation, run_id: str, tool: str, arguments: str, root: str, task: str | None, step: str | None, agent: str | None
) -> int:
    """Call a tool for a run and show its result; JSON holds the arguments, `-` reads them from stdin.

    \b
    Example:
      decklog tools call RUN run '{"command": ["pytest", "-q"]}' --step tests-1
    """
    from decklog.review.agent_tool import REVIEW

    given = _parse_arguments(sys.stdin.read() if arguments == "-" else arguments)
    agent = agent or os.environ.get("DECKLOG_AGENT")
    with call.open() as log:
        gate = partial(find_gate_refusal, log=log)
        critic = critic_for(log, root, run_id=run_id, task_id=task)
        with Toolbox(log, run_id, root=root, task=task, agent=agent, gate=gate, critic=critic, tools=[REVIEW]) as box:
            result = to_data(box.call(tool, given, step=step))
            return show(result, as_json=call.json, warnings=box.critique)


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise WrongUsage("the arguments are not a JSON object", hint='Give them as {"name": value}.')
    return given


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--jsonl", is_flag=True, help="one JSON string a line, in and out")
@click.option("--explain", is_flag=True, help="print what was found and the rule or features that decided, instead of the text")
def redact(file: IO[str], jsonl: bool, explain: bool) -> int:
    """Copy text from a file or stdin to stdout with its secrets replaced by `[redacted:KIND]`."""
    if jsonl and explain:
        raise WrongUsage("--explain and --jsonl exclude each other")
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    if explain:
        _explain(file.read())
        return 0
    if not jsonl:
        sys.stdout.write(redact_text(file.read()))
        return 0
    for number, line in enumerate(file, 1):
        if line.strip():
            sys.stdout.write(_as_json(_redact_line(number, line)) + "\n")
    return 0


def _explain(text: str) -> None:
    """Print one line for each finding; the value itself is not printed."""
    found = explain_text(text)
    for one in found:
        line = text.count("\n", 0, one.start) + 1
        column = one.start - (text.rfind("\n", 0, one.start) + 1) + 1
        score = "" if one.score is None else f", score {one.score:+.2f}: {', '.join(one.features)}"
        print(f"{line}:{column} {one.kind} ({one.end - one.start} characters) by {one.reason}{score}")
    if not found:
        print("Nothing found.")


def _as_json(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)  # half of a surrogate pair can only be written as an escape
    return json.dumps(text, ensure_ascii=False)


def _redact_line(number: int, line: str) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise WrongUsage(f"line {number} is not a JSON string")
    return redact_text(text)
