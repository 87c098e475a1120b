"""The counters and histograms of this process, and the Prometheus text format.

Adding to one costs about a microsecond. `listeners` get each value too, for other systems such as OpenTelemetry.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any

from decklog.core import fork_safety

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_lock = fork_safety.create_lock()


class _Metric:
    def __init__(self, name: str, text: str, label: str) -> None:
        self.name, self.text, self.label = name, text, label
        self.listeners: list[Callable[[str, float], None]] = []
        # For each value of the label: the count, or the counts of the buckets and last the sum of the seconds.
        self._values: dict[str, Any] = {}


class Counter(_Metric):
    """A counter for each value of one label."""

    def add(self, value: str) -> None:
        with _lock:
            self._values[value] = self._values.get(value, 0) + 1
        for listen in self.listeners:
            listen(value, 1)

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.text, "counter")
        for value, number in sorted(self._values.items()):
            yield f'{self.name}{{{self.label}="{value}"}} {number:g}'


class Histogram(_Metric):
    """A histogram of seconds for each value of one label."""

    def observe(self, value: str, seconds: float) -> None:
        with _lock:
            found = self._values.get(value)
            if found is None:
                found = self._values[value] = [0] * (len(_BOUNDS) + 2)
            found[bisect_left(_BOUNDS, seconds)] += 1
            found[-1] += seconds
        for listen in self.listeners:
            listen(value, seconds)

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.text, "histogram")
        with _lock:
            values = sorted((value, list(found)) for value, found in self._values.items())
        for value, (*buckets, total) in values:
            label = f'{self.label}="{value}"'
            for bound, number in zip((*map(str, _BOUNDS), "+Inf"), accumulate(buckets), strict=True):
                yield f'{self.name}_bucket{{{label},le="{bound}"}} {number}'
            yield f"{self.name}_sum{{{label}}} {total:.9g}"
            yield f"{self.name}_count{{{label}}} {sum(buckets)}"


def _head(name: str, text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def prometheus_text(gauges: Iterable[tuple[str, str, str, float]]) -> str:
    """Format all metrics for Prometheus; `gauges` are names, types, descriptions and values that were just measured."""
    lines = [*CALL_SECONDS.lines(), *UNAVAILABLE.lines()]
    for name, kind, text, value in gauges:
        lines += [*_head(name, text, kind), f"{name} {value:.9g}"]
    return "\n".join(lines) + "\n"


CALL_SECONDS = Histogram("decklog_call_seconds", "Time of calls to the log, without waiting for others.", "call")
UNAVAILABLE = Counter("decklog_unavailable_total", "Errors that are not the caller's, such as busy or outcome_unknown.", "code")
