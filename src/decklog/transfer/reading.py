"""Reading a log in batches of bounded size."""

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from decklog.journal.chain import SEQ, estimate_size
from decklog.journal.replication import FIELDS, Replication
from decklog.log import Decklog

Entry = dict[str, Any]

MOST_ENTRIES = 5000
MOST_CHARACTERS = 8 * 1024 * 1024
DIGEST = re.compile(r"[0-9a-f]{64}")
NAMED = re.compile(rf"(?<![0-9a-f]){DIGEST.pattern}(?![0-9a-f])")


def entries_of(log: Decklog, stream: str, *, after: int, until: int) -> Iterator[list[Entry]]:
    """Yield a stream's entries after one number up to another; a batch is smaller where entries are large."""
    for rows in rows_of(log, stream, after=after, until=until):
        yield [dict(zip(FIELDS, row[1:], strict=True)) for row in rows]


def rows_of(log: Decklog, stream: str, *, after: int, until: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield a stream's entries as rows; a batch is smaller where entries are large."""
    limit = 100
    while after < until:
        rows = Replication.of(log).rows_after(stream, after, min(limit, until - after))
        if not rows:
            return
        yield rows
        after = rows[-1][SEQ]
        average = estimate_size(rows) // len(rows) + 1
        limit = max(1, min(MOST_ENTRIES, MOST_CHARACTERS // average))


def digest_batches_of(log: Decklog) -> Iterator[list[str]]:
    """Yield the digests of all blobs in their order, some at a time."""
    after = ""
    while batch := Replication.of(log).blob_digests(after=after, limit=1000):
        yield batch
        after = batch[-1]


def digests_in(entry: Entry) -> Iterator[str]:
    """Yield the digests that an entry may name: of its texts, and of what its record refers to."""
    for name in ("body_digest", "payload_digest"):
        if entry[name] is not None:
            yield entry[name]
    if entry["record_table"] is not None:
        yield from NAMED.findall(entry["payload"])


# Called with what is being done, how much of it is done, and how much there is (0 when that is not known).
Progress = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _whole: int) -> None:
    """Report nothing."""


class WorkResult:
    """The base of the data classes with what some work did."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]
