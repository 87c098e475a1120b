"""Secrets to mend the rules by: every shape of value that has leaked, in every context it was met in."""

import base64
import random
import string
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Case, Shape, batch, chars, listed, templates

_WORDS = listed("orchid tiger summer dragon coffee monday winter soccer purple ginger banana castle", " ")


def _word(dice: random.Random) -> str:
    return dice.choice(_WORDS)


def _led(signs: str) -> Shape:
    """Make passwords that begin with one of some signs, long and short, random and not."""
    return lambda dice: (
        dice.choice(signs)
        + dice.choice(
            (
                chars(dice, ALNUM, dice.randint(7, 14)),
                f"{_word(dice).capitalize()}{dice.randint(10, 999)}",
                f"{chars(dice, ALNUM, 3)}{dice.choice('!%*.')}{chars(dice, ALNUM, 6)}",
            )
        )
    )


def _human(dice: random.Random) -> str:
    word, other = _word(dice), _word(dice)
    return dice.choice(
        (
            f"{word}{dice.randint(1, 9999)}",
            f"{word.capitalize()}@{dice.randint(1, 9999)}",
            f"{word.capitalize()}{other.capitalize()}{dice.randint(10, 99)}!",
            f"{word}_{other}_{dice.randint(1, 999)}",
            f"P@ssw0rd{dice.randint(1, 99)}",
            f"{word}{other}",
        )
    )


def _dotted(dice: random.Random) -> str:
    return dice.choice(
        (
            f"{_word(dice)}.{_word(dice)}{dice.randint(10, 99)}",
            f"{chars(dice, ALNUM, 5)}.{chars(dice, ALNUM, 8)}",
            f"{_word(dice).capitalize()}.{dice.randint(1900, 2030)}",
        )
    )


def _aws(dice: random.Random) -> str:
    value = chars(dice, BASE64, 38)
    place = dice.randint(0, 30)
    return value[:place] + "/" + value[place:] + chars(dice, ALNUM, 1)


def _provider(starts: dict[str, tuple[str, int]]) -> Shape:
    def make(dice: random.Random) -> str:
        start = dice.choice(list(starts))
        return start + chars(dice, *starts[start])

    return make


# A mark that no word ends in is a token's even in the middle of a word.
_STRONG = {
    "gh" + "o_": (ALNUM, 36),
    "github" + "_pat_": (ALNUM, 80),
    "gl" + "pat-": (ALNUM, 20),
    "xo" + "xp-": (string.digits + "-", 40),
    "dck" + "r_pat_": (ALNUM, 27),
}
_MARKED = _STRONG | {
    "sk-" + "ant-oat01-": (ALNUM, 80),
    "sk-" + "or-v1-": (HEX, 64),
    "rk_" + "live_": (ALNUM, 24),
    "AS" + "IA": (string.ascii_uppercase + "234567", 16),
    "np" + "m_": (ALNUM, 36),
    "AI" + "za": (ALNUM, 35),
    "sk" + "-": (ALNUM, 48),
    "h" + "f_": (string.ascii_letters, 34),
    "gs" + "k_": (ALNUM, 52),
}


def _jwt(dice: random.Random) -> str:
    parts = [
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (b'{"typ":"JWT"}', b'{"id":"%d"}' % dice.randint(1, 10**9))
    ]
    return ".".join([*parts, chars(dice, ALNUM, 43)])


def _cleaned(signs: str) -> Shape:
    return lambda dice: dice.choice(string.ascii_letters) + chars(dice, ALNUM + signs, 14) + dice.choice(ALNUM)


SHAPES: dict[str, Shape] = {
    "sign-first": _led("!$%<{"),
    "shell-sign-first": _led("&*("),
    "other-sign-first": _led("@#^~+=?-"),
    "signs-inside": lambda dice: chars(dice, ALNUM, 4) + dice.choice("&*();|,<>#%") + chars(dice, ALNUM, 6),
    "mixed": _cleaned("!@#$%^&*()-_=+?.,:~"),
    "mixed-safe": _cleaned("!^*-_+.~@#"),
    "mixed-semi": _cleaned("!$%^&*()-_+?.,:~@#"),
    "mixed-url": _cleaned("!$%^&*()-_+.,~#?/"),
    "dotted": _dotted,
    "human": _human,
    "aws": _aws,
    "django": lambda dice: chars(dice, LOWER + "!@#$%^&*(-_=+)", 50),
    "jwt": _jwt,
    "hex": lambda dice: chars(dice, HEX, dice.choice((16, 32, 48, 64))),
    "base64": lambda dice: base64.b64encode(dice.randbytes(dice.choice((16, 32, 64)))).decode(),
    "alnum": lambda dice: chars(dice, ALNUM, dice.randint(12, 60)),
    "uuid": lambda dice: "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12)),
    "plain-url": lambda dice: chars(dice, ALNUM, dice.randint(6, 24)),
    "url-signs": lambda dice: chars(dice, ALNUM, dice.randint(1, 5)) + dice.choice("#?/") + chars(dice, ALNUM + "#?/", 7),
    "provider": _provider(_MARKED),
    "strong-provider": _provider(_STRONG),
}
_GROUPS = {
    "passwords": "sign-first shell-sign-first other-sign-first signs-inside mixed dotted human",
    "keys": "aws django hex base64 alnum",
    "tokens": "jwt hex alnum uuid provider",
}
_PASSWORDS = listed("db password;postgres password;admin passwd;redis password;userpass;key passphrase;pgpassword;root pwd", ";")
_KEYS = listed("client secret;jwt secret key;api secret;secret key;oauth secret;encryption key;secret;signing key", ";")
_TOKENS = listed("access token;github token;api token;auth token;npm token;api key;bearer token;token", ";")
NAMES = {
    "": _PASSWORDS,
    **dict.fromkeys(("hex", "base64", "alnum", "django"), _KEYS),
    **dict.fromkeys(("jwt", "uuid", "provider"), _TOKENS),
    "django": ["secret key", "site secret key"],
    "aws": ["aws secret access key", "secret access key", "aws secret key"],
}
_TEMPLATES = templates("tuning/secrets.txt", _GROUPS)


def cases(*, seed: int, each: int = 2) -> Iterator[Case]:
    """Draw the batch."""
    return batch(_TEMPLATES, SHAPES, NAMES, seed=seed, each=each)
