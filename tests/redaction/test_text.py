"""Texts and values as people write them, one fact each."""

import pytest

from decklog.redaction import explain, redact, scan, scan_json

_VERCEL = "vercel_" + "aB3dE5fG7hI9jK1lM3nO5pQ7" + "rS9t"


def test_a_line_break_in_the_text_does_not_change_the_kind() -> None:
    assert redact(f"secret={_VERCEL}") == "secret=[redacted:vercel-token]"
    assert redact(f"first line\nsecret={_VERCEL}\nlast line") == "first line\nsecret=[redacted:vercel-token]\nlast line"
    assert redact(f"the token {_VERCEL}\nis old") == "the token [redacted:vercel-token]\nis old"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("secret = s3cr3t" + "!", "secret = [redacted:secret]"),
        ("pwd: correct" + " horse", "pwd: [redacted:password]"),
        ("password = hunter2" + "!", "password = [redacted:password]"),
        ("the PIN is 89" + "72", "the PIN is [redacted:pin]"),
    ],
)
def test_weak_password_after_its_name_is_redacted(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_a_named_key_is_redacted_alone_and_inside_a_sentence() -> None:
    key = "api_key=" + "abcdefghijklmnopqrstuvwxyz"
    assert redact(key) == "api_key=[redacted:api-key]"
    assert redact(f"I set {key} in the config yesterday.") == "I set api_key=[redacted:api-key] in the config yesterday."


@pytest.mark.parametrize(
    "text",
    [
        "the user forgot password again",
        "password must have 8 characters",
        "the password is never logged",
        "DB_PASSWORD=settings.DB_PASSWORD",
        'API_KEY=config.get("x")',
        "password: ${DB_PASSWORD}",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "postgres://user:pass@localhost:5432/shop",
        "key = lambda row: row.name",
        "max_tokens: 4096",
        "cache key: node-modules-1f2e3d4c5b6a79880f1e2d3c4b5a6978",
    ],
)
def test_code_sentences_and_placeholders_are_left_alone(text: str) -> None:
    assert scan(text) == (text, False)


def test_a_value_found_once_is_redacted_wherever_the_text_repeats_it() -> None:
    secret = "pebble" + "99-cobalt"
    redacted = redact(f"password={secret}\nagain {secret}, and pebbles")
    assert secret not in redacted
    assert redacted.endswith(", and pebbles")


def test_keys_of_an_object_decide_about_its_values() -> None:
    document = {"password": "tulip" + "-41!", "note": "all good", "list": [{"name": "db.password", "value": "x9!kf" + "Tq2Zr"}]}
    redacted, changed = scan_json(document)
    assert changed
    assert redacted["password"] == "[redacted:password]"
    assert redacted["note"] == "all good"
    assert redacted["list"][0] == {"name": "db.password", "value": "[redacted:password]"}


def test_an_object_without_a_secret_is_returned_as_it_is() -> None:
    document = {"phase": 1, "model": "gpt-5", "steps": ["plan", {"tokens": 4096}]}
    assert scan_json(document) == (document, False)
    assert scan_json(document)[0] is document


def test_two_keys_that_become_the_same_are_both_kept() -> None:
    one, two = ("ghp_" + letter * 4 + "B3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3x" for letter in "ab")
    redacted, _ = scan_json({one: 1, two: 2})
    assert redacted == {"[redacted:github-token]": 1, "[redacted:github-token]#2": 2}


def test_an_explanation_names_the_rule_or_the_features() -> None:
    by_rule, by_name = explain(f"token {_VERCEL}\npassword=x9!kf" + "Tq2Zr")
    assert by_rule.reason == "rule vercel-token"
    assert by_name.reason == "name password"
    assert by_name.score is not None
    assert by_name.score > 0
    assert by_name.features


@pytest.mark.parametrize("word", ["passw", "pwd", "secret", "cred", "bearer", "jwt", "hmac", "crypt", "sftp", "vpn", "senha"])
def test_a_word_inside_of_an_id_announces_nothing(word: str) -> None:
    one, other = (f"lesson_01kdvdna00{text:0<16}" for text in (f"7r{word}", "g248mp5c16vzqpb"))
    for text in (f"{one} is superseded by {other}", f"{one}: {other}", f"{one}\ncommit 8f4d20a3e3fe58d3", f"{one} b829a1c0 ok"):
        assert scan(text) == (text, False)
