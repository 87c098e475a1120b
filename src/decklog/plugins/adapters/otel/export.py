"""Runs, with those below them, handed on as spans: to a collector, or into a file of JSON lines."""

from typing import TYPE_CHECKING

from decklog.importing.exports.texts import TextExport
from decklog.importing.pages import every
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.outgoing import RunSpans
from decklog.plugins.adapters.otel.protobuf import REQUEST
from decklog.stores.runs.run import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.log import Decklog
    from decklog.plugins.adapters.otel.sending import Sender
    from decklog.plugins.adapters.otel.span import OtelSpan
    from decklog.stores.runs.run import Run

    Sink = Callable[[Sequence[OtelSpan]], None]

# A batch is as large as a collector takes without being told to, and so is what is held here.
_MOST_SPANS, _MOST_CHARACTERS = 512, 1024**2
# So long nothing happens before what waits is sent.
_QUIET_SECONDS = 2.0


class OtlpExport:
    """Hands runs on, batch by batch."""

    def __init__(
        self,
        log: "Decklog",
        run_ids: "Sequence[str]",
        *,
        texts: bool = True,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self._log = log
        self._run_ids = run_ids
        self._runs = self._with_below(run_ids)
        self._texts = texts
        self._progress = progress
        self._batch: list[OtelSpan] = []
        self._room = _MOST_CHARACTERS
        self.counts = {"runs": 0, "spans": 0, "waiting": 0}
        self.left_out: dict[str, int] = {}

    def _with_below(self, run_ids: "Sequence[str]") -> "list[Run]":
        """Name the runs, each before those that are a part of it. Forks are undertakings of their own."""
        found: dict[str, Run] = {}
        waiting = [self._log.runs.get(run_id) for run_id in reversed(run_ids)]
        while waiting:
            run = waiting.pop()
            if run.id in found:
                continue
            found[run.id] = run
            below = every(lambda run=run, **page: self._log.runs.find(parent_run_id=run.id, oldest_first=True, **page))
            waiting += [child for child in below if child.parent_seq is None]
        return list(found.values())

    # Where to

    def send(self, sender: "Sender", *, follow: bool = False) -> "dict[str, Any]":
        """Send to a collector. With `follow`, go on with the first run until it has ended."""
        try:
            self._hand_on(sender.send, follow=follow)
        finally:
            sender.close()
        told = {"to": sender.shown, **self.counts, "rejected": sender.rejected, "messages": sender.messages}
        return {**told, "left_out": self.left_out}

    def write(self, path: str, *, replace: bool = False) -> "dict[str, Any]":
        """Write a file: a line for each batch, as collectors write them."""
        with TextExport(self._log, path, "otlp", replace=replace) as out:
            self._hand_on(lambda spans: out.write(otlp.encoded(REQUEST, otlp.request_of(spans), otlp.JSON).decode() + "\n"))
            out.finish()
        return {"path": path, **self.counts, "left_out": self.left_out}

    # Batches

    def _hand_on(self, sink: "Sink", *, follow: bool = False) -> None:
        first, *rest = self._runs
        self._hand_on_run(first, sink, follow=follow)
        if follow:
            # Others may have begun below it meanwhile.
            _, *rest = self._with_below(self._run_ids)
        for run in rest:
            self._hand_on_run(run, sink, follow=False)
        self._flush(sink)

    def _hand_on_run(self, run: "Run", sink: "Sink", *, follow: bool) -> None:
        from decklog import __version__

        spans = RunSpans(self._log, run, texts=self._texts, version=__version__)
        for entry in self._entries(run, sink, follow=follow):
            for span in spans.of(entry):
                self._add(span, sink)
        # It may have ended meanwhile.
        spans.run = self._log.runs.get(run.id)
        for span in spans.rest():
            self._add(span, sink)
        self.counts["runs"] += 1
        self.counts["waiting"] += spans.waiting
        for table, count in spans.left_out.items():
            self.left_out[table] = self.left_out.get(table, 0) + count

    def _entries(self, run: "Run", sink: "Sink", *, follow: bool) -> "Iterator[Entry]":
        """Yield a run's entries; what waits is sent whenever nothing happens for a while."""
        last = 0
        while True:
            # Asked first: whatever is written before a run ends is read after that is known.
            has_ended = self._log.runs.get(run.id).status in ENDED
            is_waiting = follow and not has_ended
            for entry in self._log.journal.tail(
                run.id, after=last, follow=is_waiting, timeout_seconds=_QUIET_SECONDS if is_waiting else None
            ):
                last = entry.seq
                yield entry
            if not is_waiting:
                return
            self._flush(sink)

    def _add(self, span: "OtelSpan", sink: "Sink") -> None:
        self._batch.append(span)
        self._room -= sum(len(value) for value in span.attributes.values() if isinstance(value, str)) + 500
        if len(self._batch) >= _MOST_SPANS or self._room <= 0:
            self._flush(sink)

    def _flush(self, sink: "Sink") -> None:
        batch, self._batch, self._room = self._batch, [], _MOST_CHARACTERS
        if not batch:
            return
        sink(batch)
        self.counts["spans"] += len(batch)
        if self._progress:
            self._progress("spans", self.counts["spans"], 0)
