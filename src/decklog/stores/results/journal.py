"""What the verbs of the journal return."""

from typing import TypedDict


class StreamHead(TypedDict):
    """The last entry of a stream."""

    stream: str
    seq: int
    hash: str


class StreamRange(TypedDict):
    """A range of entries of a stream."""

    stream: str
    first: int
    last: int


class StreamChanges(TypedDict):
    """The streams with entries after a cursor, and the cursor after those entries."""

    moved: list[StreamRange]
    cursor: str
