"""A failover to a standby that lacks acknowledged writes: each client that lost one gets an error, and it is on record."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import LostWrites, ReadOnly
from decklog.transfer.doctor import find_problems
from tests.databases import named
from tests.db.standby import Pair, pair
from tests.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.pictures import sample_log, sample_parts
from tests.waiting import wait_until
from tests.web.client import logged_in
from tests.web.test_states import addresses, forms


class Rewinding:
    """A database that is put back to an earlier state, as a promoted standby shows it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.url = named(server, "rewound")
        self._run("create database rewound template decklog_template strategy file_copy")

    def _run(self, *statements: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            for statement in statements:
                wait_until(lambda statement=statement: self._is_done(connection, statement))

    def _is_done(self, connection: psycopg.Connection[Any], statement: str) -> bool:
        """Run a statement that needs the databases for itself; a client may connect again meanwhile."""
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = any(%s)", [["rewound", "earlier"]]
        )
        try:
            connection.execute(statement.encode())
        except psycopg.errors.ObjectInUse:
            return False
        return True

    def keep(self) -> None:
        self._run("create database earlier template rewound strategy file_copy")

    def rewind(self) -> None:
        self._run("drop database rewound with (force)", "alter database earlier rename to rewound")

    def close(self) -> None:
        self._run("drop database if exists rewound with (force)", "drop database if exists earlier with (force)")


@pytest.fixture
def rewinding(postgres_template: str) -> Iterator[Rewinding]:
    database = Rewinding(postgres_template)
    yield database
    database.close()


def lost_findings(log: Decklog) -> list[str]:
    return [finding["what"] for finding in find_problems(log, log.db.facts()) if finding["about"] == "failover"]


@pytest.mark.slow
def test_lost_acknowledged_entries_are_reported_once(rewinding: Rewinding) -> None:
    with Decklog.open(rewinding.url) as log:
        log.runs.start("x", run_id="run_1")
        rewinding.keep()
        log.journal.append("run_1", "kept on the old server only")
        last = log.journal.append("run_1", "and this")
        rewinding.rewind()
        with pytest.raises(LostWrites) as problem:
            log.journal.append("run_1", "next")
        assert problem.value.details["lost"] == [{"stream": "run_1", "seq": last.seq, "hash": last.hash, "found": None}]
        assert log.journal.append("run_1", "next").seq == last.seq - 1
        (event,) = log.journal.find("@desk", subtype="writes.lost")
        assert event.payload == {"lost": problem.value.details["lost"]}
        (what,) = lost_findings(log)
        assert f"run_1:{last.seq}" in what


def test_background_work_leaves_the_loss_report_to_a_caller(rewinding: Rewinding) -> None:
    has_run = threading.Event()
    with Decklog.open(rewinding.url) as log:
        log.runs.start("x", run_id="run_1")
        rewinding.keep()
        log.journal.append("run_1", "kept on the old server only")
        rewinding.rewind()
        log.db.submit_upkeep(has_run.set)
        assert has_run.wait(60)
        with pytest.raises(LostWrites):
            log.journal.append("run_1", "next")


@pytest.mark.slow
def test_entry_with_the_same_number_and_another_hash_counts_as_lost(rewinding: Rewinding) -> None:
    with Decklog.open(rewinding.url) as log:
        log.runs.start("x", run_id="run_1")
        rewinding.keep()
        ours = log.journal.append("run_1", "ours")
        rewinding.rewind()
        with Decklog.open(rewinding.url) as other:
            theirs = other.journal.append("run_1", "theirs")
        with pytest.raises(LostWrites) as problem:
            log.runs.get("run_1")
        (lost,) = problem.value.details["lost"]
        assert (theirs.seq, lost["seq"], lost["hash"], lost["found"]) == (ours.seq, ours.seq, ours.hash, theirs.hash)


def test_lost_run_is_recorded_though_its_stream_is_gone(rewinding: Rewinding) -> None:
    with Decklog.open(rewinding.url) as log:
        rewinding.keep()
        log.runs.start("x", run_id="run_1")
        rewinding.rewind()
        with pytest.raises(LostWrites), log.transaction():
            log.journal.append("run_1", "next")
        assert len(log.journal.find("@desk", subtype="writes.lost")) == 1


def test_reconnect_to_a_server_that_has_everything_raises_nothing(rewinding: Rewinding) -> None:
    with Decklog.open(rewinding.url) as log:
        log.runs.start("x", run_id="run_1")
        with pytest.raises(ZeroDivisionError), log.transaction():
            log.journal.append("run_1", "rolled back")
            raise ZeroDivisionError
        with log.transaction():
            log.journal.append("run_1", "committed")
            with pytest.raises(ZeroDivisionError), log.transaction():
                log.journal.append("run_1", "rolled back alone")
                raise ZeroDivisionError
        rewinding.keep()  # ends all connections
        assert [entry.body for entry in log.journal.find("run_1", kind="interaction")] == ["committed"]


def test_archived_stream_does_not_count_as_lost(rewinding: Rewinding) -> None:
    with Decklog.open(rewinding.url) as log:
        log.runs.start("x", run_id="run_1")
        with psycopg.connect(rewinding.url) as connection:
            connection.execute("set session_replication_role = replica")
            connection.execute("delete from entries where stream = 'run_1'")
        rewinding.keep()  # ends all connections
        assert log.runs.get("run_1").id == "run_1"


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with pair() as found:
        yield found


@pytest.mark.slow
def test_reads_work_on_a_standby_and_writes_name_the_reason(servers: Pair) -> None:
    with Decklog.open(servers.url) as log:
        log.runs.start("Make the parser faster", run_id="run_read")
        log.journal.append("run_read", "a remark")
        log.schedules.add("run_read", "often", "* * * * *", title="Look again")
    servers.wait_for_standby()
    with Decklog.open(servers.standby_url) as log:
        assert [run.id for run in log.runs.find()] == ["run_read"]
        assert [entry.body for entry in log.journal.find("run_read", kind="interaction")] == ["a remark"]
        assert [entry.body for entry in log.journal.find(text="remark")] == ["a remark"]
        assert [run.id for run in log.overview.now().runs] == ["run_read"]
        assert log.journal.verify().ok
        with pytest.raises(ReadOnly, match="standby"):
            log.journal.append("run_read", "next")
        with pytest.raises(ReadOnly, match="standby"), log.transaction():
            log.journal.append("run_read", "next")
        facts = log.db.facts()
        assert (facts["read_only"], facts["is_standby"], facts["replication_lag_seconds"]) == (True, True, 0)


@pytest.mark.slow
def test_every_page_of_the_dashboard_opens_on_a_standby(servers: Pair) -> None:
    clock = ManualClock()
    with Decklog.open(servers.url, clock=clock) as log:
        sample_log.write(log, clock)
        sample_parts.write(log, clock)
    servers.wait_for_standby()
    with Decklog.open(servers.standby_url, clock=clock) as log, logged_in(log) as browser:
        answers = {url: browser.get(url) for url in addresses(log)}
        assert {url for url, answer in answers.items() if answer.status != 200 or forms(answer.text)} == set()


@pytest.mark.slow
def test_doctor_warns_of_a_standby_without_synchronous_names(servers: Pair) -> None:
    with Decklog.open(servers.url) as log:
        (found,) = [one for one in find_problems(log, log.db.facts()) if one["about"] == "standby"]
        assert "synchronous_standby_names" in found["mend"]
    with Decklog.open(servers.standby_url) as log:
        assert "standby" not in [one["about"] for one in find_problems(log, log.db.facts())]


# The last one: the old primary is gone after it.
@pytest.mark.slow
def test_every_client_that_lost_a_write_in_a_failover_gets_an_error(servers: Pair) -> None:
    with Decklog.open(servers.url) as one, Decklog.open(servers.url) as two, Decklog.open(servers.url) as third:
        one.runs.start("x", run_id="run_1")
        two.runs.start("x", run_id="run_2")
        third.runs.start("x", run_id="run_3")
        servers.wait_for_standby()
        servers.cut()
        for number in range(20):
            one.journal.append("run_1", f"lost {number}")
        lost = two.journal.append("run_2", "lost")
        standby = Decklog.open(servers.standby_url)
        servers.fail_over()
        assert standby.runs.start("a promoted standby takes writes", run_id="run_4").id == "run_4"
        standby.close()
        for log, run_id, seq in ((one, "run_1", 21), (two, "run_2", lost.seq)):
            with pytest.raises(LostWrites) as problem:
                log.journal.append(run_id, "next")
            assert [(found["stream"], found["seq"]) for found in problem.value.details["lost"]] == [(run_id, seq)]
            assert log.journal.append(run_id, "next").seq == 2
        assert third.journal.append("run_3", "next").seq == 2
        assert len(third.journal.find("@desk", subtype="writes.lost")) == 2


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
def test_lost_claim_is_not_used_by_a_client_whose_pooler_leads_to_the_new_server() -> None:
    with pair() as servers, PgBouncer(servers.primary_url, "transaction") as pooler:
        url = pooler.address_of(servers.primary_url)
        with Decklog.open(url) as log, Decklog.open(url) as other:
            log.runs.start("x", run_id="run_1")
            log.tasks.add("run_1", "once", task_id="once")
            servers.wait_for_standby()
            servers.cut()
            lost = log.tasks.claim("run_1", worker="ada")
            servers.fail_over()
            pooler.lead_to(servers.standby_url)
            claim = other.tasks.claim("run_1", worker="bob")
            assert lost is not None
            assert claim is not None
            assert (claim.id, claim.fence) == (lost.id, lost.fence)
            with pytest.raises(LostWrites):
                log.tasks.finish("once", fence=lost.fence)
            other.tasks.finish("once", fence=claim.fence)
            assert [(attempt.worker, attempt.outcome) for attempt in other.tasks.attempts("once")] == [("bob", "done")]
