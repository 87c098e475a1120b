"""What a value looks like, by itself."""

from decklog.prepared import prepared

PARTS = prepared(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\x00-\x7f]+")
_BASE32 = prepared(r"[A-Z2-7]{16,}=*")
_BASE64 = prepared(r"[A-Za-z0-9+/_-]{20,}=*")
_HEX = prepared(r"(?:0x)?[0-9a-fA-F]+")
_HEX_LENGTHS = (16, 24, 32, 40, 48, 64, 128)
_ENDINGS = (
    r"py|js|tsx?|go|rs|java|rb|php|[ch]|cpp|cs|sh|ya?ml|json|toml|ini|cfg|conf|env|txt|md|lock|pem|key|crt|log|html|css|xml|sql|db|tar|gz|zip|png|jpg"
    r"|svg|whl|exe|dll|so|kdbx|jks|p12|pfx"
)
_HOSTS = r"com|org|net|io|dev|app|co|local|internal|cloud|de|no|se|edu|gov|example|lan|corp|test"
_STAND_INS = (
    r"example|changeme|change_me|your|placeholder|dummy|redacted|replace|todo"
    r"|xxxx|\*\*\*\*|insert|fake|sample|hunter2|foobar|lorem"
)
# In this order: the first that fits is the kind.
_FIRST = (
    ("uuid", prepared(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")),
    ("date", prepared(r"\d{4}-\d\d-\d\d(?:T.*)?|\d\d[:/]\d\d.*|\d{1,2}/\w{3}/\d{4}.*")),
    ("version", prepared(r"v?\d+(?:\.\d+)+[-+.\w]*|[\w-]+@\^?v?\d.*")),
    ("number", prepared(r"(?i)[-+]?[\d,._]+(?:%|[kmg]?i?b|ms|min|px|st|nd|rd|th|[smkxhd])?")),
    ("mail", prepared(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("host", prepared(rf"(?:[\w-]+\.)+(?:{_HOSTS})(?:[:/].*)?|\d+\.\d+\.\d+\.\d+(?::\d+)?(?:/\d+)?|localhost.*")),
    ("placeholder", prepared(rf"(?i)x{{3,}}|\*{{3,}}|\.{{3}}|…|<.*>|\$\{{.*|\$\(.*|\{{\{{.*|%\w+%|\$\w+|.*(?:{_STAND_INS}).*")),
)
_THEN = (
    ("file", prepared(rf"(?i).*\.(?:{_ENDINGS})(?::\d+)*")),
    ("path", prepared(r"[/~\\].*|\.\.?/.*|[A-Z]:\\.*|[^/]*/[^/]*/.*")),
    ("upper", prepared(r"[A-Z]+(?:_[A-Z]+)*")),
    ("base32", _BASE32),
    ("upper0", prepared(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")),
    ("camel", prepared(r"[a-z]+(?:[A-Z][a-z]+|[A-Z]+(?![a-z])|\d{1,2})+|(?:[A-Z][a-z]+){2,}\d?")),
    ("snake", prepared(r"_*[a-z][a-z0-9]*(?:_[a-z0-9]+)+_*")),
    ("kebab", prepared(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")),
    ("dotted", prepared(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?")),
    ("alpha", prepared(r"[^\W\d_]+")),
    ("code", prepared(r".*[(){}\[\]<>|;,\\].*")),
)
_WORDS = frozenset(("phrase", "groups", "alpha", "upper", "camel", "snake", "kebab", "dotted", "joined", "signed"))
_NEVER = frozenset(("date", "version", "number", "mail", "host", "placeholder", "file", "path", "code"))


def kind_of(value: str) -> str:
    """Give the kind of a value: what anybody would call it who sees it alone."""
    if " " in value:
        return "groups" if len(set(map(len, value.split(" ")))) == 1 else "phrase"
    if value.isdigit():
        return f"digits{min(len(value), 9)}"
    for kind, pattern in _FIRST:
        if pattern.fullmatch(value):
            return kind
    if _HEX.fullmatch(value) and any(map(str.isdigit, value)):
        return f"hex{len(value) if len(value) in _HEX_LENGTHS else '' if len(value) > _HEX_LENGTHS[0] else '-'}"
    for kind, pattern in _THEN:
        if pattern.fullmatch(value):
            return kind
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
