"""JSON of the small processes: to the letter what Python's own module writes and reads, without what that one imports."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import decklog
from decklog.processes import plain_json

SOURCE = str(Path(decklog.__file__).parents[1])
PLAIN = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text()
VALUES = some.recursive(PLAIN, lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner))


@given(VALUES)
def test_values_are_written_and_read_as_by_json(value: Any) -> None:
    assert plain_json.dumps(value) == json.dumps(value)
    assert plain_json.loads(json.dumps(value)) == value
    assert plain_json.loads(f" {json.dumps(value, indent=1)}\n") == value


@pytest.mark.parametrize("text", ["", " ", "{", '{"a": 1', "[1,]", '"open', "1 2", "nothing", '{"a": 1}}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        plain_json.loads(text)


def test_what_has_no_plain_form_is_refused() -> None:
    with pytest.raises(TypeError):
        plain_json.dumps({"path": SOURCE.encode()})


@pytest.mark.parametrize("module", ["supervisor", "fork_server"])
def test_what_starts_for_every_toolbox_imports_little(module: str) -> None:
    said = f"import sys; sys.path.insert(0, {SOURCE!r}); import decklog.tools.shell.{module}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-I", "-S", "-c", said], capture_output=True, text=True, check=True).stdout
    costly = {"json", "re", "enum", "functools", "collections", "contextlib", "signal", "socket", "subprocess", "typing"}
    assert costly & set(told.split()) == set()
