"""Agent programs described by data: their permissions, output format, and the commands that start them."""

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from decklog.conductor.commands import Command, PrivateHomeFiles, expanded
from decklog.conductor.tables import build
from decklog.core.errors import Invalid, NotFound
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind

# With the last, the brief is a line of JSON on standard input, and more lines may follow while it works.
PROMPTS = ("stdin", "argument", "file", "stream-json")
# The last is the Agent Client Protocol.
STREAMS = ("jsonl", "none", "acp")
PERMISSIONS = ("person", "allow", "deny")
COMMITS = ("conductor", "agent")
KINDS = ("start", "text", "thought", "tool", "result", "usage", "note", "ask", "delivered", "end", "error")
# Errors that use no attempt.
OUTAGES = ("quota", "login", "overload")
CLASSES = (*OUTAGES, "context", "refused", "budget")
LONGEST_ARGUMENT = 100 * 1024
_FILE = re.compile(r"[\w./-]+\.\w{1,4}")
_WORDS = {"prompt": PROMPTS, "stream": STREAMS, "commits": COMMITS, "permissions": PERMISSIONS}


@dataclass(frozen=True)
class EventRule:
    """Which lines are events of a kind, and their fields. A `total` counts from the beginning of the session.

    `each` points to a list in the line: every element may be an event, and is found at `/item`.
    """

    when: Mapping[str, object]
    kind: str
    take: Mapping[str, str] = field(default_factory=dict)
    each: str | None = None
    total: bool = False
    cached_within_input: bool = False


@dataclass(frozen=True)
class ErrorRule:
    """Which errors are of a class: by a pattern of their text, a status, or a reason."""

    error_class: str
    text: re.Pattern[str] | None = None
    status: tuple[int, ...] = ()
    reason: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Description:
    """One agent as a run uses it."""

    name: str
    command: tuple[object, ...] = ()
    untrusted: tuple[object, ...] = ()
    # Further arguments within Decklog's sandbox, and without it, where the program needs its own.
    in_sandbox: tuple[object, ...] = ()
    without_sandbox: tuple[object, ...] = ()
    prompt: str = "stdin"
    stream: str = "none"
    commits: str = "conductor"
    model: str | None = None
    account: str | None = None
    network: bool = True
    keeps_home: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    # Files of its program in the person's home; see HomeFiles.
    home_copied: tuple[str, ...] = ()
    home_readable: tuple[str, ...] = ()
    home_writable: tuple[str, ...] = ()
    home_variables: Mapping[str, str] = field(default_factory=dict)
    probe: tuple[str, ...] = ()
    # Variables whose value is a login, which the probe does not see.
    login_env: tuple[str, ...] = ()
    # The `file` of a session in its home, in the format of a `program`: its answers are charged if the session ends without a
    # report of what it spent. `model` is where a line names the model, for a program whose output names none.
    transcript: Mapping[str, str] = field(default_factory=dict)
    # The command that resumes a session of its program.
    resume: tuple[str, ...] = ()
    # Arguments with which `decklog run --check` starts its program; empty for no start.
    trial: tuple[str, ...] = ("--version",)
    turns: int | None = None
    minutes: float = 45.0
    stall_minutes: float | None = None
    permissions: str = "person"
    ask_minutes: float = 10.0
    events: tuple[EventRule, ...] = ()
    errors: tuple[ErrorRule, ...] = ()
    # The recorded names of its tools, as in recorded sessions.
    tools: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, values: Mapping[str, object], *, is_sandboxed: bool) -> list[str]:
        """Fill in the command. Parts with a missing value are omitted."""
        words: list[str] = []
        for part in (*self.command, *self.untrusted, *(self.in_sandbox if is_sandboxed else self.without_sandbox)):
            if isinstance(part, str):
                words.append(_filled(part, values))
            elif all(values.get(name) is not None for word in part for name in _names(word)):  # type: ignore[attr-defined]
                words += [_filled(word, values) for word in part]  # type: ignore[attr-defined]
        return words

    @property
    def takes_messages(self) -> bool:
        """Whether its client delivers messages of people while it works."""
        return self.stream == "acp" or self.prompt == "stream-json"

    @property
    def home_files(self) -> PrivateHomeFiles:
        """The files of the person's home that are copied to or shared with the agent."""
        return PrivateHomeFiles(
            copied=self.home_copied,
            readable=self.home_readable,
            writable=self.home_writable,
            variables=self.home_variables,
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The paths outside of its folder that it may read: the readable ones, and files in its command."""
        words = [part for part in self.command if isinstance(part, str) and part.startswith("/")]
        return (*self.readable, *(word for word in words if os.path.isfile(word)))

    @property
    def local_files(self) -> list[str]:
        """The words of its command that look like files in its working folder."""
        words = [part for part in self.command[1:] if isinstance(part, str) and not part.startswith(("-", "/", "~"))]
        return [word for word in words if _FILE.fullmatch(word)]


def _names(word: str) -> list[str]:
    return re.findall(r"\{([a-z_]+)\}", word)


def _filled(word: str, values: Mapping[str, object]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda found: str(values.get(found[1], found[0])), word)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files(__package__).joinpath("known.toml").read_text(encoding="utf-8"))


def known_names() -> list[str]:
    """Return the names of the descriptions that come with Decklog."""
    return sorted(_tables())


def known_program(name: str) -> str:
    """Return the program of a known description; empty if it has none."""
    command = _tables()[name]["command"]
    return str(command[0]) if command else ""


def known_table(name: str) -> dict[str, Any]:
    """Return a known description with the settings that it extends; empty if the name is unknown."""
    return _whole(name) if name in _tables() else {}


def _whole(name: str) -> dict[str, Any]:
    """Merge a known description with those that it extends."""
    table = _tables()[name]
    return {**(_whole(table["extends"]) if "extends" in table else {}), **table}


def describe(name: str, table: Mapping[str, Any]) -> Description:
    """Parse the description of an agent over the one that it extends. Raise Invalid for an unknown setting."""
    base = table.get("extends", "command")
    if base not in _tables():
        raise NotFound(f"agent {name} extends {base!r}, which is not known", hint=f"Use one of {', '.join(known_names())}.")
    whole = {**_whole(base), **table}
    whole.pop("extends", None)
    events = tuple(_event_rule(name, rule) for rule in whole.pop("events", ()))
    errors = tuple(_error_rule(name, rule) for rule in whole.pop("errors", ()))
    found = build(Description, f"agent {name}", whole, name=name, events=events, errors=errors)
    for key, words in _WORDS.items():
        if getattr(found, key) not in words:
            raise Invalid(f"agent {name}: {key} is {getattr(found, key)!r}", hint=f"Use one of {', '.join(words)}.", field=key)
    if not found.command:
        raise Invalid(f"agent {name} has no command", hint='Give one: command = ["my-agent", "{prompt_file}"]', field="command")
    return found


def _event_rule(name: str, rule: Mapping[str, Any]) -> EventRule:
    if rule.get("as") not in KINDS:
        raise Invalid(f"agent {name}: an event is one of {', '.join(KINDS)}, not {rule.get('as')!r}", field="events")
    flags = {key: bool(rule.get(key)) for key in ("total", "cached_within_input")}
    return EventRule(dict(rule.get("when", {})), rule["as"], dict(rule.get("take", {})), rule.get("each"), **flags)


def _error_rule(name: str, rule: Mapping[str, Any]) -> ErrorRule:
    if rule.get("class") not in CLASSES:
        raise Invalid(f"agent {name}: an error is one of {', '.join(CLASSES)}, not {rule.get('class')!r}", field="errors")
    text = rule.get("text")
    return ErrorRule(
        rule["class"], re.compile(text) if text else None, tuple(rule.get("status", ())), tuple(rule.get("reason", ()))
    )


# Commands


# Named by text: they are programs of their own within the sandbox.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from decklog.{} import main; main()"
_DRIVER, _FEEDER, _HOOK = (_BOOT.format(name) for name in ("hooks.proxy.driving", "hooks.proxy.feeding", "hooks.judging"))
_SOURCE = str(Path(__file__).resolve().parents[3])
READABLE = tuple(dict.fromkeys((_SOURCE, sys.prefix, sys.base_prefix)))


def agent_command(
    agent: Description, argv: list[str], *, kind: SandboxKind, readable: tuple[str, ...] = (), **given: Any
) -> Command:
    """Build the command that starts an agent's program with the permissions of its description."""
    return Command(
        argv=argv,
        sandbox=Sandbox(
            kind=kind,
            network=agent.network,
            readable=expanded((*readable, *agent.reads)),
            writable=expanded(agent.writable),
        ),
        pass_env=agent.pass_env,
        keeps_home=agent.keeps_home,
        home=agent.home_files,
        **{"env": agent.env, **given},
    )


def client_command(agent: Description, argv: list[str], prompt: Path, answers: Path, *, is_sandboxed: bool) -> list[str]:
    """Build the command of the client that prompts an agent with a file and reads answers and messages from a folder."""
    order = {
        "command": argv,
        "prompt_file": str(prompt),
        "answers": str(answers),
        "permissions": agent.permissions,
        "model": agent.model,
        "is_sandboxed": is_sandboxed,
    }
    return [sys.executable, "-I", "-c", _DRIVER if agent.stream == "acp" else _FEEDER, _SOURCE, json.dumps(order)]


def policy_hook(agent: Description) -> str:
    """Return the command of the hook that judges an agent's calls, escaped for a JSON string."""
    return json.dumps(shlex.join([sys.executable, "-I", "-c", _HOOK, _SOURCE, agent.permissions]))[1:-1]
