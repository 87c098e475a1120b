"""What must be true of a journal: which entries each stream has, and which texts are still there. It knows no database."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

# Long texts are stored once for all entries that have them.
INLINE = 64 * 1024
Streams = dict[str, tuple["Line", ...]]


@dataclass(frozen=True)
class Line:
    """One entry. For a change, `record` names what changed and `value` tells what it became."""

    kind: str
    at: datetime
    subtype: str | None = None
    group: str | None = None
    key: str | None = None
    body: str | None = None
    number: int | None = None
    record: tuple[str, str] | None = None
    value: Any = None
    # Whether its own texts were dropped, and the hash that the log gave it.
    is_pruned: bool = False
    hash: str | None = None

    @property
    def identity(self) -> tuple[str | None, ...]:
        return self.subtype, self.group, self.key

    @property
    def is_long(self) -> bool:
        return self.body is not None and len(self.body) > INLINE

    @property
    def own_texts(self) -> int:
        """Count the texts that stand in the entry itself."""
        return 0 if self.is_pruned else (self.body is not None and not self.is_long) + (self.number is not None)

    def words(self) -> set[str]:
        """Give the words that can be searched for: those of texts in the entry itself."""
        return set() if self.is_pruned or self.is_long or self.body is None else set(self.body.split())


@dataclass
class JournalWorld:
    streams: Streams = field(default_factory=dict)
    # The long texts that are there.
    stored_bodies: frozenset[str] = frozenset()

    def copy(self) -> "JournalWorld":
        return JournalWorld(dict(self.streams), self.stored_bodies)

    def add(self, stream: str, line: Line) -> None:
        self.streams[stream] = (*self.streams.get(stream, ()), line)
        if line.is_long and line.body is not None:
            self.stored_bodies |= {line.body}

    def known(self, stream: str, line: Line) -> int | None:
        """Find the number of the entry that a key means."""
        if line.key is None:
            return None
        same = [seq for seq, other in enumerate(self.streams[stream], 1) if other.identity == line.identity]
        return same[0] if same else None

    def body(self, line: Line) -> str | None:
        if line.is_long:
            return line.body if line.body in self.stored_bodies else None
        return None if line.is_pruned else line.body

    def visible(self, line: Line) -> tuple[Any, ...]:
        """Give what can be seen of an entry; what the log says about itself in its own words is not looked at."""
        facts = (line.kind, line.at, line.subtype, line.group, line.key, line.record)
        number = None if line.is_pruned else line.number
        return facts if line.kind == "change" or line.subtype == "pruned" else (*facts, self.body(line), number)

    # Retention

    def prune(self, before: datetime, kind: str | None, only: str | None, now: datetime) -> tuple[int, int]:
        """Drop texts from before a time; give how many entries lost theirs, and how many long texts are gone."""

        def goes(stream: str, line: Line) -> bool:
            fits = line.kind != "change" and line.subtype != "pruned" and kind in (None, line.kind)
            return fits and line.at < before and only in (None, stream)

        every = [(stream, line) for stream, lines in self.streams.items() for line in lines]
        bodies = {line.body for stream, line in every if line.is_long and not goes(stream, line)}
        gone = {line.body for stream, line in every if line.is_long and goes(stream, line)} & self.stored_bodies - bodies
        losing = [stream for stream, line in every if goes(stream, line) and line.own_texts]
        owners = [stream for stream, line in every if line.body in gone and goes(stream, line)]
        for stream, lines in self.streams.items():
            self.streams[stream] = tuple(
                replace(line, is_pruned=True) if goes(stream, line) and line.own_texts else line for line in lines
            )
        self.stored_bodies -= frozenset(body for body in gone if body is not None)
        for stream in dict.fromkeys([*sorted(set(losing)), *sorted(set(owners))]):
            self.add(stream, Line("event", now, "pruned"))
        return len(losing), len(gone)

    # Other logs

    def is_beginning(self, stream: str, other: "JournalWorld") -> bool:
        """Tell whether another log's stream is the beginning of this one's, or all of it."""
        theirs = [line.hash for line in other.streams.get(stream, ())]
        return [line.hash for line in self.streams.get(stream, ())[: len(theirs)]] == theirs

    def order(self) -> list[str]:
        return sorted(self.streams, key=lambda name: (name.startswith("@"), name))

    def follow(self, stream: str, other: "JournalWorld") -> None:
        """Take in what another log has after the end of this one's stream."""
        here = self.streams.get(stream, ())
        self.streams[stream] = (*here, *other.streams[stream][len(here) :])
