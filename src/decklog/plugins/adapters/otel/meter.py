"""Metrics of a log for an OpenTelemetry meter."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from decklog import __version__
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.core.metrics import CALL_SECONDS, UNAVAILABLE
from decklog.transfer.health import NAMES, gauges

if TYPE_CHECKING:
    from decklog.log import Decklog

# One reading of the log serves all instruments of a collection.
_SECONDS_FRESH = 1.0


class LogMeter:
    """Reports the calls of this process and the state of its log to a meter, until it is closed."""

    def __init__(self, log: "Decklog", provider: Any = None) -> None:
        try:
            from opentelemetry import metrics
        except ImportError:
            raise Unavailable("OpenTelemetry's metrics need a library", hint=install_hint("otel")) from None
        self._log = log
        self._observation = metrics.Observation
        self._read_at, self._values = 0.0, dict[str, float]()
        meter = metrics.get_meter("decklog", __version__, provider)
        calls = meter.create_histogram("decklog.call.duration", "s", CALL_SECONDS.text)
        failures = meter.create_counter("decklog.unavailable", "{error}", UNAVAILABLE.text)
        self._on_call = lambda call, seconds: calls.record(seconds, {"call": call})
        self._on_failure = lambda code, number: failures.add(number, {"code": code})
        CALL_SECONDS.listeners.append(self._on_call)
        UNAVAILABLE.listeners.append(self._on_failure)
        for name in NAMES:
            meter.create_observable_gauge(f"decklog.{name}", [self._callback(f"decklog_{name}")])

    def _callback(self, name: str) -> Any:
        def observe(_: Any) -> Iterable[Any]:
            value = self._measured().get(name)
            return [] if value is None else [self._observation(value)]

        return observe

    def _measured(self) -> dict[str, float]:
        if time.monotonic() - self._read_at > _SECONDS_FRESH:
            self._values = {name: value for name, _, _, value in gauges(self._log)}
            self._read_at = time.monotonic()
        return self._values

    def close(self) -> None:
        """Report no more calls; the instruments stay with the meter's provider."""
        CALL_SECONDS.listeners.remove(self._on_call)
        UNAVAILABLE.listeners.remove(self._on_failure)
