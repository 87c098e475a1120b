"""Texts built to be slow: keywords, escapes and beginnings of secrets everywhere."""

import base64
import random
from collections.abc import Callable

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_REPEATED = {
    "password=": "password=",
    "password= and a space": "password= ",
    "one-letter passwords": "password=x ",
    "password lines": "password=x1\n",
    "opened quotes": 'password: "',
    "api keys of api keys": "api_key=",
    "tokens without a value": "token:\n",
    "JSON never closed": '{"password":',
    "sk-": "sk-",
    "key block beginnings": "-----BEGIN " + "PRIVATE KEY-----",
    "key blocks never ended": "-----BEGIN " + "RSA PRIVATE KEY-----\\nMIIEabcdefgh\\n",
    "PuTTY beginnings": "PuTTY-User-Key-" + "File-3:",
    "colour codes": "\x1b[31m",
    "bare escapes": "\x1b",
    "coloured passwords": "pass\x1b[0mword=x\x1b[1m1 ",
    "backslashes": "\\",
    "escaped line breaks": "\\n",
    "escaped fields": '\\"password\\": \\"x1\\", ',
    "deeply escaped fields": '\\\\\\\\\\"password\\\\\\\\\\": \\\\\\\\\\"x1\\\\\\\\\\", ',
    "unicode escapes": "\\u0067hp_",
    "equals signs": "=",
    "colons": ":",
    "short lines": "aB3dE5\n",
    "URLs never ended": "ab://a:",
    "URLs": "ab://a:b@c ",
    "authorization headers": "authorization: bearer ",
    "commands": "curl wget mysql redis-cli docker login ldapx sqlcmd 7z smbclient ",
    "commands in commands": "curl sshpass -px ",
    "cookies": "cookie: a=b; session=abcdefgh12345678;",
    "password files": "a:5432:b:c:d\n",
    "flags": "--password x1 ",
    "one password again and again": "password=aB3dE5" + "fG7h, aB3dE5fG7h ",
    "calls": "PDO('a','b','c', jwt.sign(a, 'b",
    "here-strings": "sudo passwd <<< x1 ",
    "net use": r"net use x: \\a\b /user:c ",
    "quoted pairs": '"a" "b1"\n',
    "XML": "<password>",
    "JWT beginnings": "eyJabcdefgh.",
    "percent escapes": "%3D",
    "markers": "password=[redacted:password] ",
    "placeholders": "password=" + "the_" * 60 + " ",
    "words that nearly end": 'password = "' + "abAB" + "ab" * 24 + '1aB2cD3" ',
    "numbers that nearly end": 'password = "xyzw' + "9507284694" * 4 + 'HvkdhaYMOI6XomFd7t2U4yI" ',
    "lone surrogates": "\ud800password=x1 ",
    "zeros": "\x00",
    "one letter": "A",
    "settings that go on": "A=\\\n",
    "blocks below": "the token is\n\n    aB3dE5" + "fG7hI9jK1lM3nO5pQ7\n\n",
    "arguments of tests": '[T("aB3!x7y")]\npassword\n',
    "what did not hold": "E   assert 'aB3!x7y' == password\n",
    "names and texts": 'password, "b1", ',
    "networks": "wlan key ",
    "tokens as names": "token as ABC ",
    "numbers of lines": "  7\tpassword: \n",
    "names of files": "a/b-c.d:7:x\n",
    "names without an end": "a-1-b.c/d-2",
    "signs of a change": "@@ -1 +1 @@\n+password\n-x\n",
    "quotes of mails": "> > password\n",
    "stars": "**",
    "bold words": "**password** ",
    "strings with lines": '{"a": "b\\npassword"} ',
    "strings never closed": '"a\\nb',
    "dots": ".",
    "fences": "```\n",
}


def texts(size: int) -> dict[str, str]:
    """Make every hostile text at a size in characters."""
    dice = random.Random(11)
    found = {name: (piece * (size // len(piece) + 1))[:size] for name, piece in _REPEATED.items()}
    blob = base64.b64encode(dice.randbytes(size)).decode()[:size]
    found["base64"] = blob
    found["base64 for URLs"] = blob.replace("+", "-").replace("/", "_")
    found["base64 lines"] = "\n".join(blob[place : place + 76] for place in range(0, size, 77))[:size]
    secret = base64.b64encode(b"password=hunter2 " + _token(dice, "gh" + "p_", 36).encode()).decode()
    found["secrets in base64"] = (f"{secret} " * (size // len(secret) + 1))[:size]
    found["tokens"] = _many(size, lambda: _token(dice, "gh" + "p_", 36) + " ")
    found["sk tokens"] = _many(size, lambda: _token(dice, "sk" + "-", 24) + " ")
    found["wrapped tokens"] = _many(size, lambda: _token(dice, "gh" + "p_", 20) + "\n" + _token(dice, "", 16) + "\n")
    found["odd words before one for a secret"] = ("aB3d!x7 " * (size // 8 + 1))[: max(0, size - 9)] + " password"
    found["random passwords"] = _many(size, lambda: f"password={_token(dice, '', 9)} ")
    return found


def _token(dice: random.Random, start: str, length: int) -> str:
    return start + "".join(dice.choices(_ALPHABET, k=length))


def _many(size: int, make: Callable[[], str]) -> str:
    pieces, total = [], 0
    while total < size:
        pieces.append(make())
        total += len(pieces[-1])
    return "".join(pieces)[:size]
