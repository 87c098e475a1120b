"""Finds secrets through colours, escapes, line breaks and base64, and writes markers in their place."""

from operator import itemgetter

from decklog.redact import encoded, wraps
from decklog.redact.finder import find_all, find_marked
from decklog.redact.found import Found
from decklog.redact.view import View, looked_through

_WRAPPABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+/=.~-")


def scan(text: str) -> tuple[str, bool]:
    """Replace every secret in a text, and tell whether there was any."""
    view = looked_through(text)
    found = find_all(view)
    has_lines = "\n" in view.text
    if has_lines:
        found = _unwrapped(view.text, found)
    together = wraps.joined(view) if has_lines else None
    if together is not None:
        found += _across_lines(together)
    found += encoded.find(view)
    if not found:
        return text, False
    return _marked(text, view, found), True


def _unwrapped(text: str, found: list[Found]) -> list[Found]:
    """Lengthen the secrets that go on in the next line."""
    result, reached = [], 0
    for secret in sorted(found):
        end = secret.end
        if end > reached and text[end : end + 1] == "\n" and text[end - 1] in _WRAPPABLE:
            end = wraps.extended(text, secret.start, end)
        reached = max(reached, end)
        result.append(secret._replace(end=end))
    return result


def _across_lines(together: View) -> list[Found]:
    """Find the tokens, plain or in base64, that only show when wrapped lines are joined."""
    crossing = []
    for secret in [*find_marked(together), *encoded.find(together)]:
        start, end = together.span(secret.start, secret.end)
        if end - start > secret.end - secret.start:
            crossing.append(Found(start, end, secret.kind))
    return crossing


def _marked(text: str, view: View, found: list[Found]) -> str:
    """Write the markers; where secrets overlap, the outermost or first one names the kind."""
    pieces, position = [], 0
    for start, end, kind in _merged(found):
        first, last = view.span(start, end)
        pieces += [text[position:first], f"[redacted:{kind}]"]
        position = last
    return "".join([*pieces, text[position:]])


def _merged(found: list[Found]) -> list[Found]:
    found.sort(key=itemgetter(0))
    merged = [found[0]]
    for secret in found[1:]:
        last = merged[-1]
        if secret.start >= last.end:
            merged.append(secret)
        elif secret.end > last.end:
            merged[-1] = last._replace(end=secret.end)
    return merged
