"""What stands in for a module that is not imported does what the module does."""

import dataclasses
import datetime
import re
from importlib import import_module
from inspect import cleandoc
from json.decoder import WHITESPACE as JSON_BLANKS  # type: ignore[attr-defined]
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from decklog.cli.late_import import BY_HAND, dedented
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
