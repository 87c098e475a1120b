"""Batches whose entries differ in their bodies alone, as whoever records line by line has them: chained column by column.

What is the same in all of them is looked at and written down once; the hashes are those that `chain` gives one by one.
"""

from decklog import digests
from decklog.stores.journal import chain
from decklog.stores.journal.blobs import INLINE_CHARACTERS
from decklog.stores.journal.rows import COLUMNS, STREAM_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Columns = Sequence[Sequence[Any]]

_EMPTY = [
    COLUMNS.index(name)
    for name in ("at", "task_id", "iteration", "key", "record_table", "record_id", "body_digest", "payload_digest", "payload")
]
_SAME = [
    COLUMNS.index(name)
    for name in ("stream", "kind", "subtype", "agent", "agent_id", "group_id", "phase", "confidence", "redacted", "refs")
]
_REDACTED = COLUMNS.index("redacted")


def are_alike(columns: "Columns") -> bool:
    """Tell whether entries that were prepared are of one stream and differ in their bodies alone, none of them long."""
    count, bodies = len(columns[0]), columns[chain.BODY]
    return (
        columns[_REDACTED][0] == 0
        and all(columns[place].count(None) == count for place in _EMPTY)
        and all(columns[place].count(columns[place][0]) == count for place in _SAME)
        and None not in bodies
        and max(map(len, bodies)) <= INLINE_CHARACTERS
    )


def chained(columns: "Columns", head: "tuple[Any, ...]", now: str) -> "list[Sequence[Any]]":
    """Give such entries their places behind a stream's head, one time, and their hashes."""
    position, previous, _ = head
    bodies, last = columns[chain.BODY], position + len(columns[0])
    before, between, after = chain.around_body([column[0] for column in columns], now)
    hashes = []
    for seq, body in enumerate(bodies, position % STREAM_SIZE + 1):
        text = f"{previous}{before}{digests.sha256(body.encode()).hexdigest()}{between}{seq}{after}"
        previous = digests.sha256(text.encode()).hexdigest()
        hashes.append(previous)
    made = [*columns]
    made[0], made[chain.SEQ] = range(position + 1, last + 1), range(position % STREAM_SIZE + 1, last % STREAM_SIZE + 1)
    made[chain.AT], made[chain.HASH] = (now,) * len(hashes), hashes
    return made


def filled(columns: "Columns") -> "tuple[tuple[str, ...], list[tuple[Any, ...]]]":
    """Name the columns that hold anything, and give their rows: what is empty need not be bound."""
    places = [place for place, column in enumerate(columns) if column[0] is not None]
    return tuple([COLUMNS[place] for place in places]), [*zip(*[columns[place] for place in places], strict=True)]
