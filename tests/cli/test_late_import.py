"""What stands in for a module that is not imported does what the module does."""

import dataclasses
import datetime
import re
import subprocess
import sys
from importlib import import_module
from inspect import cleandoc
from json.decoder import WHITESPACE as JSON_BLANKS  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from decklog.cli.late_import import BY_HAND, dedented
from tests.db.processes import environment
from tests.registry import operations

TYPE_NAME: re.Pattern[str] = dataclasses._MODULE_IDENTIFIER_RE  # type: ignore[attr-defined]


@given(st.text(" \t\nab", max_size=40))
def test_a_text_loses_its_indentation_as_by_inspect(text: str) -> None:
    assert dedented(text) == cleandoc(text)


def test_the_help_of_every_verb_is_as_by_inspect() -> None:
    docs = [operation.function.__doc__ or "" for _, operation in operations()]
    assert list(map(dedented, docs)) == list(map(cleandoc, docs))


def test_the_compiled_half_of_datetime_has_all_of_it() -> None:
    compiled = import_module("_datetime")
    assert {name for name in datetime.__all__ if getattr(compiled, name, None) is not getattr(datetime, name)} == set()


@given(st.text(" \t\n\r\xa0a", max_size=12), st.integers(0, 14))
def test_blanks_are_passed_over_as_by_the_reader_of_json(text: str, start: int) -> None:
    assert _by_hand(JSON_BLANKS).match(text, start).end() == JSON_BLANKS.match(text, start).end()


@given(st.text("ab_é1. \n[(", max_size=12))
def test_the_name_of_a_type_is_found_as_by_dataclasses(text: str) -> None:
    found, expected = _by_hand(TYPE_NAME).match(text), TYPE_NAME.match(text)
    assert (found and (found.group(1), found.group(2))) == (expected and expected.groups())


def _by_hand(pattern: re.Pattern[str]) -> Any:
    """Give what matches a pattern of Python's own modules without compiling it: there is something for each of these."""
    return BY_HAND[pattern.pattern]


_OTHERS = """
import sys
sys.path.insert(0, sys.argv[1])
open(f"{sys.argv[1]}/came_along.py", "w").write("import re\\n")
open(f"{sys.argv[1]}/asks_more.py", "w").write("import re\\nre.escape('a')\\n")
open(f"{sys.argv[1]}/like_json.py", "w").write("import re, came_along\\nBLANKS = re.compile('[ab]*')\\n")
from decklog.cli.late_import import import_without_patterns
import_without_patterns("like_json")
import_without_patterns("asks_more")
assert "asks_more" not in sys.modules
import re, asks_more, came_along, like_json
assert came_along.re is asks_more.re is re
assert like_json.re is not re and like_json.BLANKS.match("abc").end() == 2
"""


def test_only_those_that_are_named_do_without_patterns(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _OTHERS, str(tmp_path)], env=environment(), check=True)
