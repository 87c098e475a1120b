"""What stands in for a module that is not imported does what the module does."""

import datetime
from importlib import import_module
from inspect import cleandoc

from hypothesis import given
from hypothesis import strategies as st

from decklog.cli.late_import import dedented
from tests.registry import operations


@given(st.text(" \t\nab", max_size=40))
def test_a_text_loses_its_indentation_as_by_inspect(text: str) -> None:
    assert dedented(text) == cleandoc(text)


def test_the_help_of_every_verb_is_as_by_inspect() -> None:
    docs = [operation.function.__doc__ or "" for _, operation in operations()]
    assert list(map(dedented, docs)) == list(map(cleandoc, docs))


def test_the_compiled_half_of_datetime_has_all_of_it() -> None:
    compiled = import_module("_datetime")
    assert {name for name in datetime.__all__ if getattr(compiled, name, None) is not getattr(datetime, name)} == set()
