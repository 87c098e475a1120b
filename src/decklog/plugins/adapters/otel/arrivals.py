"""Spans that arrive, put on record: each in the run of its trace, whatever order they come in and however often."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decklog.core.clock import from_text
from decklog.core.errors import Conflict, DecklogError, Invalid, Unavailable
from decklog.importing.landing import run_id_of
from decklog.journal.rows import COLUMNS
from decklog.plugins.adapters.otel import conventions as names
from decklog.plugins.adapters.otel.incoming import ENTRY, RUN, SOURCE, SpanPart, SpanSources, pieces_of, run_of_trace
from decklog.plugins.adapters.otel.otlp import Unreadable
from decklog.stores.intake import Intake
from decklog.stores.money.bulk import Bulk
from decklog.stores.runs.run import ENDED, Run, RunStatus, check_run_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from decklog.log import Decklog
    from decklog.plugins.adapters.otel.span import OtelSpan

# What marks a run that was made of spans, in its metadata.
_MARK = "otel"
_NOTE = "spans"
_MOST_REASONS = 20
_MOST_TRACES = 10_000
_SUBTYPE = COLUMNS.index("subtype")
_CHANGE = """
update runs set goal = :goal, status = :status, started_at = :started_at, ended_at = :ended_at, summary = :summary, repo = :repo,
       branch = :branch, worktree = :worktree, metadata = :metadata, parent_run_id = :parent_run_id, updated_at = :updated_at
 where id = :id
returning *
"""


@dataclass
class Arrived:
    """What came of some spans: how many entries and charges were new, how many spans were refused, and why."""

    spans: int = 0
    told: int = 0
    new: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, name: str, why: str) -> None:
        """Count a span that was not taken; of the same kind of trouble a few reasons are enough."""
        self.refused += 1
        if len(self.reasons) < _MOST_REASONS:
            self.reasons.append(f"{name}: {why}")


class Placement:
    """Says which run a span belongs to: one of ours that it names, that of its conversation if so asked, that of its trace."""

    def __init__(self, *, by_conversation: bool = False) -> None:
        self._by_conversation = by_conversation
        # Not every span of a trace names its conversation; those that came last are remembered.
        self._conversations: dict[str, str] = {}

    def look(self, spans: "Iterable[OtelSpan]") -> None:
        """Learn which traces are of which conversations."""
        for span in spans if self._by_conversation else ():
            if isinstance(name := span.attributes.get(names.CONVERSATION), str) and name:
                self._conversations.setdefault(span.trace_id, name)
        while len(self._conversations) > _MOST_TRACES:
            del self._conversations[next(iter(self._conversations))]

    def of(self, span: "OtelSpan") -> "tuple[str, dict[str, Any]]":
        """Return a run's id, and what tells it from others of that name."""
        if isinstance(own := span.attributes.get(names.RUN), str):
            check_run_id(own)
            return own, {"trace": span.trace_id}
        named = span.attributes.get(names.CONVERSATION) if self._by_conversation else None
        conversation = named if isinstance(named, str) and named else self._conversations.get(span.trace_id)
        if conversation is not None:
            return run_id_of(conversation), {"conversation": conversation}
        return run_of_trace(span.trace_id), {"trace": span.trace_id}


def pieces_among(found: "Iterable[OtelSpan | Unreadable]", placement: Placement, arrived: Arrived) -> "list[SpanPart]":
    """Read what spans that came together tell; those that tell nothing that can be written are refused."""
    spans: list[OtelSpan] = []
    for one in found:
        arrived.spans += 1
        if isinstance(one, Unreadable):
            arrived.refuse(one.name, one.why)
        else:
            spans.append(one)
    placement.look(spans)
    pieces: list[SpanPart] = []
    # Where spans come from is told with the first of a run, and of these few the others say the same.
    sources = SpanSources()
    for span in sorted(spans, key=lambda span: (span.start, span.span_id)):
        try:
            pieces += pieces_of(span, *placement.of(span), sources)
        except Invalid as problem:
            arrived.refuse(f"{span.trace_id}/{span.span_id}", problem.message)
    return pieces


class Arrivals:
    """Writes what spans tell."""

    def __init__(self, log: "Decklog", *, by_conversation: bool = False) -> None:
        self._log = log
        self._intake = Intake(log.parts)
        self._bulk = Bulk(log.parts)
        self._placement = Placement(by_conversation=by_conversation)

    def take(self, found: "Iterable[OtelSpan | Unreadable]") -> Arrived:
        """Put spans on record that came together."""
        arrived = Arrived()
        pieces = pieces_among(found, self._placement, arrived)
        self.write(sorted(pieces, key=lambda piece: (piece.run_id, piece.order)), arrived)
        return arrived

    def write(self, pieces: "Sequence[SpanPart]", arrived: Arrived) -> None:
        """Write pieces in their order, in one transaction; a span that can't be written keeps none of the others out."""
        arrived.told += len(pieces)
        with self._log.transaction():
            arrived.new += self._write(list(pieces), arrived)

    def _write(self, pieces: "list[SpanPart]", arrived: Arrived) -> int:
        if not pieces:
            return 0
        try:
            with self._log.transaction():
                return self._write_together(pieces)
        except Unavailable:
            raise
        except DecklogError as problem:
            if problem.retryable:
                raise
            spans = list(dict.fromkeys(piece.span for piece in pieces))
            if len(spans) == 1:
                arrived.refuse(spans[0], problem.message)
                return self._write_source(pieces)
        first = set(spans[: len(spans) // 2])
        halves = [piece for piece in pieces if piece.span in first], [piece for piece in pieces if piece.span not in first]
        return sum(self._write(half, arrived) for half in halves)

    def _write_source(self, pieces: "list[SpanPart]") -> int:
        """Write where a span comes from that was refused: the others of its run leave that to it."""
        source = [piece for piece in pieces if _subtype(piece) == SOURCE]
        if not source:
            return 0
        try:
            with self._log.transaction():
                return self._write_together(source)
        except Unavailable:
            raise
        except DecklogError as problem:
            if problem.retryable:
                raise
            return 0

    def _write_together(self, pieces: "list[SpanPart]") -> int:
        for piece in {piece.run_id: piece for piece in reversed(pieces)}.values():
            self._begin(piece.run_id, piece.origin, piece.at)
        told = [_timed(piece) for piece in pieces if piece.what != RUN]
        new = self._bulk.take(told) if told else 0
        return new + sum(self._complete(piece.told) for piece in pieces if isinstance(piece.told, dict) and piece.what == RUN)

    # Runs

    def _begin(self, run_id: str, origin: "dict[str, Any]", at: str) -> Run:
        """Begin a run with the first that is heard of it. One that was not made of these spans is left alone."""
        # Not by the verb, which looks for what else may be meant by an id that it does not find.
        run = self._intake.seek(Run, run_id)
        if run is None:
            goal = f"Conversation {origin['conversation']}" if "conversation" in origin else f"Trace {origin['trace']}"
            return self._log.runs.start(
                goal, run_id=run_id, started_at=from_text(at), metadata={_MARK: {**origin, "named": False}}
            )
        mark = run.metadata.get(_MARK)
        if not isinstance(mark, dict) or any(mark.get(name) != value for name, value in origin.items()):
            raise Conflict(f"the run {run_id} that is here was not made of these spans; it is left as it is", run_id=run_id)
        return run

    def _complete(self, told: "dict[str, Any]") -> int:
        """Return what a run was, once the span that it is as a whole has come."""
        run = self._log.runs.get(told["id"])
        mark: Any = run.metadata[_MARK]
        parent = told.get("parent")
        if isinstance(parent, str) and parent != run.id:
            check_run_id(parent)
            self._begin(parent, {name: mark[name] for name in ("trace",) if name in mark}, told["started_at"])
        else:
            parent = run.parent_run_id
        fields = _completed(run, told, is_named=bool(mark.get("named")))
        metadata = {**run.metadata, **(told.get("metadata") or {}), _MARK: {**mark, "named": True}}
        fields |= {"metadata": metadata, "parent_run_id": parent}
        if all(getattr(run, name) == value for name, value in fields.items()):
            return 0
        self._intake.change_all(Run, _CHANGE, note=_NOTE, id=run.id, updated_at=self._log.clock.now(), **fields)
        return 1


def _completed(run: Run, told: "dict[str, Any]", *, is_named: bool) -> "dict[str, Any]":
    """Join what is known of a run with what one of its outermost spans says: the earliest names it, and the last one ends it."""
    started, ended = from_text(told["started_at"]), from_text(told["ended_at"])
    is_first = not is_named or started < run.started_at
    is_last = run.ended_at is None or ended >= run.ended_at
    status = RunStatus(told["status"]) if told["status"] in ENDED else RunStatus.COMPLETED
    known = {name: getattr(run, name) for name in ("repo", "branch", "worktree")}
    return {
        **{name: told.get(name) or value for name, value in known.items()},
        "goal": told["goal"] if is_first else run.goal,
        "started_at": started if is_first else run.started_at,
        "ended_at": ended if is_last else run.ended_at,
        "status": status if is_last and (told["is_whole"] or run.status not in ENDED) else run.status,
        "summary": (told.get("summary") or run.summary) if is_last else run.summary,
    }


def _subtype(piece: SpanPart) -> "Any":
    return piece.told.get("subtype") if isinstance(piece.told, dict) else piece.told[_SUBTYPE]


def _timed(piece: SpanPart) -> "dict[str, Any] | tuple[Any, ...]":
    """Return what is to be written, with its moment; what was prepared has it."""
    if isinstance(piece.told, tuple):
        return piece.told
    return timed(piece.told, "at" if piece.what == ENTRY else "occurred_at")


def timed(told: "dict[str, Any]", name: str) -> "dict[str, Any]":
    """Read the moment in what a piece tells."""
    try:
        return {**told, name: from_text(told[name])}
    except (ValueError, OverflowError):
        raise Invalid(f"{told[name]!r} is no time") from None
