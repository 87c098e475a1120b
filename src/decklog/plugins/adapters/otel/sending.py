"""Sending spans to a collector by OTLP over HTTP: packed, in order, and again where the answer allows it."""

import gzip
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from decklog.core.errors import Denied, Invalid, Unreachable
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.protobuf import REQUEST, RESPONSE, STATUS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from decklog.core.clock import Clock
    from decklog.plugins.adapters.otel.span import OtelSpan

PATH = "/v1/traces"
# The protocol names these; after any other answer the same request would be refused again.
_RETRYABLE = frozenset({429, 502, 503, 504})
_TOO_LARGE = 413
_SECONDS, _FIRST_WAIT, _LONGEST_WAIT = 30.0, 0.5, 30.0
_MOST_READ = 256 * 1024
_MOST_SHOWN = 300


class CollectorResponse(NamedTuple):
    """What a collector answered; without a status, why none came."""

    status: int
    body: bytes = b""
    kind: str = ""
    retry_after: str = ""
    problem: str = ""

    @property
    def may_retry(self) -> bool:
        return self.status == 0 or self.status in _RETRYABLE


class Sender:
    """Sends batches to one address, one after the other. It waits no longer than `patience_seconds` for all of them together."""

    def __init__(
        self,
        address: str,
        clock: "Clock",
        *,
        headers: "Mapping[str, str] | None" = None,
        kind: str = otlp.PROTOBUF,
        patience_seconds: float = 60,
        wait: "Callable[[float], None]" = time.sleep,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise Invalid(f"{address!r} is no address of a collector", hint="Such as http://localhost:4318")
        if parts.username or parts.password:
            raise Invalid("an address holds no password", hint="Send it as a header: --header authorization='Basic …'")
        self.shown = f"{parts.scheme}://{parts.netloc}"
        path = parts.path.rstrip("/")
        self._path = path if path.endswith(PATH) else path + PATH
        connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = connect(parts.hostname, parts.port, timeout=_SECONDS)
        own = {"Content-Type": kind, "Content-Encoding": "gzip", "User-Agent": "decklog"}
        self._headers = {**checked_headers(headers or {}), **own}
        self._kind = kind
        self._clock = clock
        self._patience = patience_seconds
        self._wait = wait
        self.rejected = 0
        self.messages: list[str] = []

    def send(self, spans: "Sequence[OtelSpan]") -> None:
        """Send spans, in halves where they are too many; what a collector says of those that it did not want is kept."""
        body = gzip.compress(otlp.encoded(REQUEST, otlp.request_of(spans), self._kind), 6, mtime=0)
        answer = self._sent(body)
        if answer.status == _TOO_LARGE and len(spans) > 1:
            middle = len(spans) // 2
            self.send(spans[:middle])
            self.send(spans[middle:])
        elif 200 <= answer.status < 300:
            self._take(answer)
        else:
            raise self._refusal(answer, len(spans))

    def close(self) -> None:
        self._connection.close()

    def _sent(self, body: bytes) -> CollectorResponse:
        pause = _FIRST_WAIT
        while True:
            answer = self._post(body)
            if not answer.may_retry:
                return answer
            asked = self._asked(answer.retry_after)
            seconds = pause if asked is None else asked
            if seconds > self._patience:
                return answer
            self._patience -= seconds
            self._wait(seconds)
            pause = min(pause * 2, _LONGEST_WAIT)

    def _post(self, body: bytes) -> CollectorResponse:
        """Post once. Redirects are not followed: the headers are for this address alone."""
        try:
            self._connection.request("POST", self._path, body, self._headers)
            answer = self._connection.getresponse()
            told = answer.read(_MOST_READ)
        except (OSError, HTTPException) as problem:
            self._connection.close()
            return CollectorResponse(0, problem=str(problem) or type(problem).__name__)
        kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if not answer.isclosed():
            # More than anybody needs to read: the rest would be taken for the next answer.
            self._connection.close()
        return CollectorResponse(answer.status, told, kind, answer.getheader("Retry-After") or "")

    def _asked(self, text: str) -> float | None:
        """Read how long a collector asks us to wait: a number of seconds, or a moment."""
        if text.strip().isdigit():
            return float(text)
        try:
            return max(0.0, (parsedate_to_datetime(text) - self._clock.now()).total_seconds())
        except (ValueError, TypeError):
            return None

    def _take(self, answer: CollectorResponse) -> None:
        """Read what a collector did not want, of a request that it took otherwise."""
        if not answer.body or answer.kind not in (otlp.JSON, otlp.PROTOBUF):
            return
        partial = otlp.decoded(RESPONSE, answer.body, answer.kind).get("partialSuccess") or {}
        self.rejected += int(partial.get("rejectedSpans") or 0)
        if text := str(partial.get("errorMessage") or "")[:_MOST_SHOWN]:
            self.messages = [*self.messages[:20], text]

    def _refusal(self, answer: CollectorResponse, count: int) -> "Denied | Invalid | Unreachable":
        if answer.status == 0:
            return Unreachable(
                f"{self.shown} was not reached: {answer.problem}", hint="Send the run again: it is the same spans."
            )
        told = f"{self.shown} answered {answer.status} to {count} spans{self._reason(answer)}"
        if answer.may_retry:
            return Unreachable(told, hint="Send the run again later: it is the same spans.", status=answer.status)
        if answer.status in (401, 403):
            return Denied(told, hint="Give what it asks for: --header authorization='Bearer …'", status=answer.status)
        return Invalid(told, status=answer.status)

    def _reason(self, answer: CollectorResponse) -> str:
        try:
            known = answer.kind in (otlp.JSON, otlp.PROTOBUF)
            text = str(otlp.decoded(STATUS, answer.body, answer.kind).get("message") or "") if known else ""
        except Invalid:
            text = ""
        text = text or (answer.body.decode("utf-8", "replace") if answer.kind.startswith("text/plain") else "")
        return f": {text.strip()[:_MOST_SHOWN]}" if text.strip() else ""


def checked_headers(given: "Mapping[str, str]") -> "dict[str, str]":
    """Refuse a header that would end the line that it stands on."""
    for name, value in given.items():
        if not name.strip() or not (name + value).isprintable() or ":" in name or " " in name:
            raise Invalid(f"{name!r} is no header", hint="Such as --header x-api-key=VALUE")
    return dict(given)
