"""Takes over saved spans: files of OTLP in JSON, a request a line as collectors write them, or one document."""

from decklog.adapters.otel.arrivals import Arrivals, Arrived
from decklog.adapters.otel.incoming import Piece
from decklog.adapters.otel.otlp import spans_in
from decklog.errors import Invalid
from decklog.importers.engine.gathering import Gathered
from decklog.importers.engine.landing import Landing
from decklog.importers.engine.report import Fate, Report
from decklog.importers.engine.text_files import document, json_lines
from decklog.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.app import Decklog

_PIECES = "pieces"
_TOGETHER = 1000


class OtlpImport:
    """Reads a file to its end before anything is written: spans stand in it by when they ended, and entries go by their times."""

    def __init__(
        self,
        log: "Decklog",
        path: str,
        *,
        by_conversation: bool = False,
        dry_run: bool = False,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self.path = path
        self.report = Report("otlp", path, dry_run)
        self._landing = Landing(log, self.report)
        self._arrivals = Arrivals(log, by_conversation=by_conversation)
        self._arrived = Arrived()
        self._progress = progress

    def run(self) -> Report:
        """Take everything over, or only say what would become of it."""
        gathered = Gathered()
        try:
            for request in self._requests():
                self._gather(request, gathered)
            with self._landing.open():
                self._write(gathered)
        finally:
            gathered.close()
        return self._told()

    def _requests(self) -> "Iterator[dict[str, Any]]":
        """Give the requests of a file; one that is written over several lines is one document."""
        unread: list[str] = []
        has_any = False
        for line in json_lines(self.path):
            if line.trouble is None and "resourceSpans" in line.found:
                has_any = True
                yield line.found
            else:
                unread.append(f"line {line.number}: {line.trouble or 'it holds no resourceSpans'}")
        if not has_any:
            found = [one for one in document(self.path)[0] if isinstance(one, dict) and "resourceSpans" in one]
            if not found:
                raise Invalid(f"{self.path} holds no spans: no line of it is an object with resourceSpans", path=self.path)
            yield from found
            return
        for trouble in unread:
            self.report.lose(trouble)

    def _gather(self, request: "dict[str, Any]", gathered: Gathered) -> None:
        try:
            pieces = self._arrivals.pieces(list(spans_in(request)), self._arrived)
        except Invalid as problem:
            self.report.lose(f"a request can't be read: {problem.message}")
            return
        for piece in pieces:
            order = f"{piece.run_id}\x1f{piece.order}"
            # What a span is named by may come in two versions: begun, and ended.
            gathered.add(_PIECES, f"{order}\x1f{piece.what}\x1f{piece.span}", to_json(vars_of(piece)), at=order)

    def _write(self, gathered: Gathered) -> None:
        whole, done = gathered.count(_PIECES), 0
        batch: list[Piece] = []
        for row in gathered.rows(_PIECES):
            batch.append(Piece(**row.columns))
            if len(batch) == _TOGETHER:
                done += self._write_batch(batch, done, whole)
                batch = []
        self._write_batch(batch, done, whole)

    def _write_batch(self, batch: "list[Piece]", done: int, whole: int) -> int:
        if batch:
            self._arrivals.write(batch, self._arrived)
        if self._progress and batch:
            self._progress("spans", done + len(batch), whole)
        return len(batch)

    def _told(self) -> Report:
        arrived = self._arrived
        nothing = dict.fromkeys(["read", *Fate], 0)
        self.report.tables["spans"] = {**nothing, "read": arrived.spans, "refused": arrived.refused}
        known = arrived.told - arrived.new
        self.report.tables["entries"] = {**nothing, "read": arrived.told, "new": arrived.new, "already": known}
        for reason in arrived.reasons:
            self.report.lose(f"span {reason}")
        return self.report


def vars_of(piece: Piece) -> "dict[str, Any]":
    """Give a piece as JSON."""
    return {name: getattr(piece, name) for name in Piece.__slots__}
