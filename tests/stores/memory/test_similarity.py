from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.stores.memory.similarity import THRESHOLD, alike, fingerprint, groups_of, similarity
from decklog.stores.memory.tokens import words_of

words = st.lists(st.text("bcdfghklmnprst", min_size=3, max_size=6), min_size=1, max_size=40, unique=True)


@settings(deadline=None)
@given(kept=words, data=st.data())
def test_whatever_is_alike_has_all_the_words_of_one_group(kept: list[str], data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, len(kept) - 1))
    added = data.draw(st.lists(st.text("vwxz", min_size=3, max_size=6), max_size=8, unique=True))
    text, other = " ".join(kept), " ".join(kept[left_out:] + added)
    groups = groups_of(text)
    assert sorted(word for group in groups for word in group) == sorted(set(words_of(text)))
    if similarity(text, other) >= THRESHOLD:
        assert any(set(group) <= set(words_of(other)) for group in groups)


@settings(deadline=None)
@given(text=st.text(max_size=60))
def test_every_text_is_alike_to_itself(text: str) -> None:
    assert alike(text, text)
    assert fingerprint(f"  {text}\n") == fingerprint(text)


@settings(deadline=None)
@given(one=words, other=words)
def test_likeness_has_no_direction(one: list[str], other: list[str]) -> None:
    assert alike(" ".join(one), " ".join(other)) == alike(" ".join(other), " ".join(one))


def test_identifiers_come_whole_and_in_parts() -> None:
    assert words_of("HTTPServerError in test_login.py (utf8)") == [
        *("httpservererror", "http", "server", "error", "test", "login", "py", "utf8", "utf", "8")
    ]
    assert words_of("It doesn't, can't and won't do") == []
    assert words_of("Zürich 数据库") == ["zürich", "数据库"]
