"""Takes over saved spans: files of OTLP in JSON, a request a line as collectors write them, or one document."""

from itertools import chain
from typing import TYPE_CHECKING

from decklog.importing.landing import RowWriter
from decklog.importing.report import Fate, Report
from decklog.plugins.adapters.otel.arrivals import Arrivals, Arrived
from decklog.plugins.adapters.otel.gathering import SpanFileRequest, SpanFileSummary, read_spans

if TYPE_CHECKING:
    from collections.abc import Callable

    from decklog.log import Decklog
    from decklog.plugins.adapters.otel.incoming import SpanPart


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
        self._landing = RowWriter(log, self.report)
        self._arrivals = Arrivals(log, by_conversation=by_conversation)
        self._asked = SpanFileRequest(path, by_conversation, log.db.values.limit_bytes)
        self._found = SpanFileSummary()
        self._progress = progress

    def run(self) -> Report:
        """Take everything over, or only say what would become of it."""
        parts = read_spans(self._asked)
        # Before anything is locked.
        first = next(parts)
        with self._landing.open():
            done = 0
            for part in chain((first,), parts):
                done += self._take(part, done)
        return self._told()

    def _take(self, part: "SpanFileSummary | list[SpanPart]", done: int) -> int:
        if isinstance(part, SpanFileSummary):
            self._found = part
            return 0
        self._arrivals.write(part, self._found.arrived)
        if self._progress:
            self._progress("spans", done + len(part), self._found.whole)
        return len(part)

    def _told(self) -> Report:
        arrived: Arrived = self._found.arrived
        for loss in self._found.losses:
            self.report.lose(loss)
        nothing = dict.fromkeys(["read", *Fate], 0)
        self.report.tables["spans"] = {**nothing, "read": arrived.spans, "refused": arrived.refused}
        known = arrived.told - arrived.new
        self.report.tables["entries"] = {**nothing, "read": arrived.told, "new": arrived.new, "already": known}
        for reason in arrived.reasons:
            self.report.lose(f"span {reason}")
        return self.report
