"""What stands around a value spares it, and what only looks like that does not."""

import pytest

from decklog.redact import redact
from decklog.redact.batch import clean_among
from decklog.redact.placeholders import is_chord

_KEY = "oEpfFDo8BJ5oRNGOx7DN" + "pETibo9Fp+MFs8I0THuY1F4="
_LINE = "JDdNLBIwAVdAKGZHOkuJWtzECVXJBBpw" + "Z43Qi4iRITinBID6k3G83g2MVKRr2lR+"
_OTHER = "MBHJxe5LyPJcCsemdoJE58i+XCF85AGt" + "lqcOqAZND0ymajQ765T9thFhAZj1DU0z"


@pytest.mark.parametrize("value", ["Ctrl+Shift+5", "Cmd-K", "<C-a>", "Alt+F4", "Ctrl+K Ctrl+S", "<Super><Shift>5", "Strg+7"])
def test_keys_that_are_pressed_together_are_a_chord(value: str) -> None:
    assert is_chord(value)


@pytest.mark.parametrize("value", ["Ctrl+" + "Shift9kQ", "Alt-" + "tree42", "C-" + "rabbit7", "shift" + "5Kpq", "K-" + "9"])
def test_words_that_begin_like_a_chord_are_none(value: str) -> None:
    assert not is_chord(value)


@pytest.mark.parametrize(
    "text",
    [
        f'verifyKey := "{_KEY}" // ed25519',
        f'signer_key = "{_KEY}" # the public half',
        f"-----BEGIN CERTIFICATE-----\n{_LINE}\n{_OTHER}\n-----END CERTIFICATE-----\nkey and password",
        f"{_LINE}\n{_OTHER}\n-----END CERTIFICATE-----\nthe key is elsewhere",
        'secret "ember-token-860g9" deleted',
        "token\t6616\npassword\t9267\nsecret\t7378",
        "NAME             UPDATED\nREDIS_PASSWORD   2025-01-29",
        "-----BEGIN PRIVATE KEY-----\n<paste the key of the relay here>\n-----END PRIVATE KEY-----",
    ],
)
def test_what_everybody_may_see_is_spared_alone_and_among_many(text: str) -> None:
    assert redact(text) == text
    assert clean_among([text]) == {text}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f'signing_key = "{_KEY}" # not the public key', _KEY),
        (f'signing_key = "{_KEY}" # private, its public key is elsewhere', _KEY),
        (f"-----BEGIN PRIVATE KEY-----\n{_LINE}\n{_OTHER}\n-----END PRIVATE KEY-----", _OTHER),
        (f"-----BEGIN CERTIFICATE-----\n{_LINE}\n-----END CERTIFICATE-----\npassword: {_KEY}", _KEY),
        ('secret "' + "hG7kQ2vX9b" + 'L4cR1p" created', "hG7kQ2vX9b" + "L4cR1p"),
        (f"-----BEGIN PRIVATE KEY-----\n<{_LINE}>\n-----END PRIVATE KEY-----", _LINE),
        ("password: " + "1990-05-12", "1990-05-12"),
        ('db_password = "' + '*HARBOR"', "HARBOR"),
        ("password: " + "id=Kx82nQ9vR", "Kx82nQ9vR"),
        ("password=" + "userid=Kx82nQ", "Kx82nQ"),
        ("the password is " + "hunter(2)", "hunter(2"),
        ('"token": "' + "HJKLMNBVCXZQWERT" + '"', "HJKLMNBVCXZQWERT"),
        ("app.db.password=" + "Garden horse battery staple", "Garden"),
        ("app.password=" + "Swordfish rules", "Swordfish"),
        ("api_key: " + "v2-" + "b98a6af85c0df02ae992b618301502681" * 2, "b98a6af85c0df"),
        ("password: " + "kelp:12:pier", "kelp:12:pier"),
        ("password\t" + "9267\nuser ana", "9267"),
        ("secret=" + "1234567890" * 4 + "\n9abcdef0123456789abcdef0123456789abcdef01", "9abcdef0"),
    ],
)
def test_what_is_secret_beside_it_is_not_spared(text: str, secret: str) -> None:
    assert secret not in redact(text)
