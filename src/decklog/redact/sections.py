"""The section that a setting stands in: a key under one that is about signing is a secret."""

from decklog.prepared import prepared

_REACH = 320
_ABOUT_SIGNING = prepared(r"(?i)jwt|token|auth|sign|hmac|encrypt|crypto|cipher|cookie|session|security|aes")
_NAME = prepared(r"[\w.:-]+$")
_HEADED = prepared(r"\[([^\[\]\n]{1,64})\][ \t]*\n(?:[^\[\n][^\n]*\n|\n)*[ \t]*$")
_INDENTED = prepared(r"(?:^|\n)([ \t]*)([\w.-]{1,64}):[ \t]*\n(?:\1[ \t]+[^\n]*\n)*\1[ \t]+[\"']?$")


def is_about_signing(name: object) -> bool:
    """Tell whether the name of a section says that it is about signing or encrypting."""
    return isinstance(name, str) and len(name) < 64 and bool(_ABOUT_SIGNING.search(name))


def is_of_signing(text: str, place: int) -> bool:
    """Tell whether a name stands in a section that is about signing or encrypting: `"Jwt": {"Key": …`, `[jwt]`, `jwt:`."""
    before = text[max(0, place - _REACH) : place]
    if not _ABOUT_SIGNING.search(before):
        return False
    opening = before.rfind("{")
    if opening > before.rfind("}"):
        named = _NAME.search(before[max(0, opening - 64) : opening].rstrip(" \t:=>\"'"))
        return named is not None and is_about_signing(named[0])
    section = _HEADED.search(before)
    name = section[1] if section else ""
    if not section and (section := _INDENTED.search(before)):
        name = section[2]
    return is_about_signing(name)
