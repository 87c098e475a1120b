"""Admission of requests by their headers: host, method, size and the origin of the page that sent them."""

from collections.abc import Sequence
from dataclasses import dataclass

from decklog.web.names import Names

Headers = Sequence[tuple[bytes, bytes]]
LONGEST_URL = 8 * 1024
MOST_HEADERS = 16 * 1024
MOST_BODY = 64 * 1024
_METHODS = ("GET", "HEAD", "POST")
# Browsers report these destinations for embedded content. No page of the dashboard may be embedded.
_NESTED = ("iframe", "frame", "object", "embed", "fencedframe")


@dataclass(frozen=True)
class RequestRefusal:
    """Why a request is refused: its HTTP status and the message."""

    status: int
    said: str


def value_of(headers: Headers, name: bytes) -> str | None:
    """Return a header's value. A repeated header returns all values joined, which matches no expected value."""
    found = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    return ", ".join(found) if found else None


def refusal(method: str, headers: Headers, names: Names, *, length: int = 0) -> RequestRefusal | None:
    """Return why a request is refused, or None if it is admitted. `length` is the length of its URL."""
    host = value_of(headers, b"host")
    if host != names.host:
        return RequestRefusal(421, "Open the address that the terminal printed.")
    if value_of(headers, b"upgrade") is not None:
        return RequestRefusal(426, "")
    if method not in _METHODS:
        return RequestRefusal(405, "Only GET, HEAD and POST are answered.")
    too_much = _too_much(headers, length)
    if too_much is not None:
        return too_much
    is_ours = _is_sent_by_us(headers, names) if method == "POST" else _may_look(headers, names)
    return None if is_ours else RequestRefusal(403, "A page of another origin asked for this.")


def _too_much(headers: Headers, length: int) -> RequestRefusal | None:
    if length > LONGEST_URL:
        return RequestRefusal(414, "That address is too long.")
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADERS:
        return RequestRefusal(431, "Those headers are too large.")
    announced = value_of(headers, b"content-length")
    if announced is not None and (not announced.isdecimal() or int(announced) > MOST_BODY):
        return RequestRefusal(413, "That is too large.")
    return None


def _is_sent_by_us(headers: Headers, names: Names) -> bool:
    """Return whether a page of this origin sent the form. Old browsers send only `Origin`; without both headers it is refused."""
    site, origin = value_of(headers, b"sec-fetch-site"), value_of(headers, b"origin")
    if origin is not None and origin != names.origin:
        return False
    return site == "same-origin" or (site is None and origin is not None)


def _may_look(headers: Headers, names: Names) -> bool:
    """Return whether a read comes from our own page, the address bar or a followed link."""
    site, origin = value_of(headers, b"sec-fetch-site"), value_of(headers, b"origin")
    mode, destination = value_of(headers, b"sec-fetch-mode"), value_of(headers, b"sec-fetch-dest")
    if destination in _NESTED or (origin is not None and origin != names.origin):
        return False
    if site in (None, "same-origin", "none"):
        return True
    return mode == "navigate" and destination == "document"
