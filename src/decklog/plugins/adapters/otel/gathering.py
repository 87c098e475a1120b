"""Spans of a file, read to its end, put in order and prepared: all that needs no log, so that another process can do it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.importing.gathering import Gathered
from decklog.importing.text_files import document, json_lines
from decklog.plugins.adapters.otel.arrivals import Arrived, Placement, pieces_among
from decklog.plugins.adapters.otel.incoming import SpanPart
from decklog.plugins.adapters.otel.otlp import spans_in
from decklog.records.values import Values, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


_PIECES = "pieces"
_TOGETHER = 1000
_REMEMBERED = 8 * 1024**2


@dataclass(frozen=True)
class SpanFileRequest:
    """Which file is to be read, and how."""

    path: str
    by_conversation: bool
    limit_bytes: int


@dataclass
class SpanFileSummary:
    """What a file holds: how many spans, how many pieces they tell, and what was lost of it."""

    arrived: Arrived = field(default_factory=Arrived)
    losses: list[str] = field(default_factory=list)
    whole: int = 0


def read_spans(asked: SpanFileRequest) -> "Iterator[SpanFileSummary | list[SpanPart]]":
    """Yield what a file holds once it is read to its end, and then what its spans tell, in order and part by part."""
    reading = _Reading(asked)
    try:
        yield reading.found()
        yield from reading.parts()
    finally:
        reading.close()


class _Reading:
    def __init__(self, asked: SpanFileRequest) -> None:
        self._path = asked.path
        self._placement = Placement(by_conversation=asked.by_conversation)
        self._values = Values(asked.limit_bytes, remembered_bytes=_REMEMBERED)
        self._gathered = Gathered()
        self._found = SpanFileSummary()

    def found(self) -> SpanFileSummary:
        for request in self._requests():
            self._gather(request)
        self._found.whole = self._gathered.count(_PIECES)
        return self._found

    def close(self) -> None:
        self._gathered.close()

    def _requests(self) -> "Iterator[dict[str, Any]]":
        """Yield the requests of a file; one that is written over several lines is one document."""
        unread: list[str] = []
        has_any = False
        for line in json_lines(self._path):
            if line.trouble is None and "resourceSpans" in line.found:
                has_any = True
                yield line.found
            else:
                unread.append(f"line {line.number}: {line.trouble or 'it holds no resourceSpans'}")
        if not has_any:
            found = [one for one in document(self._path)[0] if isinstance(one, dict) and "resourceSpans" in one]
            if not found:
                raise Invalid(f"{self._path} holds no spans: no line of it is an object with resourceSpans", path=self._path)
            yield from found
            return
        self._found.losses += unread

    def _gather(self, request: "dict[str, Any]") -> None:
        try:
            pieces = pieces_among(list(spans_in(request)), self._placement, self._found.arrived)
        except Invalid as problem:
            self._found.losses.append(f"a request can't be read: {problem.message}")
            return
        for piece in pieces:
            order = f"{piece.run_id}\x1f{piece.order}"
            # What a span is named by may come in two versions: begun, and ended. They differ in what stands first.
            text = to_json([piece.at, piece.origin, piece.told, piece.span, piece.run_id, piece.order, piece.what])
            self._gathered.add(_PIECES, f"{order}\x1f{piece.what}\x1f{piece.span}", text, at=order)

    def parts(self) -> "Iterator[list[SpanPart]]":
        batch: list[SpanPart] = []
        for _, text in self._gathered.texts(_PIECES):
            at, origin, told, span, run_id, order, what = from_json(text)
            batch.append(SpanPart(span, run_id, origin, at, order, what, told))
            if len(batch) == _TOGETHER:
                yield batch
                batch = []
        if batch:
            yield batch
