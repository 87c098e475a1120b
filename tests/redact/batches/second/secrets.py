"""Secrets of the second batch: contexts, names and values that the others do not have."""

import base64
import random
import string
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Case, Shape, batch, chars, listed, templates

SEED = 777_001
_WORDS = listed("juniper gravel saffron mirror kettle bridge cactus violin pebble hammer button magnet", " ")
_SEPARATORS = "-_.+*!"


def _phrase(dice: random.Random) -> str:
    words = [word.capitalize() if dice.random() < 0.5 else word for word in dice.choices(_WORDS, k=3)]
    return dice.choice(_SEPARATORS).join([*words, str(dice.randint(2, 9999))])


def _spelt(dice: random.Random) -> str:
    word = dice.choice(_WORDS)
    swapped = word.replace("i", "1").replace("e", "3").replace("a", "@")
    return f"{swapped.capitalize()}{dice.choice('!?#$%&')}{dice.randint(10, 9999)}"


def _led(signs: str) -> Shape:
    def make(dice: random.Random) -> str:
        tail = dice.choice((chars(dice, ALNUM, dice.randint(9, 15)), _spelt(dice), _phrase(dice)))
        return dice.choice(signs) + tail

    return make


def _dots(dice: random.Random) -> str:
    parts = [chars(dice, ALNUM, dice.randint(3, 7)) for _ in range(dice.randint(2, 4))]
    return ".".join(parts) + str(dice.randint(0, 9))


def _generated(dice: random.Random) -> str:
    return dice.choice(ALNUM) + chars(dice, ALNUM + "!#$%&()*+,-./:;<=>?@[]^_{|}~", dice.randint(12, 28)) + dice.choice(ALNUM)


def _tame(dice: random.Random) -> str:
    return dice.choice(ALNUM) + chars(dice, ALNUM + "!*-_+.~^", dice.randint(10, 22)) + dice.choice(ALNUM)


def _aws(dice: random.Random) -> str:
    return chars(dice, BASE64, 39) + dice.choice(ALNUM)


def _address(dice: random.Random) -> str:
    return chars(dice, ALNUM, 3) + "".join(dice.choice("/?#") + chars(dice, ALNUM, dice.randint(2, 5)) for _ in range(2))


def _marked(dice: random.Random) -> str:
    start, alphabet, length = dice.choice(
        (
            ("gh" + "u_", ALNUM, 36),
            ("gh" + "r_", ALNUM, 76),
            ("gl" + "ptt-", HEX, 40),
            ("sk-" + "ant-admin01-", ALNUM + "-_", 90),
            ("sk-" + "svcacct-", ALNUM, 60),
            ("xo" + "xp-", string.digits, 30),
            ("rk_" + "live_", ALNUM, 28),
            ("AS" + "IA", string.ascii_uppercase + "234567", 16),
            ("AI" + "za", ALNUM + "-_", 35),
            ("py" + "pi-AgEIcHlwaS5vcmc", ALNUM, 90),
            ("hv" + "s.", ALNUM, 90),
            ("gl" + "sa_", ALNUM, 32),
        )
    )
    return start + chars(dice, alphabet, length) + ("_" + chars(dice, HEX, 8) if start[:4] == "glsa" else "")


SHAPES: dict[str, Shape] = {
    "phrase": _phrase,
    "spelt": _spelt,
    "led": _led("!$%<{"),
    "led-in-shell": _led("&*("),
    "led-otherwise": _led("@#^~+=?"),
    "dots": _dots,
    "generated": _generated,
    "tame": _tame,
    "aws": _aws,
    "django": lambda dice: chars(dice, LOWER + "!@#$%^&*(-_=+)", 50),
    "hex": lambda dice: chars(dice, HEX, dice.choice((32, 40, 56, 64))),
    "base64": lambda dice: base64.b64encode(dice.randbytes(dice.choice((20, 32, 64)))).decode(),
    "urlsafe": lambda dice: base64.urlsafe_b64encode(dice.randbytes(32)).decode().rstrip("="),
    "alnum": lambda dice: chars(dice, ALNUM, dice.randint(14, 40)),
    "address": _address,
    "marked": _marked,
    "basic": lambda dice: base64.b64encode(f"robot:{_tame(dice)}".encode()).decode(),
}
_GROUPS = {
    "passwords": "phrase spelt led led led-in-shell led-otherwise dots generated tame",
    "gentle": "phrase spelt dots tame",
    "keys": "aws django hex base64 urlsafe alnum",
    "tokens": "urlsafe hex alnum marked",
}
_KEYS = listed(
    "payments client secret;oauth client secret;token signing key;data encryption key;auth0 client secret;webhook signing secret;"
    "shared secret;github app private key;laravel app key;csrf secret;master encryption key;jwt signing secret",
    ";",
)
NAMES = {
    "": listed(
        "elastic password;kibana password;oracle password;sentinel password;svc account password;tomcat password;"
        "cassandra passwd;mongo initdb root password;pgadmin default password;samba passwd;bind password;nexus admin password;"
        "zabbix pwd",
        ";",
    ),
    **dict.fromkeys(("hex", "base64", "urlsafe", "alnum"), _KEYS),
    "marked": listed("release token;slack bot token;sentry auth token;openai api key;publish token;vault token", ";"),
    "aws": listed("aws secret access key;backup aws secret access key;spaces secret key;wasabi secret access key", ";"),
    "django": listed("secret key;portal secret key;django secret key", ";"),
}
_TEMPLATES = templates("second/secrets.txt", _GROUPS)


def cases(*, seed: int = SEED, each: int = 3) -> Iterator[Case]:
    """Draw the batch."""
    return batch(_TEMPLATES, SHAPES, NAMES, seed=seed, each=each)
