"""A row read from a table has the hash of the values that were written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decklog.core.errors import Damaged
from decklog.journal import chain
from decklog.journal.chain import EntryRange, find_mismatch
from decklog.journal.rows import COLUMNS

NUMBERS = {"pos", "seq", "iteration", "redacted"}
NEEDED = {"pos", "stream", "seq", "at", "kind"}
PLAIN: dict[str, Any] = {**dict.fromkeys(COLUMNS), "pos": 1, "stream": "s", "at": "t", "kind": "event", "redacted": 0}
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20) | st.sampled_from(['"', "\\", "\x1f\n", "\u2028", "a"])


def values_of(name: str) -> st.SearchStrategy[Any]:
    if name.endswith("_digest") or name == "hash":
        return st.none()
    plain = st.integers(0, 1) if name == "redacted" else st.integers(1, 9) if name in NUMBERS else texts
    return plain if name in NEEDED or name == "redacted" else st.none() | plain


entries = st.fixed_dictionaries({name: values_of(name) for name in COLUMNS})


def row_of(entry: dict[str, Any], previous: str, **changes: Any) -> tuple[Any, ...]:
    values = {**entry, "hash": chain.hash_entry(previous, entry), **changes}
    return tuple(values[name] for name in COLUMNS)


@given(entries, st.sampled_from(["", "0" * 64]))
def test_a_row_follows_from_the_hash_that_its_entry_was_linked_to(entry: dict[str, Any], previous: str) -> None:
    assert find_mismatch(previous, row_of(entry, previous)) is None
    assert find_mismatch("1" * 64, row_of(entry, previous)) == "hash"


@given(entries, st.sampled_from([name for name in COLUMNS if name not in {"pos", "hash"} and not name.endswith("_digest")]))
def test_a_row_does_not_follow_when_any_column_is_another(entry: dict[str, Any], name: str) -> None:
    other = (1 - entry[name] if name == "redacted" else 10) if name in NUMBERS else (entry[name] or "") + "x"
    assert find_mismatch("", row_of(entry, "", **{name: other})) == "hash"


@given(entries, st.sampled_from(["body", "payload"]))
def test_dropped_text_is_hashed_by_its_digest(entry: dict[str, Any], name: str) -> None:
    entry = {**entry, name: "some text"}
    digest = {f"{name}_digest": chain.digest("some text")}
    assert find_mismatch("", row_of(entry, "", **digest)) is None
    assert find_mismatch("", row_of(entry, "", **digest, **{name: None})) is None
    assert find_mismatch("", row_of(entry, "", **digest, **{name: "another"})) == name
    assert find_mismatch("", row_of(entry, "", **{name: None})) == "hash"


def test_a_digest_that_reads_like_more_columns_is_not_taken_for_them() -> None:
    entry: dict[str, Any] = {
        **dict.fromkeys(COLUMNS),
        "pos": 1,
        "stream": "s",
        "seq": 1,
        "at": "t",
        "kind": "event",
        "redacted": 0,
    }
    wide = row_of({**entry, "body_digest": "a", "confidence": "high"}, "")
    narrow = row_of({**entry, "body_digest": 'a","confidence":"high'}, "")
    assert wide[4] != narrow[4]
    assert find_mismatch("", narrow) is None


def test_range_with_a_gap_or_of_another_stream_is_refused() -> None:
    first = row_of({**PLAIN, "seq": 1}, "")
    second, third = (row_of({**PLAIN, "seq": seq}, first[4]) for seq in (2, 3))
    assert EntryRange.checked("s", "", [first, second]).rows == [first, second]
    with pytest.raises(Damaged, match="s:3"):
        EntryRange.checked("s", "", [first, third])
    with pytest.raises(Damaged, match="s:1"):
        EntryRange.checked("other", "", [first])


@pytest.mark.parametrize(
    ("column", "value", "what"), [("seq", None, "hash"), ("at", None, "hash"), ("body", b"x", "body"), ("payload", 7, "payload")]
)
def test_damaged_row_is_a_finding(column: str, value: object, what: str) -> None:
    row = list(row_of({**PLAIN, "seq": 1}, ""))
    row[COLUMNS.index(column)] = value
    assert find_mismatch("", tuple(row)) == what
    with pytest.raises(Damaged):
        EntryRange.checked("s", "", [tuple(row)])
