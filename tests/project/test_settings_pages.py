"""The pages of settings and environment variables name what the code reads, and nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog.conductor.settings import RULES
from tests.db.processes import ROOT

SOURCE = ROOT / "src/decklog"
TOML = (ROOT / "docs/reference/decklog-toml.md").read_text(encoding="utf-8")
ENVIRONMENT = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
_OURS = re.compile(r"(?:DECKLOG|BAZINGA|OTEL_EXPORTER_OTLP|XDG)_[A-Z_]+")
# Read by a name that is put together: `DECKLOG_` and the name of a parameter.
DERIVED = {"DECKLOG_AGENT", "DECKLOG_AGENT_ID", "DECKLOG_GROUP_ID", "DECKLOG_RUN_ID", "DECKLOG_TASK_ID", "DECKLOG_FENCE"}
# Names that are only passed over or matched, and never read.
NOT_READ = {"DECKLOG_RUN", "DECKLOG_TASK"}
# Sections of the page whose heading is not their name in the file.
SECTIONS = {"models.*": "Models and calls", "tests": "[tests] and [protect]", "protect": "[tests] and [protect]"}
# The only keys of the file that `RULES` leaves out: [calls] takes any name, [redaction] has its own reader.
OTHER_SECTIONS = ("[calls]", "[redaction]")


def headed(title: str) -> str:
    """Return the part of the page below a heading."""
    parts = TOML.partition(f"\n## {title}\n")
    assert parts[1], title
    return parts[2].partition("\n## ")[0]


def section_of(prefix: str) -> str:
    spelled = {"agents.*": "[agents.NAME]", "checks.*": "[[checks]]"}.get(prefix, f"[{prefix}]")
    return headed(SECTIONS.get(prefix, spelled))


def test_every_setting_of_decklog_toml_is_documented() -> None:
    missing = []
    for key in RULES:
        prefix, _, name = key.rpartition(".")
        text = section_of(prefix)
        if f"`{name}`" not in text and f"`{key}`" not in text:
            missing.append(key)
    assert missing == []
    assert all(section in TOML for section in OTHER_SECTIONS)


def test_every_documented_setting_exists() -> None:
    known = {key.rpartition(".")[2] for key in RULES} | set(RULES)
    before = TOML.partition("\n## Settings that need consent")[0]
    keys = [name for row in re.findall(r"^\| (`[^|]+) \|", before, re.MULTILINE) for name in re.findall(r"`([a-z_.]+)`", row)]
    assert len(keys) > 60
    assert sorted(set(keys) - known) == []


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts that a module gives names to."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _read_names(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what is looked up in an environment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in ("get", "setdefault") and "environ" in ast.unparse(node.func.value):
                yield node.args[0]
        elif isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
            yield node.slice


def read_variables() -> set[str]:
    """Return the environment variables that the code reads by a name in its text."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = _constants(tree)
        names = [constants.get(one.id) if isinstance(one, ast.Name) else getattr(one, "value", None) for one in _read_names(tree)]
        found |= {name for name in names if isinstance(name, str) and re.fullmatch(r"[A-Z][A-Z0-9_]+", name)}
        texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
        found |= {text for text in texts if _OURS.fullmatch(text)}
    return (found | DERIVED) - NOT_READ


def documented_variables() -> set[str]:
    rows = re.findall(r"^\| (`[^|]+) \|", ENVIRONMENT, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row)}


@pytest.mark.slow
def test_every_environment_variable_that_is_read_is_documented() -> None:
    assert sorted(read_variables() - documented_variables()) == []


def test_every_documented_environment_variable_is_used() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(SOURCE).rglob("*.py"))
    assert sorted(name for name in documented_variables() - DERIVED if f'"{name}"' not in texts) == []
