"""The commands: out to a file or a collector, in from a file, and a receiver that can be killed at any moment."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.plugins.adapters.otel import otlp, protobuf
from tests.cli.conftest import Program, decklog
from tests.db.processes import environment
from tests.plugins.adapters.otel.sample_spans import TRACE, chat, entries
from tests.plugins.adapters.otel.servers import Collector

__all__ = ["decklog"]
RUN = f"trace-{TRACE}"


@pytest.fixture
def fixed(empty_log_file: Path, tmp_path: Path) -> None:
    """A log `a.db` with a run that has ended and one that goes on."""
    with Decklog.open(shutil.copy(empty_log_file, tmp_path / "a.db")) as log:
        for run_id in ("fix", "on"):
            log.runs.start("Fix it", run_id=run_id)
            log.journal.append(run_id, "a word")
        log.runs.finish("fix")


@pytest.mark.slow
@pytest.mark.usefixtures("fixed")
def test_a_run_goes_out_by_file_and_comes_in_again(decklog: Program, tmp_path: Path) -> None:
    waiting = decklog("--db", "a.db", "export", "otlp", "on", "--file", "early.jsonl")
    assert (waiting.code, "1 spans have not ended yet" in waiting.err) == (0, True)
    assert decklog("--db", "a.db", "export", "otlp", "fix", "--file", "spans.jsonl", "--json").data["spans"] == 2
    assert decklog("--db", "a.db", "export", "otlp", "fix", "--file", "spans.jsonl").code == 5
    dry = decklog("--db", "b.db", "import", "otlp", "spans.jsonl", "--dry-run", "--json")
    assert (dry.data["tables"]["entries"]["new"], (tmp_path / "b.db").exists()) == (2, False)
    for new in (2, 0):
        assert decklog("--db", "b.db", "import", "otlp", "spans.jsonl", "--json").data["tables"]["entries"]["new"] == new
    with Decklog.open(tmp_path / "b.db") as log:
        assert (log.runs.get("fix").goal, len(entries(log, "fix"))) == ("Fix it", 1)


@pytest.mark.slow
def test_a_file_is_read_as_far_as_it_is_one(decklog: Program, tmp_path: Path) -> None:
    whole = otlp.request_of([chat(1)])
    (tmp_path / "broken.jsonl").write_text(json.dumps(whole) + "\nno JSON\n" + json.dumps(whole)[:50])
    told = decklog("--db", "b.db", "import", "otlp", "broken.jsonl", "--json")
    assert (told.code, told.data["tables"]["entries"]["new"], len(told.data["losses"])) == (1, 4, 2)
    (tmp_path / "pretty.json").write_text(json.dumps(whole, indent=2))
    assert decklog("--db", "b.db", "import", "otlp", "pretty.json", "--json").data["tables"]["entries"]["already"] == 4
    (tmp_path / "other.json").write_text('{"resourceMetrics": []}')
    assert decklog("--db", "b.db", "import", "otlp", "other.json").code == 1
    assert decklog("--db", "b.db", "import", "otlp", "nowhere.json").code == 3


@pytest.mark.usefixtures("fixed")
def test_a_run_is_sent_with_headers_of_the_call_and_of_the_environment(decklog: Program, collector: Collector) -> None:
    surroundings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc,x-team=one",
    }
    sent = decklog("--db", "a.db", "export", "otlp", "fix", "--header", "x-team=two", "--json", **surroundings)
    assert (sent.code, sent.data["spans"], len(collector.spans)) == (0, 2, 2)
    assert (collector.headers[0]["authorization"], collector.headers[0]["x-team"]) == ("Bearer abc", "two")
    partial = json.dumps({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}}).encode()
    collector.answers = [(200, {"content-type": otlp.JSON}, partial)]
    refused = decklog("--db", "a.db", "export", "otlp", "fix", "--to", collector.address, "--encoding", "json")
    assert (refused.code, "too old" in refused.err) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("export", "otlp", "fix"),
        ("export", "otlp", "fix", "--file", "f", "--follow"),
        ("export", "otlp", "a", "b", "--follow", "--to", "http://h"),
        ("export", "otlp", "fix", "--to", "http://h", "--header", "novalue"),
        ("receive", "otlp", "--port", "0"),
    ],
)
@pytest.mark.usefixtures("fixed")
def test_calls_that_can_not_be_meant_say_what_to_say_instead(decklog: Program, words: tuple[str, ...]) -> None:
    assert decklog("--db", "a.db", *words).code == 2


@pytest.mark.slow
def test_what_a_receiver_has_answered_is_on_record_when_it_is_killed(tmp_path: Path) -> None:
    import http.client
    from urllib.parse import urlsplit

    words = [sys.executable, "-m", "decklog", "--db", "log.db", "receive", "otlp", "--port", "0", "--token-file", "token"]
    variables = environment(HOME=str(tmp_path / "home"), XDG_DATA_HOME=str(tmp_path / "data"))

    def send(number: int, *, kill: bool) -> None:
        process = subprocess.Popen(words, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        to = urlsplit(process.stdout.readline().decode().strip())
        body = otlp.encoded(protobuf.REQUEST, otlp.request_of([chat(one, 99) for one in range(1, number + 1)]), otlp.PROTOBUF)
        headers = {"authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}", "content-type": otlp.PROTOBUF}
        with closing(http.client.HTTPConnection("127.0.0.1", to.port or 0, timeout=30)) as connection:
            connection.request("POST", "/v1/traces", body, headers)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"")
        os.kill(process.pid, signal.SIGKILL if kill else signal.SIGINT)
        process.communicate(timeout=30)

    send(3, kill=True)
    send(4, kill=False)
    with Decklog.open(tmp_path / "log.db") as log:
        assert len(log.ledger.find(run_id=RUN)) == 4
        assert len(entries(log, RUN)) == 8
        assert log.journal.verify().ok
