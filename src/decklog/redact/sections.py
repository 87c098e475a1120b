"""The section that a setting stands in: a key under one that is about signing is a secret."""

import re

_ABOUT = r"[\w.:-]{0,24}(?:jwt|token|auth|sign|hmac|encrypt|crypto|cipher|cookie|session|security|aes)[\w.:-]{0,24}"
_REACH = 320
_ABOUT_SIGNING = re.compile(rf"(?i){_ABOUT}")
_BRACED = re.compile(rf"(?i)\b{_ABOUT}[\"']?[ \t]*(?:[:=]|=>)?[ \t]*$")
_HEADED = re.compile(r"\[([^\[\]\n]{1,64})\][ \t]*\n(?:[^\[\n][^\n]*\n|\n)*[ \t]*$")
_INDENTED = re.compile(r"(?:^|\n)([ \t]*)([\w.-]{1,64}):[ \t]*\n(?:\1[ \t]+[^\n]*\n)*\1[ \t]+[\"']?$")


def is_about_signing(name: object) -> bool:
    """Tell whether the name of a section says that it is about signing or encrypting."""
    return isinstance(name, str) and len(name) < 64 and bool(_ABOUT_SIGNING.fullmatch(name))


def is_of_signing(text: str, place: int) -> bool:
    """Tell whether a name stands in a section that is about signing or encrypting: `"Jwt": {"Key": …`, `[jwt]`, `jwt:`."""
    before = text[max(0, place - _REACH) : place]
    opening = before.rfind("{")
    if opening > before.rfind("}"):
        return bool(_BRACED.search(before, max(0, opening - 64), opening))
    if not _ABOUT_SIGNING.search(before):
        return False
    headed = _HEADED.search(before)
    if headed:
        return bool(_ABOUT_SIGNING.fullmatch(headed[1]))
    indented = _INDENTED.search(before)
    return bool(indented and _ABOUT_SIGNING.fullmatch(indented[2]))
