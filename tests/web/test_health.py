"""Endpoints for monitoring: /livez, /readyz and /metrics, and who may read them."""

import time
from pathlib import Path

import psycopg
import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import OutcomeUnknown
from decklog.db.search.marks import STREAMS_BETWEEN_STEPS
from decklog.journal.rows import find_stream_number
from decklog.mcp.token import find_token
from tests.conftest import on_both
from tests.web.client import NAMES, Browser, make_browser


def values(text: str) -> dict[str, float]:
    """Return the samples of a text in Prometheus' format by their names and labels."""
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}


@on_both
def test_liveness_and_readiness_need_no_login(stranger: Browser) -> None:
    assert [(stranger.get(path).status, stranger.get(path).text) for path in ("/livez", "/readyz")] == [(200, "ok\n")] * 2


def test_monitoring_endpoints_refuse_another_host(stranger: Browser) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        assert stranger.request("GET", path, [("host", "elsewhere.example")]).status == 421


@on_both
def test_log_with_another_schema_is_not_ready(stranger: Browser, log: Decklog) -> None:
    columns = "name, checksum, applied_at"
    sql = f"insert into schema_steps (version, {columns}) select 9999, {columns} from schema_steps where version = 1"
    if log.db.engine == "sqlite":
        log.db.write(lambda: log.db.count(sql, {}))
    else:
        with psycopg.connect(log.db.target) as connection:
            connection.execute(sql.encode())
    answer = stranger.get("/readyz")
    assert (answer.status, answer.text) == (503, "not ready: invalid\n")


@pytest.mark.slow
def test_readiness_answers_in_time_while_the_database_hangs(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log, psycopg.connect(postgres_url) as other:
        browser = make_browser(log)
        with browser.runner:
            other.execute("lock table schema_steps in access exclusive mode")
            started = time.monotonic()
            assert browser.get("/readyz").status == 503
            assert time.monotonic() - started < 5
            other.rollback()


def test_closed_log_is_alive_and_not_ready(stranger: Browser, log: Decklog) -> None:
    log.close()
    assert (stranger.get("/livez").status, stranger.get("/readyz").status) == (200, 503)


@on_both
def test_metrics_show_calls_errors_leases_and_the_index(browser: Browser, log: Decklog, clock: ManualClock) -> None:
    before = values(browser.get("/metrics").text)
    log.runs.start("x", run_id="run_1")
    log.tasks.add("run_1", "first")
    log.tasks.claim("run_1", worker="dev-1", lease_seconds=60)
    clock.advance(minutes=2)
    number = log.db.read(lambda: find_stream_number(log.db, "run_1"))
    assert number is not None
    # The start of every fourth stream indexes it in the background. The next one is not indexed.
    run_id = "run_1" if number % STREAMS_BETWEEN_STEPS else log.runs.start("y").id
    log.journal.append(run_id, "not indexed")
    OutcomeUnknown("the connection was lost")
    answer = browser.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    now = values(answer.text)

    def grown(name: str) -> float:
        return now[name] - before.get(name, 0)

    for call in ("runs.start", "tasks.claim", "journal.append"):
        count, within = f'decklog_call_seconds_count{{call="{call}"}}', f'decklog_call_seconds_bucket{{call="{call}",le="+Inf"}}'
        assert grown(count) == grown(within) >= 1
        assert grown(f'decklog_call_seconds_sum{{call="{call}"}}') > 0
    assert grown('decklog_unavailable_total{code="outcome_unknown"}') == 1
    assert (now["decklog_up"], now["decklog_expired_leases"]) == (1, 1)
    assert now["decklog_entries_not_indexed"] > 0
    if log.db.engine == "postgres":
        assert now["decklog_pool_connections"] >= 1
        assert (now["decklog_standby"], "decklog_pool_waits_total" in now, "decklog_pool_wait_seconds_total" in now) == (
            0,
            True,
            True,
        )


def test_metrics_of_a_log_that_cannot_be_read_still_show_the_errors(browser: Browser, log: Decklog) -> None:
    log.close()
    found = values(browser.get("/metrics").text)
    assert found["decklog_up"] == 0
    assert found['decklog_unavailable_total{code="closed"}'] >= 1


def test_metrics_need_a_session_or_the_token_of_their_file(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = find_token(str(path), {})
    browser = make_browser(log, metrics_token=token)
    host = ("host", NAMES.host)
    with browser.runner:
        assert browser.request("GET", "/metrics", [host]).status == 401
        for wrong in ("Bearer " + "x" * 43, f"Basic {token.text}", "Bearer"):
            assert browser.request("GET", "/metrics", [host, ("authorization", wrong)]).status == 401
        right = ("authorization", f"Bearer {path.read_text().strip()}")
        assert browser.request("GET", "/metrics", [host, right]).status == 200
        assert browser.request("GET", "/runs", [host, right]).status == 303  # it opens nothing else
        assert browser.log_in().get("/metrics").status == 200
