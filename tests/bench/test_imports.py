"""Benchmarks import only what there is: nobody runs them often enough to notice."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.db.processes import ROOT

BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.name)
def test_a_benchmark_imports_names_that_decklog_has(path: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    for node in imports:
        if (node.module or "").partition(".")[0] == "decklog":
            module = import_module(node.module or "")
            names = [name.name for name in node.names if not hasattr(module, name.name)]
            assert [name for name in names if find_spec(f"{node.module}.{name}") is None] == [], node.module
