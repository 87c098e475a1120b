"""A file of JSON values gives every complete value, and the text that is none."""

from pathlib import Path
from typing import Any

import pytest

from decklog.core.errors import Invalid, NotFound
from decklog.importing.files import json_values


@pytest.mark.parametrize(
    ("text", "values", "rest"),
    [
        ("", [], []),
        ("[]{}", [[], {}], []),
        ('\ufeff{"a": 1}\n[{"b": 2}],\n[]', [{"a": 1}, [{"b": 2}], []], []),
        ('12.5e+3 -7, true "x"', [12500.0, -7, True, "x"], []),
        ('<<<<<<< ours\n[{"a": 1}]\n=======\n[{"a": 2}]\n>>>>>>> theirs\n', [[{"a": 1}], [{"a": 2}]], []),
        ('[{"a": 1}, {"b": 2}', [{"a": 1}, {"b": 2}], ['[{"a": 1}, {"b": 2}']),
        ('[{"a": 1}, {"b": tru}, {"c": 3}]', [{"a": 1}], ['[{"a": 1}, {"b": tru}, {"c": 3}]']),
        ('{"a": 1}\n{"c": ', [{"a": 1}], ['{"c": ']),
    ],
)
def test_complete_values_are_read_and_the_rest_is_returned(tmp_path: Path, text: str, values: list[Any], rest: list[str]) -> None:
    path = tmp_path / "in.json"
    path.write_text(text, encoding="utf-8")

    assert json_values(str(path)) == (values, rest)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        json_values(str(tmp_path / "gone.json"))
    with pytest.raises(Invalid):
        json_values(str(tmp_path))
