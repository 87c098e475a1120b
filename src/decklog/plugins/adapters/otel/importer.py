"""Record spans, each once in the run of its trace, in any order: as they arrive, or from files of OTLP in JSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import Conflict, DecklogError, Invalid, Unavailable
from decklog.importing.files import json_lines, json_values
from decklog.importing.report import Outcome, Report
from decklog.importing.writer import RowWriter, run_id_of
from decklog.log import Decklog
from decklog.plugins.adapters.otel import conventions as names
from decklog.plugins.adapters.otel.incoming import ENTRY, RUN, SOURCE, SpanPart, pieces_of, run_of_trace
from decklog.plugins.adapters.otel.otlp import OtelSpan, Unreadable, spans_in
from decklog.records.values import to_json
from decklog.stores.intake import Intake
from decklog.stores.money.bulk import Bulk
from decklog.stores.runs.run import ENDED, Run, RunStatus, check_run_id

# The metadata key of a run that was created from spans.
_MARK = "otel"
_NOTE = "spans"
_MOST_REASONS = 20
_MOST_TRACES = 10_000
_BATCH = 1000
_CHANGE = """
update runs set goal = :goal, status = :status, started_at = :started_at, ended_at = :ended_at, summary = :summary, repo = :repo,
       branch = :branch, worktree = :worktree, metadata = :metadata, parent_run_id = :parent_run_id, updated_at = :updated_at
 where id = :id
returning *
"""


@dataclass
class SpanCounts:
    """Counts spans that were read and refused, with reasons, and the new entries and charges."""

    spans: int = 0
    parts: int = 0
    new: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, name: str, why: str) -> None:
        """Count a refused span; the first few reasons are kept."""
        self.refused += 1
        if len(self.reasons) < _MOST_REASONS:
            self.reasons.append(f"{name}: {why}")


class SpanWriter:
    """Writes spans to the runs that they name, to those of their conversations if enabled, or to those of their traces."""

    def __init__(self, log: Decklog, *, by_conversation: bool = False) -> None:
        self._log = log
        self._intake = Intake(log.parts)
        self._bulk = Bulk(log.parts)
        self._by_conversation = by_conversation
        # Not every span of a trace names its conversation; the newest ones are remembered.
        self._conversations: dict[str, str] = {}

    def take(self, found: Iterable[OtelSpan | Unreadable]) -> SpanCounts:
        """Record a batch of spans."""
        counts = SpanCounts()
        parts = self.parts(found, counts)
        self.write(sorted(parts, key=lambda part: (part.run_id, part.order)), counts)
        return counts

    def parts(self, found: Iterable[OtelSpan | Unreadable], counts: SpanCounts) -> list[SpanPart]:
        """Convert a batch of spans; refuse those that can't be written."""
        spans: list[OtelSpan] = []
        for one in found:
            counts.spans += 1
            if isinstance(one, Unreadable):
                counts.refuse(one.name, one.why)
            else:
                spans.append(one)
        self._learn_conversations(spans)
        parts: list[SpanPart] = []
        # The source of spans is recorded with the first span of a run.
        recorded: set[tuple[str, str]] = set()
        for span in sorted(spans, key=lambda span: (span.start, span.span_id)):
            try:
                parts += pieces_of(span, *self._run_of(span), recorded)
            except Invalid as problem:
                counts.refuse(f"{span.trace_id}/{span.span_id}", problem.message)
        return parts

    def _learn_conversations(self, spans: Iterable[OtelSpan]) -> None:
        for span in spans if self._by_conversation else ():
            if isinstance(name := span.attributes.get(names.CONVERSATION), str) and name:
                self._conversations.setdefault(span.trace_id, name)
        while len(self._conversations) > _MOST_TRACES:
            del self._conversations[next(iter(self._conversations))]

    def _run_of(self, span: OtelSpan) -> tuple[str, dict[str, Any]]:
        """Return a run's id, and the origin that distinguishes it from other runs of that name."""
        if isinstance(own := span.attributes.get(names.RUN), str):
            check_run_id(own)
            return own, {"trace": span.trace_id}
        named = span.attributes.get(names.CONVERSATION) if self._by_conversation else None
        conversation = named if isinstance(named, str) and named else self._conversations.get(span.trace_id)
        if conversation is not None:
            return run_id_of(conversation), {"conversation": conversation}
        return run_of_trace(span.trace_id), {"trace": span.trace_id}

    # Writing

    def write(self, parts: Sequence[SpanPart], counts: SpanCounts) -> None:
        """Write parts in their order, in one transaction; a span that can't be written does not affect the others."""
        counts.parts += len(parts)
        with self._log.transaction():
            counts.new += self._write(list(parts), counts)

    def _write(self, parts: list[SpanPart], counts: SpanCounts) -> int:
        """Write parts together; if that fails, write each half alone, down to the refused span."""
        if not parts:
            return 0
        try:
            with self._log.transaction():
                for part in {part.run_id: part for part in reversed(parts)}.values():
                    self._begin(part.run_id, part.origin, part.at)
                rows = [_with_time(part) for part in parts if part.what != RUN]
                new = self._bulk.take(rows) if rows else 0
                return new + sum(self._complete(part.values) for part in parts if part.what == RUN)
        except DecklogError as problem:
            if problem.retryable or isinstance(problem, Unavailable):
                raise
            spans = list(dict.fromkeys(part.span for part in parts))
            if len(spans) == 1:
                # Later spans of the run rely on this one to record their source.
                source = [part for part in parts if part.values.get("subtype") == SOURCE]
                if source == parts:
                    return 0
                counts.refuse(spans[0], problem.message)
                return self._write(source, counts)
        first = set(spans[: len(spans) // 2])
        halves = [part for part in parts if part.span in first], [part for part in parts if part.span not in first]
        return sum(self._write(half, counts) for half in halves)

    # Runs

    def _begin(self, run_id: str, origin: dict[str, Any], at: str) -> None:
        """Start a run with its first span; raise Conflict for a run that was not created from these spans."""
        # Not `runs.get`, which searches for similar ids if there is none.
        run = self._intake.seek(Run, run_id)
        if run is None:
            goal = f"Conversation {origin['conversation']}" if "conversation" in origin else f"Trace {origin['trace']}"
            metadata: dict[str, Any] = {_MARK: {**origin, "named": False}}
            self._log.runs.start(goal, run_id=run_id, started_at=from_text(at), metadata=metadata)
            return
        mark = run.metadata.get(_MARK)
        if not isinstance(mark, dict) or any(mark.get(name) != value for name, value in origin.items()):
            raise Conflict(f"the run {run_id} that is here was not made of these spans; it is left as it is", run_id=run_id)

    def _complete(self, values: dict[str, Any]) -> int:
        """Update a run by one of its outermost spans; return 1 if that changed it."""
        run = self._log.runs.get(values["id"])
        mark: Any = run.metadata[_MARK]
        parent = values.get("parent")
        if isinstance(parent, str) and parent != run.id:
            check_run_id(parent)
            self._begin(parent, {name: mark[name] for name in ("trace",) if name in mark}, values["started_at"])
        else:
            parent = run.parent_run_id
        fields = _merge_run(run, values, is_named=bool(mark.get("named")))
        metadata = {**run.metadata, **(values.get("metadata") or {}), _MARK: {**mark, "named": True}}
        fields |= {"metadata": metadata, "parent_run_id": parent}
        if all(getattr(run, name) == value for name, value in fields.items()):
            return 0
        self._intake.change_all(Run, _CHANGE, note=_NOTE, id=run.id, updated_at=self._log.clock.now(), **fields)
        return 1


def _merge_run(run: Run, values: dict[str, Any], *, is_named: bool) -> dict[str, Any]:
    """Merge a run with one of its outermost spans: the earliest one names the run, and the last one ends it."""
    started, ended = from_text(values["started_at"]), from_text(values["ended_at"])
    is_first = not is_named or started < run.started_at
    is_last = run.ended_at is None or ended >= run.ended_at
    status = RunStatus(values["status"]) if values["status"] in ENDED else RunStatus.COMPLETED
    return {
        **{name: values.get(name) or getattr(run, name) for name in ("repo", "branch", "worktree")},
        "goal": values["goal"] if is_first else run.goal,
        "started_at": started if is_first else run.started_at,
        "ended_at": ended if is_last else run.ended_at,
        "status": status if is_last and (values["is_whole"] or run.status not in ENDED) else run.status,
        "summary": (values.get("summary") or run.summary) if is_last else run.summary,
    }


def _with_time(part: SpanPart) -> dict[str, Any]:
    name = "at" if part.what == ENTRY else "occurred_at"
    try:
        return {**part.values, name: from_text(part.values[name])}
    except (ValueError, OverflowError):
        raise Invalid(f"{part.values[name]!r} is no time") from None


class OtlpImport:
    """Imports a file. It is read completely first: spans are ordered by their ends, but entries by time."""

    def __init__(
        self,
        log: Decklog,
        path: str,
        *,
        by_conversation: bool = False,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.path = path
        self.report = Report("otlp", path, dry_run)
        self._rows = RowWriter(log, self.report)
        self._writer = SpanWriter(log, by_conversation=by_conversation)
        self._counts = SpanCounts()
        self._progress = progress

    def run(self) -> Report:
        """Import everything, or only report what would be done."""
        parts = self._read()
        with self._rows.open():
            for start in range(0, len(parts), _BATCH):
                batch = parts[start : start + _BATCH]
                self._writer.write(batch, self._counts)
                if self._progress:
                    self._progress("spans", start + len(batch), len(parts))
        self._report()
        return self.report

    def _read(self) -> list[SpanPart]:
        """Read the parts of all spans. A span may have two versions, begun and ended: the later one counts."""
        found: dict[tuple[str, str, str, str], tuple[str, SpanPart]] = {}
        for request in self._requests():
            try:
                parts = self._writer.parts(list(spans_in(request)), self._counts)
            except Invalid as problem:
                self.report.lose(f"a request can't be read: {problem.message}")
                continue
            for part in parts:
                place = (part.run_id, part.order, part.what, part.span)
                version = (to_json([part.at, part.origin, part.values]), part)
                found[place] = max(found.get(place, version), version, key=lambda one: one[0])
        return [part for _, (_, part) in sorted(found.items())]

    def _requests(self) -> Iterator[dict[str, Any]]:
        """Yield the requests of a file, one in each line as collectors write them, or one document."""
        unread: list[str] = []
        has_any = False
        for line in json_lines(self.path):
            if line.trouble is None and "resourceSpans" in line.found:
                has_any = True
                yield line.found
            else:
                unread.append(f"line {line.number}: {line.trouble or 'it holds no resourceSpans'}")
        if has_any:
            for loss in unread:
                self.report.lose(loss)
            return
        whole = [one for one in json_values(self.path)[0] if isinstance(one, dict) and "resourceSpans" in one]
        if not whole:
            raise Invalid(f"{self.path} holds no spans: no line of it is an object with resourceSpans", path=self.path)
        yield from whole

    def _report(self) -> None:
        counts, nothing = self._counts, dict.fromkeys(["read", *Outcome], 0)
        self.report.tables["spans"] = {**nothing, "read": counts.spans, "refused": counts.refused}
        known = counts.parts - counts.new
        self.report.tables["entries"] = {**nothing, "read": counts.parts, "new": counts.new, "already": known}
        for reason in counts.reasons:
            self.report.lose(f"span {reason}")
