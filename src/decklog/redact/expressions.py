"""Values that are expressions of a program: a name, an attribute, a call, a variable of a shell."""

import re

from decklog.prepared import prepared
from decklog.redact.names import kind_of
from decklog.redact.placeholders import BENIGN_WORDS, word_set

_PIECES = prepared(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|[^\W\d_]|.", re.DOTALL)
DIGIT = prepared("[0-9]")
NUMBERED_TERMS = prepared(
    r"(?i)sha(?:224|256|384|512|[123])(?:crypt)?|sha3-?\d{3}|argon2(?:id|[id])?|(?:b|s|yes)crypt\d{0,2}|blake[23][bs]?"
    r"|x?chacha20|pbkdf2|md5|base(?:16|32|58|64)|b(?:16|32|64)|utf(?:8|16)|ed25519|x(?:25519|448|509)|oauth[12]|auth0"
    r"|ec2|1password|k8s|i18n|l10n|log4j|pkcs(?:1|7|8|11|12)|p12|p-?(?:224|256|384|521)|aes(?:128|192|256)|rsa\d{4}|secp\d{3}[kr]1"
    r"|[ehpr]s(?:256|384|512)|ml(?:kem|dsa)\d{2,4}|ipv[46]|http[123]|web3|2fa|mp[34]|u?i(?:nt)?(?:8|16|32|64)"
    r"|(?:s3|h2|u8|v\d{1,2})(?-i:(?![a-z]))"
)
# Of programs that ask whether there is anything: `user?.token`, `list?.[0]`.
_OPTIONAL = prepared(r"(?<=[\w)\]])\?\.(?=([A-Za-z\[(]))")
_LINKS = prepared(r"\.|->|::|\?\.")
# What turns one thing into another is called so: `bin2hex(`.
_CONVERSION = prepared(r"(?<=[A-Za-z])[24](?=[A-Za-z])")
_VARIABLE_END = prepared(r"[\[(]|:(?!:)")
_OPENING = prepared(r"!?[(\[<]")
_CLOSING = prepared(r"[)\]>]")
_NUMBER_BEHIND = prepared(r"[)\]>]\d")
_GROUPED = prepared(r"[,.*&:=<>()\[\]-]")
SIGNS = frozenset("!@#$%^&*+~?|")
_SIGNED_PARTS = prepared(r"[!@#$%^&*+~?_-]+")
_LEADING_SIGNS = "&*!~-@"
_TRAILING_SIGNS = "])};,!?"
_KEYWORDS = word_set("ENV await new lambda async func fn function return not None str bytes int bool String SecretStr !0 !1")
FIELDS = word_set("password passwd pwd secret token key field input label")
_OPERATORS = frozenset("[]{}()|<>=&+,;:!?")
# Of which version what has the name is: `authTokenV144`.
_VERSIONED = prepared(r"(?<=[a-z])_?[Vv]\d{1,3}$")
_CONTROL = prepared(r"(?:(?:UI|NS)(?:[A-Z][a-z]+)+|String|ID|Int|Float|Boolean)[!?]")


def is_identifier(text: str) -> bool:
    """Tell whether a text is written as programs write their names: `dbPassword`, `API_KEY2`, not `aBqZ9r`."""
    text = text[:128]
    pieces = _PIECES.findall(NUMBERED_TERMS.sub("term", text) if DIGIT.search(text) else text)
    if not pieces or pieces[0].isdigit():
        return False
    odd = sum(1 for piece in pieces if piece[0].isupper() and len(piece) < 3 and not piece.isupper())
    lone = sum(1 for piece in pieces if len(piece) == 1 and piece.isupper())
    numbers = [place for place, piece in enumerate(pieces) if piece.isdigit()]
    if odd + lone > 1 or len(numbers) > 1 or (numbers and not _ends_word(pieces, numbers[0])):
        return False
    return all(piece.isalnum() or piece[0] == "_" for piece in pieces)


def _ends_word(pieces: list[str], place: int) -> bool:
    """Tell whether a number is one digit at the end of a word."""
    return len(pieces[place]) == 1 and "".join(pieces[place + 1 : place + 2])[:1] in ("", "_")


def is_variable(value: str) -> bool:
    """Tell whether a value is a variable of a shell or of PHP, as `$DB_PASSWORD` is and `$w0rdFish` is not."""
    if value[:1] != "$" or has_many_signs(value):
        return False
    return is_chain(_VARIABLE_END.split(value[1:].lstrip("$").rstrip(";,)]}/|"))[0])


def has_many_signs(value: str) -> bool:
    """Tell whether a value has more different signs than an expression without blanks has."""
    return len(SIGNS.intersection(value[:256])) > 2


def _unasked(link: re.Match[str]) -> str:
    """Write a link that asks whether there is anything behind it as one that does not."""
    return "." if link[1].isalpha() else ""


def is_code(value: str, after: str) -> bool:
    """Tell whether an unquoted value is an expression: a variable's attribute, a call, a subscript."""
    if value in _KEYWORDS or _OPERATORS.issuperset(value) or _CONTROL.fullmatch(value):
        return True
    if has_many_signs(value):
        return False
    bare = _OPTIONAL.sub(_unasked, value[:256]).lstrip(_LEADING_SIGNS)
    opening = _OPENING.search(bare)
    if opening:
        return _is_opened_code(bare, opening.start(), after)
    chain = bare.rstrip(_TRAILING_SIGNS)
    return is_chain(chain) and (chain[:1] != value[:1] or bool(_LINKS.search(chain)))


def is_reference(value: str) -> bool:
    """Tell whether an expression plainly fetches a secret: `config.get(`, `settings.DB_PASSWORD`."""
    bare = value.rstrip(",;")
    return bare.endswith(("(", "()")) or ("." in bare and is_field_name(bare.replace(".", "_")))


def is_set_alone(value: str) -> bool:
    """Tell whether an expression has a number or a sign that those which fetch a secret do not have: `Vq7.lopp!`."""
    bare = NUMBERED_TERMS.sub("term", value.lstrip(_LEADING_SIGNS))
    if bare[-1:] in ("", "(", ")", "]", "}", ",", ";") or not (DIGIT.search(bare) or SIGNS.intersection(bare)):
        return False
    links = _LINKS.split(bare)
    if len(links) > 2 and kind_of(links[0]) is not None:
        # A resource that is called after what it makes: `random_password.db2.result`.
        return False
    last = links[-1].rstrip("!?0123456789")
    is_odd = any(map(str.isalpha, last)) and last.lower() not in BENIGN_WORDS and kind_of(last) is None
    return is_odd and not is_reference(bare) and not _CONTROL.fullmatch(bare)


def _is_opened_code(text: str, opening: int, after: str) -> bool:
    """Tell whether a text with a bracket is a call, a subscript or the beginning of a group."""
    inner = text[opening + 1 :]
    if inner and inner[-1] != "," and after in ("", "\n") and not _CLOSING.search(inner):
        return False
    if not opening and _NUMBER_BEHIND.search(text):
        return False
    if not opening:
        return all(not part or part.isdigit() or is_identifier(part) for part in _GROUPED.split(inner.rstrip(_TRAILING_SIGNS)))
    return is_chain(_CONVERSION.sub("", text[:opening]))


def is_chain(text: str) -> bool:
    """Tell whether a text is names with links between them: `user.token`, `Env::PASSWORD`."""
    return all(map(is_identifier, _LINKS.split(text)))


def is_scrambled(value: str) -> bool:
    """Tell whether signs stand among letters whose case no name has: `zjB!HVXVdRFWXAXn`."""
    parts = _SIGNED_PARTS.split(value[:128])
    return (
        len(parts) > 1 and len(value) > 9 and any(len(part) > 5 and part.isalpha() and not is_identifier(part) for part in parts)
    )


def is_field_name(value: str) -> bool:
    """Tell whether a value is the name of what holds a secret: `challengePassword`, `user_token`."""
    value = _VERSIONED.sub("", value[:64])
    words = [word for word in _PIECES.findall(value) if word.isalpha()]
    return len(words) > 1 and words[-1].lower() in FIELDS and is_identifier(value)
