"""Secrets of the first batch."""

import base64
import random
import string
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Case, Shape, batch, chars, templates

SEED = 20_261
_SIGNS = "!$%^&*()-_=+?.,:~@#"
_NOUNS = [
    "harbor",
    "pepper",
    "velvet",
    "marble",
    "rocket",
    "anchor",
    "walnut",
    "copper",
    "thunder",
    "lantern",
    "meadow",
    "falcon",
]


def _noun(dice: random.Random) -> str:
    return dice.choice(_NOUNS)


def _begins(signs: str) -> Shape:
    """Make passwords that begin with one of some signs."""
    return lambda dice: (
        dice.choice(signs) + chars(dice, ALNUM, 5) + dice.choice(signs + "!") + chars(dice, ALNUM, dice.randint(4, 9))
    )


def _mixed(dice: random.Random) -> str:
    middle = chars(dice, ALNUM + _SIGNS, dice.randint(9, 20))
    return dice.choice(string.ascii_letters) + middle + dice.choice(ALNUM)


def _dotted(dice: random.Random) -> str:
    first = _noun(dice).capitalize() + str(dice.randint(10, 99))
    return dice.choice((f"{first}.{_noun(dice)}.{dice.randint(100, 999)}", f"{chars(dice, LOWER, 4)}.{chars(dice, ALNUM, 7)}9"))


def _human(dice: random.Random) -> str:
    noun = _noun(dice)
    return dice.choice(
        (
            f"{noun.capitalize()}{dice.randint(1960, 2030)}!",
            f"{noun.replace('a', '4').replace('e', '3').replace('o', '0')}_{dice.randint(10, 99)}",
            f"{noun}-{_noun(dice)}-{_noun(dice)}-{dice.randint(2, 99)}",
            f"{noun.upper()}#{dice.randint(100, 99999)}",
        )
    )


def _aws(dice: random.Random) -> str:
    pieces = [chars(dice, ALNUM, 9), chars(dice, BASE64, 12), chars(dice, ALNUM, 17)]
    return "/".join(pieces)


def _django(dice: random.Random) -> str:
    return chars(dice, LOWER + "!@#$%^&*(-_=+)", 50)


def _jwt(dice: random.Random) -> str:
    claims = f'{{"sub":"{dice.randint(10**8, 10**9)}","iat":{dice.randint(10**9, 2 * 10**9)}}}'
    parts = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg":"HS256"}', claims)]
    return ".".join([*parts, chars(dice, ALNUM + "-_", 43)])


def _url_signs(dice: random.Random) -> str:
    return chars(dice, ALNUM, 4) + dice.choice("#?/") + chars(dice, ALNUM, 4) + dice.choice("#?/!") + chars(dice, ALNUM, 4)


def _provider(dice: random.Random) -> str:
    start, alphabet, length = dice.choice(
        (
            ("gh" + "p_", ALNUM, 36),
            ("gh" + "s_", ALNUM, 36),
            ("gl" + "pat-", ALNUM + "-_", 20),
            ("sk-" + "ant-api03-", ALNUM + "-_", 95),
            ("sk-" + "proj-", ALNUM, 48),
            ("xo" + "xb-", string.digits, 24),
            ("sk_" + "live_", ALNUM, 24),
            ("np" + "m_", ALNUM, 36),
            ("AK" + "IA", string.ascii_uppercase + "234567", 16),
            ("h" + "f_", string.ascii_letters, 34),
            ("dop" + "_v1_", HEX, 64),
            ("S" + "G.", ALNUM, 22),
        )
    )
    tail = "." + chars(dice, ALNUM, 43) if start == "SG." else ""
    return start + chars(dice, alphabet, length) + tail


SHAPES: dict[str, Shape] = {
    "sign first": _begins("!$%<{"),
    "shell sign first": _begins("&*("),
    "other sign first": _begins("@#^~+=-?["),
    "mixed": _mixed,
    "dotted": _dotted,
    "human": _human,
    "aws": _aws,
    "django": _django,
    "jwt": _jwt,
    "hex": lambda dice: chars(dice, HEX, dice.choice((24, 32, 40, 64))),
    "base64": lambda dice: base64.b64encode(dice.randbytes(dice.choice((24, 32, 48)))).decode(),
    "alnum": lambda dice: chars(dice, ALNUM, dice.randint(16, 48)),
    "uuid": lambda dice: "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12)),
    "url signs": _url_signs,
    "plain url": lambda dice: chars(dice, ALNUM, dice.randint(8, 22)),
    "provider": _provider,
}
_SHAPE_OF = {name.replace(" ", "-"): shape for name, shape in SHAPES.items()}
_GROUPS = {
    "passwords": "sign-first sign-first shell-sign-first other-sign-first mixed mixed dotted human human",
    "keys": "aws django hex base64 alnum mixed",
    "tokens": "jwt hex alnum uuid provider",
}
_PASSWORDS = [
    "smtp password",
    "grafana admin password",
    "keystore pass",
    "ldap bind password",
    "vault passphrase",
    "sa password",
    "mysql root password",
    "rabbitmq default pass",
    "replication password",
    "ftp passwd",
    "wifi password",
    "backup passphrase",
    "influxdb admin password",
    "truststore password",
    "imap password",
    "superuser password",
]
_KEYS = [
    "app secret",
    "session secret",
    "jwt secret",
    "secret key base",
    "encryption key",
    "api secret",
    "consumer secret",
    "client secret",
    "rails master key",
    "webhook secret",
    "cookie secret",
    "hmac secret",
    "signing secret",
    "nextauth secret",
]
_TOKENS = [
    "api token",
    "bot token",
    "access token",
    "refresh token",
    "private token",
    "deploy token",
    "registry token",
    "gitlab token",
    "telegram bot token",
    "influx token",
    "ci job token",
    "api key",
    "datadog api key",
    "auth token",
]
NAMES = {
    "": _PASSWORDS,
    **dict.fromkeys(("hex", "base64", "alnum"), _KEYS),
    **dict.fromkeys(("jwt", "uuid", "provider"), _TOKENS),
    "aws": ["aws secret access key", "aws secret key", "s3 secret key", "minio secret key", "secret access key"],
    "django": ["secret key", "django secret key", "app secret key"],
}

_TEMPLATES = templates("first/secrets.txt", _GROUPS)


def _basic(dice: random.Random) -> str:
    return base64.b64encode(f"svc_{_noun(dice)}:{_mixed(dice)}".encode()).decode()


def _safe(dice: random.Random) -> str:
    """Make a password without the signs that end a value in connection strings, commands and templates."""
    return dice.choice(string.ascii_letters) + chars(dice, ALNUM + "!%^*-_+.,~@#", dice.randint(9, 18)) + dice.choice(ALNUM)


def cases(*, seed: int = SEED, each: int = 3) -> Iterator[Case]:
    """Draw the batch."""
    return batch(_TEMPLATES, {**_SHAPE_OF, "basic": _basic, "mixed-safe": _safe}, NAMES, seed=seed, each=each)
