"""Facts about every operation and record of every store."""

import re
from datetime import datetime
from enum import Enum, StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pytest

from decklog import Decklog, Record
from decklog.cli import run
from decklog.cli.parameters import list_parameters, parse_arguments
from decklog.cli.store_verbs import load_operations as spelled_operations
from decklog.db import schema
from decklog.log import store_class
from decklog.records.operations import Operation
from tests.conftest import ENGINES
from tests.every import every
from tests.registry import STORE_NAMES, named, operations, records


def takes_a_run(operation: Operation) -> bool:
    return any(parameter.name == "run_id" for parameter in list_parameters(operation))


SUPPORTED = {str, bytes, int, float, bool, datetime, dict, list, object}


@every(("store", "operation"), **named(operations()))
def test_operation_has_a_one_sentence_summary(store: str, operation: Operation) -> None:
    assert operation.summary[:1].isupper(), operation.summary
    assert operation.summary.endswith("."), operation.summary


@pytest.mark.parametrize("store", STORE_NAMES)
def test_store_has_a_one_sentence_summary(store: str) -> None:
    first = (store_class(store).__doc__ or "").strip().partition("\n")[0]
    assert first[:1].isupper()
    assert first.endswith(".")


@pytest.mark.slow
@every(("store", "operation"), **named(operations()))
def test_an_operation_has_help_on_the_command_line(store: str, operation: Operation, capsys: pytest.CaptureFixture[str]) -> None:
    verb = next((name for name, one in spelled_operations(store).items() if one.name == operation.name), None)
    if verb is None:
        # `runs show` and `approvals show` are written by hand.
        assert (store, operation.name) in {("runs", "get"), ("approvals", "get")}
        return
    assert run([store, verb, "--help"]) == 0
    captured = capsys.readouterr()
    text = " ".join(captured.out.split())
    assert captured.err == ""
    assert " ".join(operation.summary.split())[:60] in text
    for parameter in list_parameters(operation):
        assert (parameter.cli_name.upper() if parameter.positional else parameter.flag) in text


@every(("store", "operation"), **named([pair for pair in operations() if takes_a_run(pair[1])]))
def test_run_parameter_is_spelled_one_way(store: str, operation: Operation) -> None:
    """A verb about a run takes it as `--run` too."""
    parameters = list_parameters(operation)
    (of_run,) = (parameter for parameter in parameters if parameter.name == "run_id")
    assert (of_run.flag, of_run.metavar) == ("--run", "RUN")
    assert of_run.positional or not of_run.required
    assert parse_arguments([of_run], ["--run", "commas"]) == {"run_id": "commas"}


def test_no_command_has_another_option_for_a_run() -> None:
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text()
    assert not re.findall(r"--[a-z-]*run-ids?\b|\bRUN_IDS?\b", page.replace("DECKLOG_RUN_ID", ""))


@every(("store", "operation"), **named(operations()))
def test_an_operation_takes_only_what_the_command_line_can_read(store: str, operation: Operation) -> None:
    for parameter in list_parameters(operation):
        origin = getattr(parameter.type, "__origin__", parameter.type)
        is_enum = isinstance(origin, type) and issubclass(origin, StrEnum)
        is_json = isinstance(origin, str) and origin.startswith(("list", "dict"))
        assert origin in SUPPORTED or is_enum or is_json, f"{parameter.name}: {parameter.type}"


# Records and their tables


def plain(annotation: Any) -> Any:
    inner = [part for part in get_args(annotation) if part is not type(None)] if isinstance(annotation, UnionType) else []
    return inner[0] if len(inner) == 1 else annotation


def enumerations() -> list[Any]:
    found = []
    for record in records():
        for name, field in record.__dataclass_fields__.items():
            kind = plain(field.type)
            if isinstance(kind, type) and issubclass(kind, Enum):
                found.append(pytest.param(record, name, kind, id=f"{record.table}.{name}"))
    return found


def table_text(engine: str, table: str) -> str:
    whole = "\n".join(schema.text_of(step, engine) for step in schema.steps(engine))
    start = re.search(rf"create table {table} \(", whole)
    assert start, f"no migration makes {table}"
    added = re.findall(rf"alter table {table} add column ([^;]*);", whole)
    return "\n".join([balanced(whole, start.end() - 1), *added])


def balanced(text: str, start: int) -> str:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return text[start + 1 : place]
    raise AssertionError("a parenthesis is never closed")


def allowed(engine: str, table: str, column: str) -> list[set[str]]:
    """List the sets of words that a table's checks allow for a column, in either spelling."""
    text = table_text(engine, table)
    found = []
    if engine == "postgres" and table == "entries":
        # Its checks are one function.
        body = schema.text_of(schema.steps(engine)[0], engine).partition("create function entry_is_sound")[2].partition("$$;")[0]
        for words in re.findall(rf"\bp_{column} in \(([^)]*)\)", body):
            found.append(set(re.findall(r"'([^']*)'", words)))
        return found
    for check in re.finditer(r"\bcheck\s*\(", text):
        condition = " ".join(balanced(text, check.end() - 1).split())
        words = re.findall(r"'([^']*)'", condition)
        either = " or ".join(f"{column} = '{word}'" for word in words)
        among = f"{column} in ({', '.join(repr(word) for word in words)})"
        bare = condition.removeprefix(f"{column} is null or ")
        if words and bare in (either, among):
            found.append(set(words))
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("record", "column", "kind"), enumerations())
def test_the_schema_allows_exactly_the_words_of_an_enumeration(
    engine: str, record: type[Record], column: str, kind: type[Enum]
) -> None:
    assert allowed(engine, record.table, column) == [{member.value for member in kind}]


def columns_of(log: Decklog, table: str) -> list[str]:
    sql = {
        # What is computed is a column too; what it is computed of is kept in the bytes of the file alone.
        "sqlite": "select name from pragma_table_xinfo(:table) where name <> 'hash_bytes'",
        "postgres": """
            select column_name from information_schema.columns where table_name = :table and table_schema = current_schema()
            """,
    }[log.db.engine]
    return [row[0] for row in log.db.read(lambda: log.db.rows(sql, {"table": table}))[1]]


def test_every_record_has_the_columns_of_its_table(log: Decklog) -> None:
    for record in records():
        expected = {*record.columns(), *(["pos"] if record.table == "entries" else [])}
        assert set(columns_of(log, record.table)) == expected, record.table


def test_every_record_has_its_primary_key(log: Decklog) -> None:
    for record in records():
        if record.table != "entries":
            assert set(record.identity) <= set(record.columns()), record.table
            assert record.home is not None or "run_id" in record.columns() or record.table == "runs", record.table


def test_every_kind_of_record_is_known_to_the_log(log: Decklog) -> None:
    assert set(log.record_classes().values()) == {record for record in records() if record.table != "entries"}
