"""Two moments of runs side by side: what their entries add up to, and which records differ, from one look at their images."""

from dataclasses import dataclass

from decklog.db.base import Database, Row
from decklog.records.record import Record
from decklog.records.values import from_json
from decklog.stores.results.runs import RecordDifference
from decklog.stores.runs.difference import differing
from decklog.stores.runs.history import RunHistory, StreamPosition
from decklog.stores.runs.snapshot import RunSnapshot
from decklog.stores.runs.timeline import RunStory

# A difference is made of every image of a run: of longer runs it is not made.
MOST_ENTRIES = 2000
_IMAGES = """
select {side}, e.seq, e.at, e.record_table, e.record_id, e.payload
  from entries e
 where e.pos > :start{side} and e.pos <= :until{side} and e.record_table is not null
"""


@dataclass(frozen=True)
class Side:
    """One of the moments: its run, as of which entry (None is now), the number of that entry, and what there was until then."""

    place: StreamPosition
    at: str | None
    seq: int
    counts: "dict[str, int]"


@dataclass(frozen=True)
class MomentComparison:
    """Both moments, and what differs between their records; None where one of them is too long for that."""

    sides: list[Side]
    differences: "list[RecordDifference] | None"


def moment_named(text: str) -> tuple[str, str | None]:
    """Read RUN, RUN:ENTRY or RUN@TIME."""
    run_id, mark, when = text.partition("@") if "@" in text else text.rpartition(":")
    return (run_id, when) if mark and ("@" in text or when.isdecimal()) else (text, None)


def look(
    db: Database, history: RunHistory, classes: dict[str, type[Record]], moments: tuple[str, str], *, can_mark: bool
) -> MomentComparison:
    """Look at two moments; raise `TimelineOutdated` where marks of a long run are due and can be made."""
    named = [moment_named(text) for text in moments]
    places = history.places([run_id for run_id, _ in named])
    ends = [(places[run_id], at, history.entry_for(places[run_id], at)) for run_id, at in named]
    if any(seq > MOST_ENTRIES for *_, seq in ends):
        stories = {run_id: history.story(place, can_mark=can_mark) for run_id, place in places.items()}
        return MomentComparison([Side(*end, history.tally(end[0], stories[end[0].run_id], end[2])) for end in ends], None)
    rows = _images(db, [(place.start, place.start + seq) for place, _, seq in ends])
    both = [_added_up(classes, *end, [row[1:] for row in rows if row[0] == side]) for side, end in enumerate(ends)]
    return MomentComparison([side for side, _ in both], differing(*(snapshot for _, snapshot in both)))


def _images(db: Database, spans: list[tuple[int, int]]) -> list[Row]:
    """Read every image of some spans of positions, each marked with the number of its span, oldest first."""
    bound = {
        f"{name}{side}": value for side, span in enumerate(spans) for name, value in zip(("start", "until"), span, strict=True)
    }
    parts = " union all ".join(_IMAGES.format(side=side) for side in range(len(spans)))
    return sorted(db.rows(parts, bound)[1], key=lambda row: (row[0], row[1]))


def _added_up(
    classes: dict[str, type[Record]], place: StreamPosition, at: str | None, seq: int, rows: list[Row]
) -> tuple[Side, RunSnapshot]:
    """Add a run's images up, and keep the newest of each record."""
    story, told = RunStory(), []
    newest: dict[tuple[str, str], str] = {}
    for number, when, table, record_id, payload in rows:
        before = newest.get((table, record_id))
        told.append((number, when, table, record_id, payload, before if before is None or table == "tasks" else ""))
        newest[table, record_id] = payload
    story.add(told, seq)
    records: dict[str, list[Record]] = {}
    order = {table: place for place, table in enumerate(classes)}
    for (table, _), payload in sorted(newest.items(), key=lambda one: order[one[0][0]]):
        image = from_json(payload)
        if not image.get("removed"):
            records.setdefault(table, []).append(classes[table].from_image(image))
    return Side(place, at, seq, story.tally), RunSnapshot(run_id=place.run_id, seq=seq, records=records)
