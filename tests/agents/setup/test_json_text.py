"""JSON edited as text: what is put in comes out again, and nothing else is touched."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.agents.setup.json_text import NotJson, parse, plan_insertions, remove_element, with_insertions, without_insertions
from decklog.core.errors import Conflict

SCALARS = st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=6)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
BLANKS = st.sampled_from(["", " ", "\n", "\r\n  ", "\t", ' // it\'s "a" comment,\n', "/* a } ] */", "\n  // alone\n  "])


@st.composite
def texts(draw: st.DrawFn, value: Any) -> str:
    """Write a value as somebody might: any blanks and comments between its parts, and commas before brackets."""

    def write(one: Any) -> str:
        if isinstance(one, dict):
            parts = [f"{json.dumps(key)}{draw(BLANKS)}:{draw(BLANKS)}{write(inner)}" for key, inner in one.items()]
            return "{" + enclosed(parts) + "}"
        return "[" + enclosed([write(inner) for inner in one]) + "]" if isinstance(one, list) else json.dumps(one)

    def enclosed(parts: list[str]) -> str:
        text = ",".join(f"{draw(BLANKS)}{part}{draw(BLANKS)}" for part in parts) or draw(BLANKS)
        return text + ("," + draw(BLANKS) if parts and draw(st.booleans()) else "")

    return draw(st.sampled_from(["", "\ufeff"])) + draw(BLANKS) + write(value) + draw(BLANKS)


HOOKS = st.dictionaries(st.sampled_from(["Stop", "SessionStart"]), st.lists(VALUES, max_size=2), max_size=2)
DOCUMENTS = st.one_of(
    st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), VALUES, max_size=3),
    st.builds(lambda rest, hooks: {**rest, "hooks": hooks}, st.dictionaries(st.text(max_size=4), VALUES, max_size=2), HOOKS),
)
ADDITION = {"hooks": {"Stop": [{"hooks": ["ours"]}], "Other": [{"hooks": ["ours"]}, 2]}}


@given(VALUES.flatmap(lambda value: st.tuples(st.just(value), texts(value))))
def test_a_text_is_read_as_what_it_says_whatever_stands_between(case: tuple[Any, str]) -> None:
    value, text = case
    assert parse(text).value == value


@given(VALUES)
def test_plain_json_is_read_as_others_read_it(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False, indent="\t")):
        assert parse(text).value == json.loads(text)


@given(DOCUMENTS.flatmap(lambda value: st.tuples(st.just(value), texts(value))))
def test_what_was_put_in_comes_out_again_and_the_text_is_the_same(case: tuple[dict[str, Any], str]) -> None:
    value, text = case
    insertions = plan_insertions(text, ADDITION)
    longer = with_insertions(text, insertions)
    found = parse(longer).value
    hooks = value.get("hooks", {})
    assert found["hooks"].pop("Other") == ADDITION["hooks"]["Other"]
    assert found["hooks"].pop("Stop") == [*hooks.get("Stop", []), *ADDITION["hooks"]["Stop"]]
    rest = {name: inner for name, inner in hooks.items() if name != "Stop"}
    assert found == {**value, "hooks": rest}
    assert without_insertions(longer, insertions) == text


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_an_element_taken_out_leaves_its_neighbours(items: list[Any], data: st.DataObject) -> None:
    text = data.draw(texts({"a": items, "b": {str(number): item for number, item in enumerate(items)}}))
    number = data.draw(st.integers(0, len(items) - 1))
    found = parse(remove_element(remove_element(text, ("a", number)), ("b", str(number)))).value
    assert found["a"] == items[:number] + items[number + 1 :]
    assert list(found["b"].values()) == found["a"]


@given(st.lists(st.integers(), min_size=1, max_size=4), st.data())
def test_comments_around_what_is_taken_out_stay(items: list[int], data: st.DataObject) -> None:
    text = data.draw(texts(items))
    left = remove_element(text, [data.draw(st.integers(0, len(items) - 1))])
    for comment in ("// alone", "it's", "/* a } ] */"):
        assert left.count(comment) == text.count(comment)


def test_an_element_goes_with_its_line_and_comments_stay() -> None:
    text = '{\n  // first\n  "ours": [\n    1\n  ],\n  "b": 2, // second\n  "more": 3\n}\n'
    assert remove_element(text, ["ours"]) == '{\n  // first\n  "b": 2, // second\n  "more": 3\n}\n'
    assert remove_element(text, ["more"]) == '{\n  // first\n  "ours": [\n    1\n  ],\n  "b": 2 // second\n}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "a": [\n    1\n  ]\n}'),
        ('{"b":1}', '{"b":1, "a": [1]}'),
        ('{\n    "b": 1\n}\n', '{\n    "b": 1,\n    "a": [\n        1\n    ]\n}\n'),
        ('{\r\n\t"b": 1, // last\r\n}\r\n', '{\r\n\t"b": 1, // last\r\n\t"a": [\r\n\t\t1\r\n\t],\r\n}\r\n'),
        ('{\n  "b": 1 // last\n}', '{\n  "b": 1, // last\n  "a": [\n    1\n  ]\n}'),
        ('\ufeff{\n  "a": []\n}', '\ufeff{\n  "a": [\n    1\n  ]\n}'),
        ('{"a": [0]}', '{"a": [0, 1]}'),
    ],
)
def test_an_addition_is_written_as_the_rest_is(text: str, expected: str) -> None:
    assert with_insertions(text, plan_insertions(text, {"a": [1]})) == expected


@pytest.mark.parametrize(
    "text", ["", "{", '{"a" 1}', '{"a": 1 "b": 2}', "{} x", "[1,,2]", "{'a': 1}", "/*", '{"a": nan}', '"\\x"', "[" * 500]
)
def test_what_is_no_json_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(NotJson, match="at line 1, column"):
        parse(text)


def test_an_addition_that_finds_something_else_in_its_place_is_refused() -> None:
    for text in ('{"hooks": "none"}', '{"hooks": {"Stop": {}}}', "[]", '{"hooks": null}'):
        with pytest.raises(Conflict, match="nothing can be added to it"):
            plan_insertions(text, ADDITION)


def test_insertions_that_do_not_stand_there_any_more_are_not_taken_out() -> None:
    assert without_insertions("abXc", [(2, "X")]) == "abc"
    assert without_insertions("aXbc", [(2, "X")]) is None
