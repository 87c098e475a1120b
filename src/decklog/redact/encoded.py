"""Secrets inside base64: a blob of encoded text that decodes to one is a secret as a whole."""

from binascii import Error, a2b_base64
from bisect import bisect_right

from decklog.prepared import prepared
from decklog.redact.finder import find_all
from decklog.redact.patterns.pattern import Pattern, Span
from decklog.redact.view import Found, View, looked_through

# Four characters that decode to three bytes of ASCII text: almost nothing else has this shape by chance.
_GROUP = r"[CI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
_BLOB = Pattern(rf"(?:{_GROUP}){{4,}}[A-Za-z0-9+/_-]{{0,3}}={{0,2}}")
SIGN = _BLOB.source
_RUN = prepared(r"[A-Za-z0-9+/_-]*={0,2}")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_SEPARATOR = "\n\n\x01\n\n"


def find(view: View) -> list[Found]:
    """Find the base64 blobs that hold a secret."""
    spans: list[Span] = []
    texts: list[str] = []
    position = 0
    while span := _BLOB.find(view.data, position):
        position = span[1]
        spans.append(span)
        texts.append(_decode(view.data[span[0] : span[1]]))
    return _holding(view, spans, texts) if texts else []


def _decode(blob: bytes) -> str:
    body = blob.rstrip(b"=").translate(_URL_SAFE)
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        return a2b_base64(body + b"=" * (-len(body) % 4)).decode("latin-1")
    except Error:
        return ""


def _holding(view: View, spans: list[Span], texts: list[str]) -> list[Found]:
    """Search all decoded texts at once, and give back the blobs that a secret was found in."""
    starts, position = [], 0
    for text in texts:
        starts.append(position)
        position += len(text) + len(_SEPARATOR)
    inner = looked_through(_SEPARATOR.join(texts))
    kinds: dict[int, str] = {}
    for found in find_all(inner):
        start, _ = inner.span(found.start, found.end)
        kinds.setdefault(bisect_right(starts, start) - 1, found.kind)
    return [Found(*_whole(view.text, *spans[index]), kind) for index, kind in kinds.items()]


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a blob to the run of base64 around it."""
    run = _RUN.match(text, end)
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "+/_-") and text[start - 1].isascii():
        start -= 1
    return start, run.end() if run else end
