"""What a value looks like, by itself."""

from re import Pattern

from decklog.prepared import prepared

PARTS = prepared(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\x00-\x7f]+")
_BASE32 = r"[A-Z2-7]{16,}=*"
_BASE64 = prepared(r"[A-Za-z0-9+/_-]{20,}=*")
_HEX = prepared(r"(?:0x)?[0-9a-fA-F]+")
_HEX_LENGTHS = (16, 24, 32, 40, 48, 64, 128)
_ENDINGS = (
    r"py|js|tsx?|go|rs|java|rb|php|[ch]|cpp|cs|sh|ya?ml|json|toml|ini|cfg|conf|env|txt|md|lock|pem|key|crt|log|html|css|xml|sql|db|tar|gz|zip|png|jpg"
    r"|svg|whl|exe|dll|so|kdbx|jks|p12|pfx"
)
_HOSTS = r"com|org|net|io|dev|app|co|local|internal|cloud|de|no|se|edu|gov|example|lan|corp|test"
_STAND_INS = (
    *("example", "changeme", "change_me", "your", "placeholder", "dummy", "redacted", "replace", "todo"),
    *("xxxx", "****", "insert", "fake", "sample", "hunter2", "foobar", "lorem"),
)


def _in_turn(*kinds: tuple[str, str]) -> Pattern[str]:
    """Give one pattern for kinds of which the first that fits counts: to ask it takes less than to ask each."""
    return prepared("|".join(f"(?P<{name}>{pattern})" for name, pattern in kinds))


# In this order: the first that fits is the kind.
_FIRST = _in_turn(
    ("uuid", r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    ("date", r"\d{4}-\d\d-\d\d(?:T.*)?|\d\d[:/]\d\d.*|\d{1,2}/\w{3}/\d{4}.*"),
    ("version", r"v?\d+(?:\.\d+)+[-+.\w]*|[\w-]+@\^?v?\d.*"),
    ("number", r"(?i:[-+]?[\d,._]+(?:%|[kmg]?i?b|ms|min|px|st|nd|rd|th|[smkxhd])?)"),
    ("mail", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("host", rf"(?:[\w-]+\.)+(?:{_HOSTS})(?:[:/].*)?|\d+\.\d+\.\d+\.\d+(?::\d+)?(?:/\d+)?|localhost.*"),
    ("placeholder", r"(?i:x{3,}|\*{3,}|\.{3}|…|<.*>|\$\{.*|\$\(.*|\{\{.*|%\w+%|\$\w+)"),
)
_THEN = _in_turn(
    ("file", rf"(?i:.*\.(?:{_ENDINGS})(?::\d+)*)"),
    ("path", r"[/~\\].*|\.\.?/.*|[A-Z]:\\.*|[^/]*/[^/]*/.*"),
    ("upper", r"[A-Z]+(?:_[A-Z]+)*"),
    ("base32", _BASE32),
    ("upper0", r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"),
    # Each letter in one way alone: a run that may be split anywhere is tried in every way there is.
    ("camel", r"[a-z]+(?:[A-Z][a-z]*|\d)+|(?:[A-Z][a-z]+){2,}\d?"),
    ("snake", r"_*[a-z][a-z0-9]*(?:_[a-z0-9]+)+_*"),
    ("kebab", r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+"),
    ("dotted", r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?"),
    ("alpha", r"[^\W\d_]+"),
    ("code", r".*[(){}\[\]<>|;,\\].*"),
)
_WORDS = frozenset(("phrase", "groups", "alpha", "upper", "camel", "snake", "kebab", "dotted", "joined", "signed"))
_NEVER = frozenset(("date", "version", "number", "mail", "host", "placeholder", "file", "path", "code"))


def kind_of(value: str) -> str:
    """Give the kind of a value: what anybody would call it who sees it alone."""
    if " " in value:
        return "groups" if len(set(map(len, value.split(" ")))) == 1 else "phrase"
    if value.isdigit():
        return f"digits{min(len(value), 9)}"
    if kind := _FIRST.fullmatch(value):
        return str(kind.lastgroup)
    if any(map(value.lower().__contains__, _STAND_INS)):
        return "placeholder"
    if _HEX.fullmatch(value) and any(map(str.isdigit, value)):
        return f"hex{len(value) if len(value) in _HEX_LENGTHS else '' if len(value) > _HEX_LENGTHS[0] else '-'}"
    if kind := _THEN.fullmatch(value):
        return str(kind.lastgroup)
    return _mixed(value)


def _mixed(value: str) -> str:
    classes = set(shape_of(value))
    if classes >= {"a", "A", "0"} and _BASE64.fullmatch(value):
        return "random"
    if value.isalnum():
        return "alnum3" if classes >= {"a", "A", "0"} else "alnum2"
    return ("signed" if "!" in classes else "joined") + ("0" if "0" in classes else "")


def group_of(kind: str) -> str:
    """Give who makes values of a kind: a machine, somebody who counts, writes words, gives names, or chooses a password."""
    if kind.startswith(("hex", "uuid", "random", "base32")):
        return "M"
    if kind.startswith("digits"):
        return "D"
    if kind in _WORDS:
        return "W"
    return "N" if kind in _NEVER else "H"


def class_of(char: str) -> str:
    """Give the class of a character."""
    if char.isascii():
        if char.islower():
            return "a"
        if char.isupper():
            return "A"
        if char.isdigit():
            return "0"
        return "-" if char in "-_." else " " if char == " " else "!"
    return "u"


def shape_of(value: str) -> str:
    """Give the classes of a value's characters, each once where the same follow each other."""
    shape = ""
    for char in value[:40]:
        name = class_of(char)
        if shape[-1:] != name:
            shape += name
    return shape


def words_in(name: str) -> list[str]:
    """Give the words and numbers of a name, in small letters."""
    return [part.lower() for part in PARTS.findall(name)]
