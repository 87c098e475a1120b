"""What holds for every text and value."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.redaction import clean_texts, redact, scan, scan_json
from tests.redaction import corpus
from tests.redaction.obstacles import OBSTACLES
from tests.searches import FULL, examples

_SAMPLES = [one for one in corpus.secrets("held_out", "writer-e") if len(one.value) > 7 and one.text.count(one.value) == 1]
_SHORT = [one.text for one in _SAMPLES if len(one.text) < 100][:50]
_NOISE = st.sampled_from(
    [
        *("password", "token", "secret", "key", "cookie: ", "Bearer ", "curl -u a:", "sk-", "eyJ", "x1", "aB3dE5fG7hI9"),
        *("=", ":", '"', "'", "\\", "\\n", "\n", "\r\n", " ", "--", "://", "@", "{", "}", "]", ",", "."),
        *("\x1b[31m", "\x1b", "\x00", "\ud800", "é", "中", "\\u0067", "%3D", "&quot;"),
        *("[redacted:token]", "[redacted:", "-----BEGIN RSA PRIVATE KEY-----"),
    ]
)
_TEXTS = st.lists(st.one_of(_NOISE, st.text(max_size=8), st.sampled_from(_SHORT)), max_size=12).map("".join)
_KEYS = st.one_of(st.text(max_size=6), st.sampled_from(["password", "accessToken", "note", "DB_PASSWORD", "max_tokens", "key"]))
_VALUES = st.recursive(
    st.one_of(_TEXTS, st.none(), st.booleans(), st.integers()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(_TEXTS)
def test_any_text_can_be_redacted(text: str) -> None:
    once, changed = scan(text)
    assert changed == (once != text)


@settings(max_examples=examples(150), deadline=None)
@given(_VALUES)
def test_any_value_can_be_redacted_and_keeps_its_shape(value: Any) -> None:
    redacted, changed = scan_json(value)
    assert changed == (redacted is not value)
    if isinstance(value, dict | list):
        assert len(redacted) == len(value)


@pytest.mark.slow
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_secrets_are_found_through_an_obstacle(obstacle: str) -> None:
    samples = _SAMPLES if FULL else _SAMPLES[len(obstacle) % 3 :: 3]
    missed = []
    for sample in samples:
        hidden = OBSTACLES[obstacle](sample, random.Random(sample.text))
        redacted = redact(hidden)
        if redacted == hidden or (sample.value[-8:] in redacted and sample.value[-8:] not in sample.around):
            missed.append((sample.value, hidden, redacted))
    assert len(missed) <= len(samples) * 0.04 + 1, missed


@pytest.mark.parametrize("sample", _SAMPLES[::9], ids=lambda one: one.kind)
def test_text_around_a_secret_is_kept(sample: corpus.Secret) -> None:
    redacted = redact(f"first line of it all\n{sample.text}\nlast line of it all")
    assert redacted.startswith("first line of it all\n")
    assert redacted.endswith("\nlast line of it all")


@pytest.mark.slow
def test_redacting_twice_changes_nothing_more() -> None:
    redacted = [redact(sample.text) for sample in _SAMPLES]
    again = [(text, redact(text)) for text in redacted if redact(text) != text]
    assert again == []


def test_of_many_texts_those_without_a_secret_are_clean() -> None:
    texts = [one.text for one in _SAMPLES[:60]] + list(corpus.clean("held_out", "writer-e"))[:60]
    assert clean_texts(texts) == {text for text in texts if not scan(text)[1]}


@pytest.mark.parametrize("depth", range(3))
def test_a_quote_escaped_within_a_value_does_not_end_it(depth: int) -> None:
    text = json.dumps({"password": 'ab"cd' + "7!ef", "mode": 'a"b'})
    expected = json.dumps({"password": "[redacted:password]", "mode": 'a"b'})
    for _ in range(depth):
        text, expected = json.dumps({"log": text}), json.dumps({"log": expected})
    assert redact(text) == expected
