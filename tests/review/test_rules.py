"""Every rule of `rules.toml` finds its examples and lets its counterexamples go."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from decklog.conductor.git.changes import DiffLine
from decklog.review.rules import MESSAGE, Source, build_rule, find_by_rules, find_in_message, load_rules, load_table
from tests.every import every


def parse_lines(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return changed lines as a diff without context has them: all old ones, then all new ones."""
    old, new = before.split("\n"), after.split("\n")
    gone = [DiffLine("", "-", 1, text) for text in old if text not in new]
    come = [DiffLine("", "+", number, text) for number, text in enumerate(new, 1) if text not in old]
    return (*gone, *come)


def source_of(row: dict[str, Any], example: "str | list[str]") -> Source:
    """Build the file that an example describes: added, or changed from one text to another."""
    table = load_table()
    rule = build_rule(row, table["groups"], table["kinds"])
    before, after = example if isinstance(example, list) else ("", example)
    name = row.get("path") or rule.files[0].replace("*", "a")
    return Source(name, after, before, parse_lines(before, after), is_test=rule.scope == "tests")


def examples(column: str) -> Iterator[tuple[dict[str, Any], "str | list[str]"]]:
    for row in load_table()["rule"]:
        for example in row[column]:
            yield row, example


def finds(row: dict[str, Any], example: "str | list[str]") -> bool:
    rule = next(one for one in load_rules() if one.id == row["id"])
    if rule.view == MESSAGE:
        return rule.kind in [one.kind for one in find_in_message(str(example), rule.stage)]
    return find_by_rules([source_of(row, example)], rule.stage, [rule]) != []


@every(("row", "example"), list(examples("found")))
def test_rule_finds_its_examples(row: dict[str, Any], example: "str | list[str]") -> None:
    assert finds(row, example), (row["id"], example)


@every(("row", "example"), list(examples("not_found")))
def test_rule_lets_its_counterexamples_go(row: dict[str, Any], example: "str | list[str]") -> None:
    assert not finds(row, example), (row["id"], example)


def test_every_rule_has_its_own_id_and_both_kinds_of_examples() -> None:
    rows = load_table()["rule"]
    assert len({row["id"] for row in rows}) == len(rows)
    assert [row["id"] for row in rows if not row["found"] or not row["not_found"]] == []


def test_a_moved_assertion_is_not_removed() -> None:
    claim = "def test_a():\n    assert f() == 1\n    assert g() == 2\n"
    shorter, moved = "def test_a():\n    assert f() == 1\n", "def test_b():\n    assert g() == 2\n"
    old = Source("tests/test_a.py", shorter, claim, parse_lines(claim, shorter), is_test=True)
    new = Source("tests/test_b.py", moved, "", parse_lines("", moved), is_test=True)
    assert [one.kind for one in find_by_rules([old], 1)] == ["weakened-test"]
    assert find_by_rules([old, new], 1) == []


def test_a_test_that_goes_with_the_code_it_names_is_not_removed() -> None:
    test = "def test_total():\n    assert total() == 2\n"
    tests = Source("tests/test_a.py", "", test, parse_lines(test, ""), is_test=True)
    code = "def total():\n    return 2\n"
    both = [tests, Source("a.py", "", code, parse_lines(code, ""), is_test=False)]
    assert {one.kind for one in find_by_rules([tests], 1)} == {"removed-test", "weakened-test"}
    assert find_by_rules(both, 1) == []


def test_only_added_lines_count() -> None:
    before = "import pdb\n# TODO\n"
    after = before + "x = 1\n"
    assert find_by_rules([Source("a.py", after, before, parse_lines(before, after), is_test=False)], 1) == []


@pytest.mark.slow
@every(
    ("path", "row"),
    [
        ("tests/test_a.py", "    " * 20 + "\n"),
        ("tests/test_a.py", "TODO " * 300 + "\n"),
        ("tests/test_a.py", "@pytest.mark.xfail(" + " " * 1900 + "\n"),
        ("tests/CTest.cs", "[Fact(\n"),
        ("tox.ini", "pytest " * 280 + "\n"),
    ],
)
def test_hostile_text_does_not_stall_the_rules(path: str, row: str) -> None:
    text = row * (40_000 // len(row))
    source = Source(path, text, "", parse_lines("", text), is_test=path.startswith("tests/"))
    begun = time.process_time()
    find_by_rules([source], 1)
    assert time.process_time() - begun < 5, row[:30]
