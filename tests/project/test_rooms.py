"""Check the layout: small folders, modules of one subject, and import contracts that can be broken."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter import configuration
from importlinter.application.use_cases import _register_contract_types, read_user_options
from importlinter.domain.contract import registry

import decklog
from tests.db.processes import ROOT

PACKAGE = Path(decklog.__file__).parent
MODULES = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]

# An import that breaks each contract, by the beginning of its name: who imports what.
BREAKING = {
    "Rooms import only": ("decklog.stores.tasks.tasks", "decklog.log"),
    "No surface imports": ("decklog.cli.show", "decklog.stores.tasks.task"),
    "The stores do not": ("decklog.stores.money.ledger", "decklog.stores.tasks.task"),
    "No import cycles": ("decklog.stores.tasks.task", "decklog.stores.tasks.tasks"),
    "Only the journal": ("decklog.stores.tasks.tasks", "decklog.journal.writer"),
    "The dashboard is imported": ("decklog.cli.commands.overview", "decklog.web.server"),
    "Web servers only": ("decklog.cli.show", "jinja2"),
    "Importers know nothing": ("decklog.plugins.importers.gaia.importer", "decklog.plugins.importers.bazinga.importer"),
    "No circles inside redaction": ("decklog.redaction.normalize", "decklog.redaction.redactor"),
    "The tools: the toolbox above": ("decklog.guard.policy.policy", "decklog.guard.files.files"),
    "No circles in the tools": ("decklog.guard.files.gitignore", "decklog.guard.files.access"),
    "The policy: the engine": ("decklog.guard.policy.words", "decklog.guard.policy.engine"),
    "SQLite's driver": ("decklog.stores.tasks.tasks", "apsw"),
    "PostgreSQL's driver": ("decklog.db.sqlite.database", "psycopg"),
    "The parts of an engine": ("decklog.db.sqlite.errors", "decklog.db.sqlite.database"),
    "The engines know nothing": ("decklog.db.postgres.database", "decklog.db.sqlite.database"),
}


def test_no_folder_has_more_than_twenty_modules() -> None:
    rooms = Counter(str(path.parent) for path in MODULES if path.name != "__init__.py")
    assert {room: count for room, count in rooms.items() if count > 20} == {}


def test_no_module_is_longer_than_six_hundred_lines() -> None:
    lengths = {str(path): len((PACKAGE / path).read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > 600} == {}


def functions(statements: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Find functions where they can be: among statements, of which there are far fewer than nodes."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from functions(getattr(statement, part, []))


def code_lines(module: Path) -> Iterator[tuple[str, int]]:
    """Yield the lines of each function of a module, without signature and docstring."""
    for node in functions(ast.parse((PACKAGE / module).read_text(encoding="utf-8")).body):
        body = node.body[1:] if is_text(node.body[0]) else node.body
        yield f"{module}: {node.name}", (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and type(statement.value.value) is str


@pytest.mark.slow
def test_no_function_has_forty_lines_of_code() -> None:
    assert {name: length for module in MODULES for name, length in code_lines(module) if length >= 40} == {}


def test_every_folder_says_what_is_in_it() -> None:
    rooms = [path for path in MODULES if path.name == "__init__.py"]
    silent = [str(path) for path in rooms if not (PACKAGE / path).read_text(encoding="utf-8").startswith('"""')]
    assert silent == []


@cache
def contracts() -> dict[str, Any]:
    configuration.configure()
    options = read_user_options(str(ROOT / "pyproject.toml"))
    _register_contract_types(options)
    return {
        found["name"]: registry.get_contract_class(found["type"])(found["name"], options.session_options, found)
        for found in options.contracts_options
    }


@cache
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("decklog", include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None)


def test_every_contract_has_an_import_that_breaks_it() -> None:
    assert len(contracts()) >= 8
    unbroken = [name for name in contracts() if not any(name.startswith(start) for start in BREAKING)]
    assert unbroken == []


@pytest.mark.parametrize("start", BREAKING)
def test_a_wall_holds(start: str) -> None:
    contract = next(contract for name, contract in contracts().items() if name.startswith(start))
    assert contract.check(deepcopy(imports()), verbose=False).kept
    graph = deepcopy(imports())
    importer, imported = BREAKING[start]
    assert importer in graph.modules
    assert imported in graph.modules
    graph.add_import(importer=importer, imported=imported, line_number=1, line_contents=f"import {imported}")
    assert not contract.check(graph, verbose=False).kept


@pytest.mark.slow
@pytest.mark.parametrize("start", ["The stores do not", "No import cycles"])
def test_imports_for_type_checkers_keep_the_contracts_of_stores(start: str) -> None:
    graph = grimp.build_graph("decklog", include_external_packages=True, exclude_type_checking_imports=False, cache_dir=None)
    contract = next(contract for name, contract in contracts().items() if name.startswith(start))
    assert contract.check(graph, verbose=False).kept


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for found in re.finditer(r"^class ([A-Za-z]\w*)", (PACKAGE / module).read_text(encoding="utf-8"), re.MULTILINE):
            places.setdefault(found[1], []).append(str(module))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
