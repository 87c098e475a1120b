from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.stores.memory.similarity import alike, contradiction, fingerprint, groups_of
from decklog.stores.memory.text import extract_terms, split_words

words = st.lists(st.text("bcdfghklmnprst", min_size=3, max_size=6), min_size=1, max_size=40, unique=True)


@settings(deadline=None)
@given(kept=words, data=st.data())
def test_whatever_is_near_has_all_the_terms_of_one_group(kept: list[str], data: st.DataObject) -> None:
    text = " ".join(kept)
    terms = sorted(set(extract_terms(text)))
    groups = groups_of(text)
    assert sorted(term for group in groups for term in group) == terms
    lacking = data.draw(st.sets(st.sampled_from(terms), max_size=max(len(groups) - 1, 0)))
    assert any(set(group).isdisjoint(lacking) for group in groups)


@settings(deadline=None)
@given(text=st.text(max_size=60))
def test_every_text_is_alike_to_itself(text: str) -> None:
    assert alike(text, text)
    assert fingerprint(f"  {text}\n") == fingerprint(text)
    assert contradiction(text, text) is None


@settings(deadline=None)
@given(one=words, other=words)
def test_likeness_has_no_direction(one: list[str], other: list[str]) -> None:
    assert alike(" ".join(one), " ".join(other)) == alike(" ".join(other), " ".join(one))
    assert (contradiction(" ".join(one), " ".join(other)) is None) == (contradiction(" ".join(other), " ".join(one)) is None)


@settings(deadline=None)
@given(said=words, place=st.integers(0, 39), word=st.text("vwxz", min_size=3, max_size=6))
def test_one_more_word_that_says_something_makes_another_lesson(said: list[str], place: int, word: str) -> None:
    other = [*said[:place], word, *said[place:]]
    assert Counter(said) != Counter(other)
    assert not alike(" ".join(said), " ".join(other))


@pytest.mark.parametrize(
    ("one", "other", "about"),
    [
        ("Turn the cache on in CI", "Turn the build cache off in CI", "on / off"),
        ("Files are closed by the pool", "Files are not closed by the pool", "nothing / not"),
        ("Listen on port 5432", "Listen on port 5433", "5432 / 5433"),
        ("Use ruff for the format of all code", "Use black for the format of all code", "ruff / black"),
    ],
)
def test_a_contradiction_names_what_differs(one: str, other: str, about: str) -> None:
    assert contradiction(one, other) == about


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tests in test_login.py need the mail server", "Retry a refused connection with a growing pause"),
        ("test_login.py needs the mail server to be up", "test_logout.py needs the mail server to be up"),
        ("Pin the base image by its digest", "Sort names with an explicit collation, by digest"),
    ],
)
def test_lessons_about_different_things_do_not_contradict_each_other(one: str, other: str) -> None:
    assert contradiction(one, other) is None


def test_identifiers_come_whole_and_in_parts() -> None:
    assert split_words("HTTPServerError in test_login.py (utf8)") == [
        *("httpservererror", "http", "server", "error", "test", "login", "py", "utf8", "utf", "8")
    ]
    assert split_words("It doesn't, can't and won't do") == ["not", "not", "not"]
    assert split_words("Zürich 数据库") == ["zürich", "数据库"]
