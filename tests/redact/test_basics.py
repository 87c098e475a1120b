"""The first promises of redaction: what it replaces, what it leaves, and that values keep their shape."""

import json

import pytest

from decklog.redact import RULES, redact, scan, scan_value, values

TOKEN = "gh" + "p_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"use {TOKEN} now", "use [redacted:github-token] now"),
        ('"password": "x"', '"password": "[redacted:password]"'),
        ("DB_PASSWORD=hunter2", "DB_PASSWORD=[redacted:password]"),
        ("postgres://ana:s3cr3t@db/x", "postgres://ana:[redacted:url-password]@db/x"),
        ("curl -u bob:hunter2 http://x", "curl -u bob:[redacted:command-password] http://x"),
    ],
)
def test_a_secret_is_replaced_by_a_marker_that_names_its_kind(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize("text", ["pwd=/home/u", "secret: none", "password: str", "max_tokens: 4096", "sk-circle"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert scan(text) == (text, False)


def test_a_key_that_names_a_secret_gives_its_value_away() -> None:
    value = {"user": "ana", "accessToken": "harmless", "nested": [{"DB_PASSWORD": "swordfish"}]}
    redacted, changed = scan_value(value)
    assert changed
    assert redacted == {
        "user": "ana",
        "accessToken": "[redacted:token]",
        "nested": [{"DB_PASSWORD": "[redacted:password]"}],
    }


def test_a_value_without_secrets_comes_back_as_the_same_object() -> None:
    value = {"a": ["b", {"c": 1}], "password": "${DB_PASSWORD}"}
    redacted, changed = scan_value(value)
    assert redacted is value
    assert not changed


def test_keys_that_redact_to_the_same_text_are_both_kept() -> None:
    other = TOKEN[:-1] + "9"
    redacted, _ = scan_value({TOKEN: 1, other: 2})
    assert sorted(redacted.values()) == [1, 2]
    assert all(key.startswith("[redacted:github-token]") for key in redacted)


def test_five_hundred_levels_are_no_danger() -> None:
    value: object = TOKEN
    for _ in range(500):
        value = [value]
    redacted, changed = scan_value(value)
    assert changed
    for _ in range(500):
        assert isinstance(redacted, list)
        redacted = redacted[0]
    assert redacted == "[redacted:github-token]"


def test_the_table_knows_at_least_eighty_kinds() -> None:
    assert len({rule.name for rule in RULES}) >= 80


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("password", ["hunter2\\", "hunter2\\\\", 'hun"ter2', 'hunter2\\"x', "hunter2"])
def test_a_backslash_at_the_end_of_a_value_does_not_take_what_follows_with_it(password: str, depth: int) -> None:
    text = json.dumps({"0": {"password": password}, "b": "kept"})
    for _ in range(depth):
        text = json.dumps({"inner": text})
    told = redact(text)
    for _ in range(depth):
        told = json.loads(told)["inner"]
    assert json.loads(told)["b"] == "kept"
    assert "hunter2" not in told


def test_what_documentation_gives_to_everybody_stays() -> None:
    for known in values._DOCUMENTED:
        text = f"The documentation has this token:\n{known}\n"
        text += f"Mnemonic: {known}" if " " in known else f"Authorization: Basic {known}"
        assert redact(text) == text
