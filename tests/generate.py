"""Writes the documents, and what else follows from the code. Run it as `python -m tests.generate`."""

import ast
import json
import sys
import tempfile
from pathlib import Path

import click

from tests.async_types import async_types
from tests.man import man_page
from tests.reference import errors_md, python_md

DOCS = Path(__file__).parent.parent / "docs"
POLICY = DOCS.parent / "src/decklog/tools/policy"
SHIPPED = POLICY / "shipped.json"
CHECKSUMS = DOCS.parent / "src/decklog/db/checksums.py"
TASKS = DOCS.parent / "src/decklog/stores/work/tasks.py"
NEW_TASK = DOCS.parent / "src/decklog/stores/work/new_task.py"
ASYNC_TYPES = DOCS.parent / "src/decklog/aio/typed.pyi"


def schema_sql() -> str:
    """Give the schema of both engines as it is applied."""
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
    # A full-text table has tables of its own, which SQLite makes and names after it.
    texts = [name for name, _, statement in rows if statement.lower().startswith("create virtual table")]
    shadows = {f"{name}_{part}" for name in texts for part in ("data", "idx", "content", "docsize", "config")}
    return [f"{statement.strip()};" for name, table, statement in rows if name not in shadows and table not in shadows]


def _postgres_steps() -> list[str]:
    from decklog.db import schema

    return [f"-- {step.name}\n\n{schema.text_of(step, 'postgres')}" for step in schema.steps("postgres")]


def checksums_py() -> str:
    """Give the digest of each shipped migration, by engine and name."""
    from decklog.db import schema

    parts = ['"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""']
    lines = ["CHECKSUMS = {"]
    for engine in ("sqlite", "postgres"):
        rows = [f'        "{step.name}": "{schema.digested(step, engine)}",' for step in schema.steps(engine)]
        lines += [f'    "{engine}": {{', *rows, "    },"]
    return "\n\n".join([*parts, "\n".join([*lines, "}"])]) + "\n"


def new_task_py() -> str:
    """Build the type of a task for `tasks.add_many` from the signature of `tasks.add`."""
    functions = [node for node in ast.walk(ast.parse(TASKS.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]
    given = next(node for node in functions if node.name == "add").args
    places = [one for one in given.args if one.arg not in ("self", "run_id")]
    fields = [f"{one.arg}: Required[{ast.unparse(one.annotation)}]" for one in places if one.annotation]
    fields += [f"{one.arg}: {ast.unparse(one.annotation)}" for one in given.kwonlyargs if one.annotation]
    return _NEW_TASK + "".join(f"    {one}\n" for one in fields)


_NEW_TASK = '''"""A task for `tasks.add_many`. Written by `make docs` from the signature of `tasks.add`; a test keeps it true."""

from datetime import datetime
from typing import Required, TypedDict


class NewTask(TypedDict, total=False):
    """The arguments of `tasks.add`, without the run."""

'''


def cli_md() -> str:
    """Give every command with its usage, help and options."""
    from decklog.cli.main import menu

    context = click.Context(menu, info_name="decklog")
    parts = [
        "# The command line",
        "Written by `make docs` from the commands themselves; a test keeps it true.",
        "Every command takes `--json` and `--db PATH|URL`, wherever they stand; those that write take `--agent NAME` and "
        "`--agent-id ID`. `--brief` leaves empty fields out of an answer, which is the default of `--json` for agents (known by "
        "`--agent`, `DECKLOG_AGENT`, `DECKLOG_WORKER` or their own variables; `--no-brief` shows all); `--fields A,B` keeps only "
        "these; `left_out` says how many are not shown. A value of `-` is read from stdin; JSON may also come from `@FILE`. "
        "A list (`A,B`) is words with commas between them, an option given several times, or JSON; a sentence is one item. "
        "Options may be written with dashes or underscores.",
        "A run is said in one way: a command that is about a run has a place for it (`RUN`), and wherever a store's verb takes "
        "one, in a place or not, `--run RUN` says it too.",
    ]
    for name in menu.list_commands(context):
        command = menu.get_command(context, name)
        assert command is not None
        parts += _section(f"decklog {name}", command, 2)
    return "\n\n".join(parts) + "\n"


def _section(path: str, command: click.Command, level: int) -> list[str]:
    parts = [f"{'#' * level} {path}", *_paragraphs(command.help or "")]
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            parts += _section(f"{path} {name}", inner, level + 1)
        return parts
    parts.append(f"```\n{_usage(path, command)}\n```")
    options = [_option(param) for param in command.params if isinstance(param, click.Option)]
    return [*parts, "\n".join(options)] if options else parts


def _paragraphs(text: str) -> list[str]:
    import inspect

    cleaned = inspect.cleandoc(text.replace("\b", ""))
    return [" ".join(paragraph.split()) for paragraph in cleaned.split("\n\n") if paragraph.strip()]


def _usage(path: str, command: click.Command) -> str:
    words = [path]
    for param in command.params:
        if isinstance(param, click.Argument):
            name = (param.metavar or (param.name or "").upper()) + ("..." if param.nargs == -1 else "")
            words.append(name if param.required else f"[{name}]")
    required = [param for param in command.params if isinstance(param, click.Option) and _is_required(param)]
    words += [f"{param.opts[0]} {param.metavar}" for param in required]
    return " ".join([*words, "[OPTIONS]"] if len(command.params) > len(words) - 1 else words)


def _is_required(option: click.Option) -> bool:
    return option.required or option.help == "required"


def _option(option: click.Option) -> str:
    spelled = " / ".join([*option.opts, *option.secondary_opts])
    value = f" {option.metavar}" if option.metavar and not option.is_flag else ""
    return f"- `{spelled}{value}`" + (f": {option.help}" if option.help else "")


def _manager_commands() -> list[str]:
    """Give the commands that only the manager may use, by the marks on operations and commands."""
    from decklog.cli.main import menu

    context = click.Context(menu, info_name="decklog")
    return sorted(path for name in menu.list_commands(context) for path in _manager_paths(name, menu.get_command(context, name)))


def shipped_json() -> str:
    """Give the shipped policy in the form that is quick to read, an entry a line, with what only the manager may run."""
    from decklog.tools.policy.load import merge, read

    data = merge(read(POLICY / "default.toml"), {"names": {"manager_commands": _manager_commands()}})
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in data.items()) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n]"
    if isinstance(value, dict):
        rows = (f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in value.items())
        return "{\n" + ",\n".join(rows) + "\n}"
    return json.dumps(value, ensure_ascii=False)


def _manager_paths(path: str, command: click.Command | None) -> list[str]:
    from decklog.cli.manager import SENTENCE, is_for_the_manager

    assert command is not None
    if is_for_the_manager(command) or SENTENCE in (command.help or ""):
        return [path]
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command, info_name=path)
    inner = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [found for name, one in inner for found in _manager_paths(f"{path} {name}", one)]


def documents() -> dict[Path, str]:
    return {
        DOCS / "schema.sql": schema_sql(),
        DOCS / "cli.md": cli_md(),
        DOCS / "decklog.1": man_page(),
        DOCS / "reference/errors.md": errors_md(),
        DOCS / "reference/python.md": python_md(),
        CHECKSUMS: checksums_py(),
        SHIPPED: shipped_json(),
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
