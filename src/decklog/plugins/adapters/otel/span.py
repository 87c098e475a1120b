"""A span: what some program did from one moment to another, as OpenTelemetry tells it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid

if TYPE_CHECKING:
    from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True, kw_only=True)
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    at: int
    attributes: "dict[str, Any]" = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class OtelSpan:
    """One span. Times are nanoseconds since 1970; one that has not ended has 0 for its end."""

    trace_id: str
    span_id: str
    name: str
    start: int
    end: int = 0
    parent_id: str = ""
    kind: int = 1
    flags: int = 0
    status: int = 0
    message: str = ""
    attributes: "dict[str, Any]" = field(default_factory=dict)
    events: "list[SpanEvent]" = field(default_factory=list)
    # What is kept as it came: links, the state of the trace, counts of what was dropped.
    rest: "dict[str, Any]" = field(default_factory=dict)
    resource: "dict[str, Any]" = field(default_factory=dict)
    scope: "dict[str, Any]" = field(default_factory=dict)


def nanoseconds_of(moment: datetime) -> int:
    """Write a time as spans have it."""
    return (moment - _EPOCH) // _MICROSECOND * 1000


def moment_of(nanoseconds: int) -> datetime:
    """Read a time of a span; what is smaller than a microsecond is dropped."""
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        raise Invalid(f"{nanoseconds} is no time in nanoseconds that a log can hold") from None
