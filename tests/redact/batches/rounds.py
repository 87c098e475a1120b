"""Rounds of our own: kinds of text that no batch had, each written whole before it was tried."""

import random
import string
from collections.abc import Iterator
from pathlib import Path

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Case, Shape, chars

ROUNDS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twentyfirst",
    "twentysecond",
    "twentythird",
    "twentyfourth",
    "twentyfifth",
    "twentysixth",
    "twentyseventh",
    "twentyeighth",
    "twentyninth",
    "thirtieth",
    "thirtyfirst",
    "thirtysecond",
    "thirtythird",
    "thirtyfourth",
)
_HERE = Path(__file__).parent / "own"
_WORDS = (_HERE / "words.txt").read_text(encoding="utf-8").split()
_BASE32 = string.ascii_uppercase + "234567"
_BASE58 = "".join(sorted(set(ALNUM) - set("0OIl")))
_NOT_SHOWN = str.maketrans({"⏎": "\n", "⇥": "\t", "␛": "\x1b"})


def _mixed(dice: random.Random, length: int, signs: str = "") -> str:
    """Draw a value with each kind of character in it, of which the first is a letter."""
    kinds = [string.ascii_uppercase, string.ascii_lowercase, string.digits, string.digits, string.ascii_lowercase, *signs]
    drawn = [dice.choice(kind) for kind in kinds] + list(chars(dice, ALNUM, length - len(kinds)))
    dice.shuffle(drawn)
    return dice.choice(string.ascii_letters) + "".join(drawn)


def _phrase(dice: random.Random) -> str:
    words = [*dice.sample(_WORDS, 3), str(dice.randint(10, 99))]
    dice.shuffle(words)
    return " ".join(words if words[0].isalpha() else words[::-1])


def _leet(dice: random.Random) -> str:
    """Draw a word with numbers in place of some of its letters."""
    word = dice.choice([word for word in _WORDS if "o" in word or "a" in word])
    return word.replace("o", "0", 1).replace("a", "4", 1).capitalize()


_SHAPES: dict[str, Shape] = {
    "an10": lambda dice: _mixed(dice, 9),
    "an16": lambda dice: _mixed(dice, 15),
    "an20": lambda dice: _mixed(dice, 19),
    "an32": lambda dice: _mixed(dice, 31),
    "an40": lambda dice: _mixed(dice, 39),
    "aws": lambda dice: chars(dice, BASE64, 40),
    "b64": lambda dice: chars(dice, BASE64, 43) + "=",
    "base32": lambda dice: "3" + chars(dice, _BASE32, 31),
    "back": lambda dice: "\\" + dice.choice("bfrkzQ") + _mixed(dice, 9, "^"),
    "braced": lambda dice: f"{{{_mixed(dice, 6)}}}{_mixed(dice, 5, '!')}",
    "bytes": lambda dice: " ".join(chars(dice, HEX, 2) for _ in range(16)),
    "cjk": lambda dice: f"密码{chars(dice, string.ascii_lowercase, 2)}Jy{chars(dice, string.ascii_lowercase, 1)}HWb測試",
    "code": lambda dice: (
        f"k{dice.randint(2, 9)}{chars(dice, string.ascii_lowercase, 2)}{dice.randint(2, 9)}-9xw{chars(dice, LOWER, 2)}"
    ),
    "colons": lambda dice: ":".join(chars(dice, HEX, 2) for _ in range(32)),
    "comma": lambda dice: f"{chars(dice, string.ascii_lowercase, 1)},{_mixed(dice, 9, '!')}",
    "commas": lambda dice: ", ".join("0x" + chars(dice, HEX, 2) for _ in range(16)),
    "digits": lambda dice: chars(dice, "346789", 6),
    "eights": lambda dice: f"{chars(dice, '3456789', 4)} {chars(dice, '3456789', 4)}",
    "five": lambda dice: f"{dice.randint(10, 99)}{chars(dice, HEX, 3)}-{chars(dice, HEX, 3)}{dice.randint(10, 99)}",
    "fours": lambda dice: " ".join(chars(dice, "bcdfgjkmpqtvxz", 4) for _ in range(4)),
    "fourwords": lambda dice: " ".join(dice.sample(_WORDS, 4)),
    "grouped": lambda dice: "-".join(f"{chars(dice, LOWER, 3)}{dice.randint(0, 9)}" for _ in range(3)),
    "hex32": lambda dice: chars(dice, HEX, 32),
    "hex40": lambda dice: chars(dice, HEX, 40),
    "hex64": lambda dice: chars(dice, HEX, 64),
    "hf": lambda dice: "h" + "f_" + chars(dice, string.ascii_letters, 34),
    "hyphens": lambda dice: f"{'-'.join(dice.sample(_WORDS, 2))}-{dice.choice(_WORDS).title()}-{dice.randint(1000, 9999)}",
    "joined": lambda dice: f"{chars(dice, ALNUM[:52], 7)}-{chars(dice, ALNUM[:52], 3)}_Qh{dice.choice('xyz')}",
    "joined4": lambda dice: dice.choice("-_").join(dice.sample(_WORDS, 4)),
    "lead": lambda dice: f",{_mixed(dice, 9, '!')}",
    "letters": lambda dice: f"{chars(dice, string.ascii_lowercase, 4)}{chars(dice, ALNUM[:52], 6)}sNIxQ",
    "leet": lambda dice: f"{dice.choice(_WORDS).title()}{dice.randint(100, 999)}{dice.choice(_WORDS)}",
    "licence": lambda dice: "-".join(f"{dice.randint(0, 9)}{chars(dice, string.ascii_uppercase, 4)}" for _ in range(5)),
    "low": lambda dice: f"k{chars(dice, string.digits, 3)}" + chars(dice, LOWER, 20),
    "odd3": lambda dice: f"zz{dice.randint(2, 9)}c uG{chars(dice, string.ascii_lowercase, 2)}Z vEJ",
    "open": lambda dice: _mixed(dice, 12),
    "pem": lambda dice: "M" + chars(dice, BASE64, 63),
    "phrase": _phrase,
    "pw": lambda dice: _mixed(dice, 11, dice.choice("!@#%^*+~") + dice.choice("!-_*")),
    "quoted": lambda dice: f"{_mixed(dice, 6)}'{_mixed(dice, 6)}",
    "seeds": lambda dice: " ".join(f"{chars(dice, _BASE32.lower(), 3)}{dice.randint(2, 7)}" for _ in range(8)),
    "signed": lambda dice: f"{dice.choice(_WORDS).title()}{dice.choice('!#%+*')}{dice.choice(_WORDS)}{dice.randint(1, 9)}",
    "short": lambda dice: f"{dice.choice(string.ascii_lowercase)}{_mixed(dice, 6, dice.choice('!#%*'))}",
    "slash": lambda dice: f"/{_mixed(dice, 6)}+{_mixed(dice, 5)}",
    "slashed": lambda dice: f"/{_mixed(dice, 6, '!')}/{_mixed(dice, 5)}/",
    "sub": lambda dice: f"{_leet(dice)}{_leet(dice)}{dice.randint(10, 999)}",
    "subst": lambda dice: f"$({dice.randint(0, 9)}{chars(dice, ALNUM[:52], 8)})n8r",
    "uuid": lambda dice: "-".join(chars(dice, HEX, size) for size in (8, 4, 4, 4, 12)),
    "wif": lambda dice: dice.choice("KL") + chars(dice, _BASE58, 51),
    "word": lambda dice: f"{dice.choice(_WORDS)}{dice.randint(10, 99)}",
    "wordy": lambda dice: (
        f"{dice.choice(_WORDS)}{dice.choice('-_.')}{dice.choice(_WORDS).title()}{dice.randint(1950, 2029)}{dice.choice('!?#')}"
    ),
    "words": lambda dice: f"Blåbær og {dice.randint(2, 9)}oxZ{chars(dice, ALNUM[:52], 4)} is",
}


# What people choose, and what they let a program choose for them.
_CHOSEN = ("an10", "an16", "hyphens", "leet", "pw", "short", "signed", "sub", "wordy")
_SHAPES["any"] = lambda dice: _SHAPES[dice.choice(_CHOSEN)](dice)
# Words with a capital, joined by a sign or by nothing, and a number behind them.
_SHAPES["titled"] = lambda dice: f"{dice.choice(_WORDS).title()}-{dice.choice(_WORDS)}-{dice.randint(10, 99)}{dice.choice('KXZ')}"
_SHAPES["under"] = lambda dice: f"{dice.choice(_WORDS).title()}_{dice.choice(_WORDS)}{dice.randint(100, 999)}"
_SHAPES["bang"] = lambda dice: f"{dice.choice(_WORDS).title()}{dice.choice(_WORDS).title()}{dice.randint(10, 99)}!"
_SHAPES["hashed"] = lambda dice: f"{dice.choice(_WORDS)[:4].title()}#{dice.randint(1000, 9999)}{dice.choice(_WORDS)[:3]}"
# One word, one sign and a number.
_SHAPES["once"] = lambda dice: f"{dice.choice(_WORDS).title()}{dice.choice('@#$')}{dice.randint(1000, 9999)}"
_SHAPES["ended"] = lambda dice: f"{dice.choice(_WORDS).title()}{dice.randint(1000, 9999)}{dice.choice('#$')}"
_SHAPES["dashed"] = lambda dice: f"{dice.choice(_WORDS)[:9].title()}-{dice.randint(3000, 9999)}"
# Words that are said, with a number or a sign behind them; words of a household joined; and drawn groups.
_SHAPES["numbered"] = lambda dice: f"{' '.join(dice.sample(_WORDS, 3)).capitalize()} {dice.randint(11, 99)}"
_SHAPES["said"] = lambda dice: f"{' '.join(dice.sample(_WORDS, 4)).capitalize()}!"
_SHAPES["home4"] = lambda dice: "-".join([*dice.sample(_WORDS, 2), dice.choice(("window", "cloud", "salt")), dice.choice(_WORDS)])
_SHAPES["coined"] = lambda dice: f"{dice.choice(_WORDS).title()}{dice.choice(_WORDS).title()}{dice.randint(100, 999)}"
_SHAPES["camel"] = lambda dice: f"{dice.choice(_WORDS)}{dice.choice(_WORDS).title()}{dice.randint(100, 999)}"
_SHAPES["word4"] = lambda dice: "-".join(chars(dice, string.ascii_uppercase, 2) + chars(dice, string.digits, 2) for _ in range(4))
_SHAPES["odd"] = lambda dice: _mixed(dice, 13, "^@")
_SHAPES["semis"] = lambda dice: f"{chars(dice, string.ascii_lowercase, 3)}FE;DI{chars(dice, string.ascii_uppercase, 2)}-EY"
_SHAPES["fivewords"] = lambda dice: " ".join([*dice.sample(_WORDS, 4), "window"])
_SHAPES["within"] = lambda dice: f"{' '.join(dice.sample(_WORDS, 2))} {dice.randint(11, 99)} {dice.choice(_WORDS)}!"
_SHAPES["dotted"] = lambda dice: f"{'.'.join(dice.sample(_WORDS, 4))}{dice.randint(11, 99)}"
_SHAPES["dots"] = lambda dice: ".".join(dice.sample(_WORDS, 3))
_SHAPES["signednumber"] = lambda dice: (
    f"{' '.join(dice.sample(_WORDS, 2)).capitalize()} {dice.randint(1000, 9999)}{dice.choice('?#!')}"
)
_SHAPES["dots4"] = lambda dice: ".".join(dice.sample(_WORDS, 4))
_SHAPES["threewords"] = lambda dice: " ".join(dice.sample(_WORDS, 3))
_SHAPES["dotnumber"] = lambda dice: f"{'.'.join(dice.sample(_WORDS, 2))}{dice.randint(100, 999)}"
_SHAPES["bytes16"] = lambda dice: ", ".join(f"0x{chars(dice, HEX, 2)}" for _ in range(16))
_SHAPES["home2"] = lambda dice: f"{dice.choice(_WORDS).title()}Window{dice.randint(100, 999)}"
# Their first letters are a word for "now" in some language.
_SHAPES["nowfirst"] = lambda dice: "-".join([dice.choice(("nutmeg", "orange", "nunnery")), *dice.sample(_WORDS, 4)])
_SHAPES["yearly"] = lambda dice: f"{dice.choice(_WORDS).title()}{dice.randint(1990, 2029)}.{chars(dice, 'bfhkqxz', 2)}"
_SHAPES["names"] = lambda dice: f"{dice.choice(_WORDS).title()}{dice.choice(_WORDS).title()}{dice.randint(1950, 2029)}"
# What a node lets others in by, what a lock is turned to, and a key of 64 bytes.
_SHAPES["capitals"] = lambda dice: chars(dice, string.ascii_uppercase, 28)
_SHAPES["turned"] = lambda dice: "-".join(f"{dice.randint(3, 39):02}" for _ in range(3))
_SHAPES["b64long"] = lambda dice: f"{_mixed(dice, 20)}{chars(dice, BASE64, 64)}Q=="
_KEPT = ("an16", "pw", "titled", "under", "bang", "hashed", "sub", "signed")
_SHAPES["chosen"] = lambda dice: _SHAPES[dice.choice(_KEPT)](dice)


def secrets(batch: str, seed: int) -> Iterator[Case]:
    """Draw the secrets of a round: each line of its file has a shape, a blank, and the text."""
    dice = random.Random(seed)
    for line in (_HERE / batch / "secrets.txt").read_text(encoding="utf-8").splitlines():
        shape, _, text = line.partition(" ")
        secret = _SHAPES[shape](dice)
        text = text.translate(_NOT_SHOWN).replace("@MORE@", chars(dice, BASE64, 64))
        if "@SID@" in text:
            # Drawn where it stands alone: the values of the other rounds stay as they are.
            text = text.replace("@SID@", "A" + "C" + chars(dice, HEX, 32))
        before, _, after = text.partition("@VALUE@")
        yield Case(batch, shape, text.replace("@VALUE@", secret), secret, before, after)


def harmless(batch: str) -> Iterator[str]:
    """Give every text of a round that holds no secret."""
    for line in (_HERE / batch / "harmless.txt").read_text(encoding="utf-8").splitlines():
        yield line.translate(_NOT_SHOWN)
