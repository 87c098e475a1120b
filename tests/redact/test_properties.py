"""What holds for every text and value, not only for those in the corpora."""

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.redact import may_hold_secret, redact, scan, scan_value
from tests.redact.secrets import Secret, placed, tokens
from tests.searches import examples

_SAMPLES = [*tokens(3), *placed(3)]
_NOISE = st.sampled_from(
    [
        *(
            "password",
            "token",
            "secret",
            "key",
            "cookie: ",
            "Bearer ",
            "curl -u a:",
            "sk-",
            "eyJ",
            "x1",
            "aB3dE5fG7hI9",
        ),
        *("=", ":", '"', "'", "\\", "\\n", "\n", "\r\n", " ", "--", "://", "@", "{", "}", "]", ",", "."),
        *("\x1b[31m", "\x1b", "\x00", "\ud800", "é", "中", "\\u0067", "%3D", "&quot;"),
        *("[redacted:token]", "[redacted:", "-----BEGIN RSA PRIVATE KEY-----"),
    ]
)
_PARTS = st.lists(st.one_of(_NOISE, st.text(max_size=8), st.sampled_from([s.text for s in _SAMPLES])), max_size=12)
_TEXTS = _PARTS.map("".join)
_KEYS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["password", "accessToken", "note", "DB_PASSWORD", "max_tokens", "key"]),
)
_VALUES = st.recursive(
    st.one_of(_TEXTS, st.none(), st.booleans(), st.integers(), st.sampled_from([s.secret for s in _SAMPLES])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(_TEXTS)
def test_any_text_can_be_redacted_and_a_second_time_changes_nothing(text: str) -> None:
    once, changed = scan(text)
    assert changed == (once != text)
    assert redact(once) == once


@settings(max_examples=examples(150), deadline=None)
@given(_TEXTS)
def test_a_text_that_may_not_hold_a_secret_is_left_alone(text: str) -> None:
    if not may_hold_secret(text):
        assert scan(text) == (text, False)


@settings(max_examples=examples(200), deadline=None)
@given(_VALUES)
def test_a_value_whose_json_may_not_hold_a_secret_is_left_alone(value: Any) -> None:
    redacted, changed = scan_value(value)
    assert changed == (redacted != value)
    assert changed or redacted is value
    if changed:
        assert may_hold_secret(json.dumps(value, ensure_ascii=False))


@settings(max_examples=examples(150), deadline=None)
@given(_VALUES)
def test_redacting_a_value_twice_changes_nothing_more(value: Any) -> None:
    once, _ = scan_value(value)
    again, changed = scan_value(once)
    assert not changed
    assert again is once


@settings(max_examples=examples(200), deadline=None)
@given(_VALUES, st.sampled_from(_SAMPLES), st.integers(0, 3), st.booleans())
def test_a_json_document_stays_one_at_every_depth(value: Any, sample: Secret, depth: int, is_ascii: bool) -> None:
    document = {"a": value, "b": sample.text, "c": ["x", sample.secret]}
    text = json.dumps(document, ensure_ascii=is_ascii)
    for _ in range(depth):
        text = json.dumps({"inner": text, "more": [1, None]}, ensure_ascii=is_ascii)
    inner = redact(text)
    for _ in range(depth):
        inner = json.loads(inner)["inner"]
    assert set(json.loads(inner)) == {"a", "b", "c"}


@settings(max_examples=examples(100), deadline=None)
@given(st.text())
def test_text_without_names_or_marks_is_never_changed(text: str) -> None:
    plain = "".join(char for char in text if char not in "=:@-_$%&\\{<>")
    words = " ".join(plain[place : place + 9] for place in range(0, len(plain), 9))
    assert scan(words) == (words, False) or "pass" in words.lower()


def test_what_is_found_does_not_depend_on_what_was_seen_before() -> None:
    texts = [sample.text for sample in _SAMPLES]
    first = [redact(text) for text in texts]
    random.Random(1).shuffle(texts)
    again = {text: redact(text) for text in texts}
    assert [again[sample.text] for sample in _SAMPLES] == first
