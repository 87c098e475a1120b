"""Metrics of a log, as OpenTelemetry's own library collects them."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from decklog import Decklog
from decklog.core.errors import Busy
from decklog.plugins.adapters.otel.conventions import LogMeter
from tests.conftest import on_both


def collected(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    data: Any = reader.get_metrics_data()
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    return {metric.name: list(metric.data.data_points) for metric in metrics}


@on_both
def test_meter_collects_calls_errors_and_the_state_of_the_log(log: Decklog) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    meter = LogMeter(log, provider)
    log.runs.start("x", run_id="run_1")
    Busy("another transaction is in the way")
    found = collected(reader)
    meter.close()
    (call,) = [point for point in found["decklog.call.duration"] if point.attributes == {"call": "runs.start"}]
    assert call.count == 1
    assert [(point.attributes["code"], point.value) for point in found["decklog.unavailable"]] == [("busy", 1)]
    assert [point.value for point in found["decklog.up"]] == [1]
    log.runs.start("y", run_id="run_2")
    assert sum(point.count for point in collected(reader)["decklog.call.duration"]) == sum(
        point.count for point in found["decklog.call.duration"]
    )
    provider.shutdown()
