"""Files of spans: read, put in order and prepared in another process, the log is the same as when one process does all of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.clock import ManualClock
from decklog.core.ids import Ids
from decklog.journal.attribution import acting
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.importer import OtlpImport
from decklog.plugins.adapters.otel.otlp import OtelSpan
from tests.plugins.adapters.otel.sample_spans import TRACE, chat, describe_run, span

RUN = f"trace-{TRACE}"
SECRET = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def spans() -> list[OtelSpan]:
    source: dict[str, Any] = {"resource": {"service.name": "svc"}, "scope": {"name": "lib"}}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "gen_ai.tool.call.result": f"key {SECRET}"}
    # It names an entry of ours, and a time that is none.
    entry = json.dumps({"seq": 1, "kind": "event", "at": "noon"})
    own = {"decklog.run.id": RUN, "decklog.entry": entry, "decklog.entry.body": "x"}
    return [
        span(1, "whole", lasts=60, **source),
        *(chat(number, 1, at=number, **source) for number in range(2, 30)),
        span(40, "read", parent=1, at=3, attributes=tool, **source),
        # Of one span two versions: begun, and ended.
        span(41, "slow", parent=1, at=4, lasts=0, **source),
        span(41, "slow", parent=1, at=4, lasts=9, **source),
        span(42, "not ours", parent=1, at=5, attributes=own),
    ]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Write them backwards, one of them twice, with a line that is none."""
    lines = [json.dumps(otlp.request_of([one])) for one in reversed(spans())]
    (tmp_path / "spans.jsonl").write_text("\n".join([*lines, "no JSON", lines[-1]]))
    return str(tmp_path / "spans.jsonl")


def taken(place: Path, path: str) -> tuple[list[tuple[Any, ...]], Any, Any]:
    """Import them with the same clock and ids every time; give every entry, what is told of the run, and the report."""
    clock = ManualClock()
    with Decklog.open(place, clock=clock, ids=Ids(clock, bytes)) as log:
        report = OtlpImport(log, path).run()
        assert log.journal.verify().ok
        rows = log.db.read(lambda: log.db.rows("select * from entries order by pos", {})[1])
        return rows, describe_run(log, RUN), (report.tables, report.losses)


def test_an_import_is_redacted_counts_what_it_refuses_and_names_who_acts(tmp_path: Path, path: str) -> None:
    alone = taken(tmp_path / "alone.db", path)
    assert SECRET not in repr(alone)
    assert alone[2][0]["spans"]["refused"] == 1
    acts = acting.set({"agent_id": "somebody"})
    try:
        assert {row[8] for row in taken(tmp_path / "acting.db", path)[0]} == {"somebody"}
    finally:
        acting.reset(acts)
