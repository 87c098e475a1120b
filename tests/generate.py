"""Writes the documents, and what else follows from the code. Run it as `python -m tests.generate`."""

import ast
import inspect
import json
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click

from decklog.cli.groups import OWNER_ONLY_NOTE
from decklog.cli.store_verbs import find_operation
from decklog.guard.policy import Policy
from decklog.guard.policy.policy import normalise
from decklog.log import STORES
from tests.async_types import async_types
from tests.man import man_page
from tests.reference import errors_md, python_md
from tests.registry import commands

DOCS = Path(__file__).parent.parent / "docs"
POLICY = DOCS.parent / "src/decklog/guard/policy"
SHIPPED = POLICY / "policy.json"
REDACTION = DOCS.parent / "src/decklog/redaction"
TABLES = REDACTION / "tables.json"
CHECKSUMS = DOCS.parent / "src/decklog/db/checksums.py"
TASKS = DOCS.parent / "src/decklog/stores/tasks/tasks.py"
TASK = TASKS.parent / "task.py"
NEW_TASK = DOCS.parent / "src/decklog/stores/tasks/new_task.py"
ASYNC_TYPES = DOCS.parent / "src/decklog/aio/typed.pyi"


def schema_sql() -> str:
    """Return the schema of both engines as it is applied."""
    parts = [
        "-- The schema of a Decklog log. Written by `make docs`; a test keeps it true.",
        "-- First as SQLite holds it after all migrations, then the migrations as PostgreSQL gets them.",
        *_banner("SQLite"),
        *_sqlite_statements(),
        *_banner("PostgreSQL"),
        *_postgres_steps(),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _banner(name: str) -> list[str]:
    line = "-" * 100
    return [f"{line}\n-- {name}\n{line}"]


def _sqlite_statements() -> list[str]:
    from decklog import Decklog

    with tempfile.TemporaryDirectory() as folder, Decklog.open(Path(folder) / "decklog.db") as log:
        sql = "select name, tbl_name, sql from sqlite_schema where sql is not null order by rowid"
        rows = log.db.read(lambda: log.db.rows(sql, {}))[1]
    # A full-text table has shadow tables, named after it.
    texts = [name for name, _, statement in rows if statement.lower().startswith("create virtual table")]
    shadows = {f"{name}_{part}" for name in texts for part in ("data", "idx", "content", "docsize", "config")}
    return [f"{statement.strip()};" for name, table, statement in rows if name not in shadows and table not in shadows]


def _postgres_steps() -> list[str]:
    from decklog.db import schema

    return [f"-- {step.name}\n\n{schema.text_of(step, 'postgres')}" for step in schema.steps("postgres")]


def checksums_py() -> str:
    """Return the digest of each shipped migration, by engine and name."""
    from decklog.db import schema

    parts = ['"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""']
    lines = ["CHECKSUMS = {"]
    for engine in ("sqlite", "postgres"):
        rows = [f'        "{step.name}": "{schema.digested(step, engine)}",' for step in schema.steps(engine)]
        lines += [f'    "{engine}": {{', *rows, "    },"]
    return "\n\n".join([*parts, "\n".join([*lines, "}"])]) + "\n"


def new_task_py() -> str:
    """Build the types of a task's fields from the fields of `Task` that are settable, and of a new task from `tasks.add`."""
    classes = [node for node in ast.walk(ast.parse(TASK.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef)]
    task = next(node for node in classes if node.name == "Task")
    fields = [
        f"{ast.unparse(one.target)}: {_type_of(one)}" for one in task.body if isinstance(one, ast.AnnAssign) and _is_settable(one)
    ]
    functions = [node for node in ast.walk(ast.parse(TASKS.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]
    given = next(node for node in functions if node.name == "add").args
    more = [f"{one.arg}: Required[{ast.unparse(one.annotation)}]" for one in given.args[2:] if one.annotation]
    more += [f"{one.arg}: {ast.unparse(one.annotation)}" for one in given.kwonlyargs if one.annotation]
    return _NEW_TASK.format(*("".join(f"    {one}\n" for one in lines) for lines in (fields, more)))


def _is_settable(one: ast.AnnAssign) -> bool:
    return isinstance(one.value, ast.Call) and "metadata=SETTABLE" in ast.unparse(one.value)


def _type_of(one: ast.AnnAssign) -> str:
    text = ast.unparse(one.annotation)
    return f"{text} | None" if text.startswith(("list", "dict")) else text


_NEW_TASK = '''"""What a task may be given. Written by `make docs` from `Task` and `tasks.add`; a test keeps it true."""

from datetime import datetime
from typing import Required, TypedDict


class TaskFields(TypedDict, total=False):
    """What `tasks.add` and `tasks.edit` take besides a title."""

{}

class NewTask(TaskFields, total=False):
    """The arguments of `tasks.add`, without the run."""

{}'''


def cli_md() -> str:
    """Build the page of all commands, with usage, help and options; options that many commands share are described once."""
    every = list(commands())
    shared = _shared_options(command for _, command, _ in every)
    rows = [f"| `{spelled}` | {text} |" for spelled, text in sorted(shared.items())]
    parts = [
        "# All commands",
        "Generated by `make docs`. See [everyday commands](reference/everyday.md) for the ones you need daily. `--help` and the "
        "[Python reference](reference/python.md) describe the verbs of stores in full.",
        "Every command takes the options below, at any position. Write options with dashes or underscores.",
        _GLOBAL_OPTIONS,
        "- Give a run as the `RUN` argument where a command has one, or as `--run RUN`.\n"
        "- `-` as a value reads from stdin. JSON may also come from `@FILE`.\n"
        "- A list (`A,B`) is comma-separated, repeated, or JSON. A sentence is one item.\n"
        "- `TIME` is ISO 8601, or an age such as `90s`, `15m`, `2h` or `3d`. `DOLLARS` is an amount such as `0.42`.",
        "## Shared options",
        "\n".join(["| option | meaning |", "| --- | --- |", *rows]),
    ]
    for path, command, level in every:
        parts += _section(path, command, level, shared)
    return "\n\n".join(parts) + "\n"


_CHOICES = re.compile(r"[A-Z_]+ is one of ")
# How many commands must have an option with the same text before it is described once for all of them.
_MANY = 4
_GLOBAL_OPTIONS = """| option | meaning |
| --- | --- |
| `--db PATH` or `--db URL` | the log to use |
| `--json` | print one JSON envelope |
| `--agent NAME`, `--agent-id ID` | who writes (commands that write) |
| `--brief`, `--no-brief` | omit empty fields, or show all; `--json` is brief for agents |
| `--fields A,B` | show only these fields; `left_out` counts the rest |"""


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def _shared_options(commands: Iterable[click.Command]) -> dict[str, str]:
    """Return the options that many commands have with the same text, by their spelling; the most common text counts."""
    plain = (command for command in commands if not isinstance(command, click.Group))
    counts = Counter(_spelled(option)[:2] for command in plain for option in _options(command))
    return dict(reversed([option for option, count in counts.most_common() if count >= _MANY]))


def _section(path: str, command: click.Command, level: int, shared: dict[str, str]) -> list[str]:
    paragraphs = _paragraphs(command.help or "")
    if _is_verb_of_a_store(path):
        # The Python reference has the rest of its text.
        paragraphs = [paragraphs[0], *(one for one in paragraphs[1:] if one == OWNER_ONLY_NOTE or _CHOICES.match(one))]
    parts = [f"{'#' * level} {path}", *paragraphs]
    if isinstance(command, click.Group):
        return parts
    parts.append(f"```\n{_usage(path, command)}\n```")
    options = [_spelled(option) for option in _options(command)]
    own = [f"- `{spelled}`: {text}{more}" for spelled, text, more in options if shared.get(spelled) != text]
    others = [f"`{spelled}`{more and f' ({more[2:]})'}" for spelled, text, more in options if shared.get(spelled) == text]
    if others:
        own.append(f"- [shared](#shared-options): {', '.join(others)}")
    return [*parts, "\n".join(own)] if own else parts


def _is_verb_of_a_store(path: str) -> bool:
    _, store, *verb = path.split()
    return len(verb) == 1 and store.replace("-", "_") in STORES and find_operation(store, verb[0]) is not None


def _spelled(option: click.Option) -> tuple[str, str, str]:
    """Return an option's spelling, its text, and its default if the text ends with one."""
    value = f" {option.metavar}" if option.metavar and not option.is_flag else ""
    text, mark, default = (option.help or "").partition("; default ")
    return f"{' / '.join([*option.opts, *option.secondary_opts])}{value}", text, f"; default {default}" if mark else ""


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text; one that click must not wrap (it starts with a backspace) is a code block."""
    parts = [part.strip("\n") for part in inspect.cleandoc(text).split("\n\n") if part.strip()]
    return [
        f"```\n{part.lstrip(chr(8)).strip(chr(10))}\n```" if part.startswith("\b") else " ".join(part.split()) for part in parts
    ]


def _usage(path: str, command: click.Command) -> str:
    words = [path]
    for param in command.params:
        if isinstance(param, click.Argument):
            name = (param.metavar or (param.name or "").upper()) + ("..." if param.nargs == -1 else "")
            words.append(name if param.required else f"[{name}]")
    required = [param for param in command.params if isinstance(param, click.Option) and param.required]
    words += [f"{param.opts[0]} {param.metavar}" for param in required]
    return " ".join([*words, "[OPTIONS]"] if len(command.params) > len(words) - 1 else words)


def _owner_commands() -> list[str]:
    """Return the commands that only the owner may use, by the marks on operations and commands."""
    from decklog.cli.groups import is_for_the_owner

    paths = [
        path.removeprefix("decklog ")
        for path, one, _ in commands()
        if is_for_the_owner(one) or OWNER_ONLY_NOTE in (one.help or "")
    ]
    return sorted(path for path in paths if not any(path.startswith(f"{group} ") for group in paths))


def policy_json() -> str:
    """Return the shipped policy as JSON, an entry a line, with the owner's commands and without the examples."""
    data = tomllib.loads((POLICY / "policy.toml").read_text(encoding="utf-8"))
    Policy(normalise(data)).check()
    for table in data.values():
        for entry in table if isinstance(table, list) else ():
            entry.pop("dangerous", None)
            entry.pop("harmless", None)
            if entry.get("names") == "decklog":
                # Click takes both spellings.
                entry["subcommands"] = {"deny": sorted({c for m in _owner_commands() for c in (m, m.replace("-", "_"))})}
    data = normalise(data)
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in data.items()) + "\n}\n"


def redaction_json() -> str:
    """Return the tables of the redaction as JSON, without the examples."""
    tables = {
        name: tomllib.loads((REDACTION / f"{name}.toml").read_text(encoding="utf-8")) for name in ("rules", "prose", "words")
    }
    for rule in tables["rules"]["rule"]:
        rule.pop("found", None)
        rule.pop("not_found", None)
    rows = (
        f"{json.dumps(name)}: {{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in table.items()) + "\n}"
        for name, table in tables.items()
    )
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n]"
    if isinstance(value, dict):
        rows = (f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in value.items())
        return "{\n" + ",\n".join(rows) + "\n}"
    return json.dumps(value, ensure_ascii=False)


def documents() -> dict[Path, str]:
    return {
        DOCS / "schema.sql": schema_sql(),
        DOCS / "cli.md": cli_md(),
        DOCS / "decklog.1": man_page(),
        DOCS / "reference/errors.md": errors_md(),
        DOCS / "reference/python.md": python_md(),
        CHECKSUMS: checksums_py(),
        SHIPPED: policy_json(),
        TABLES: redaction_json(),
        NEW_TASK: new_task_py(),
        ASYNC_TYPES: async_types(),
    }


def main() -> None:
    for path, text in documents().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(DOCS.parent)}: {len(text.splitlines())} lines\n")


if __name__ == "__main__":
    main()
