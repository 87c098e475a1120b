"""Generated documents are up to date."""

from collections.abc import Callable
from pathlib import Path

import pytest

from decklog.cli.store_verbs import load_operations as spelled_operations
from decklog.records.operations import Operation
from tests.every import every
from tests.generate import (
    ASYNC_TYPES,
    CHECKSUMS,
    DOCS,
    NEW_TASK,
    SHIPPED,
    TABLES,
    async_types,
    checksums_py,
    cli_md,
    new_task_py,
    policy_json,
    redaction_json,
    schema_sql,
)
from tests.man import man_page
from tests.reference import errors_md, python_md
from tests.registry import named, operations


@pytest.mark.parametrize(
    ("write", "path"),
    [
        (schema_sql, DOCS / "schema.sql"),
        (cli_md, DOCS / "cli.md"),
        (man_page, DOCS / "decklog.1"),
        (errors_md, DOCS / "reference/errors.md"),
        (python_md, DOCS / "reference/python.md"),
        (policy_json, SHIPPED),
        (redaction_json, TABLES),
        (checksums_py, CHECKSUMS),
        (new_task_py, NEW_TASK),
        (async_types, ASYNC_TYPES),
    ],
)
def test_a_generated_document_is_up_to_date(write: Callable[[], str], path: Path) -> None:
    """It was written by another process at another time, on which no document depends."""
    assert path.exists(), "run `make docs`"
    assert path.read_text(encoding="utf-8") == write(), f"{path.name} is out of date: run `make docs`"


@every(("store", "operation"), **named(operations()))
def test_an_operation_is_in_the_documents(store: str, operation: Operation) -> None:
    lines = (DOCS / "cli.md").read_text(encoding="utf-8").splitlines()
    (verb,) = [name for name, one in spelled_operations(store).items() if one.name == operation.name] or ["show"]
    assert f"### decklog {store} {verb}".replace("_", "-") in lines
