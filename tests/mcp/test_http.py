"""The server on HTTP over a log in PostgreSQL: for this machine, with the token, and for no foreign page."""

import http.client
import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from decklog import Decklog
from tests.databases import Databases
from tests.mcp.servers import HELLO, listening, over_http

_INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}


@dataclass(frozen=True)
class Listening:
    folder: Path
    log: str
    process: "subprocess.Popen[bytes]"
    address: str
    token: str

    def post(self, body: bytes | None = None, **headers: str | None) -> int:
        """Send a request with these headers; return the status."""
        to = urlsplit(self.address)
        usual = {
            "host": to.netloc,
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        connection = http.client.HTTPConnection("127.0.0.1", to.port or 0, timeout=30)
        sent_headers = {name: value for name, value in {**usual, **headers}.items() if value is not None}
        connection.request("POST", to.path, json.dumps(_INITIALIZE).encode() if body is None else body, sent_headers)
        answer = connection.getresponse()
        answer.read(1)
        connection.close()
        return answer.status


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, postgres_databases: Databases) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("http")
    path = folder / "token"
    with postgres_databases.one() as url:
        with Decklog.open(url) as log:
            log.runs.start("goal", run_id="run_1")
            log.tasks.add_many("run_1", [{"title": "one"}, {"title": "two"}])
        process, address = listening(folder, path, DECKLOG_DB=url)
        yield Listening(folder, url, process, address, path.read_text().strip())
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_named_clients_get_different_tasks_and_keep_them(server: Listening) -> None:
    async def work(client: Any) -> Any:
        return (await client.call_tool("next", {})).structured_content["task"]

    first, second = (over_http(server.address, server.token, work, worker=name) for name in ("a", "b"))
    assert first != second
    assert over_http(server.address, server.token, work, worker="a") == first


@pytest.mark.slow
def test_client_without_session_or_name_gets_an_error(server: Listening) -> None:
    async def note(client: Any) -> Any:
        return await client.call_tool("note", {"text": "a thought"})

    noted = over_http(server.address, server.token, note, mode="legacy")
    assert not noted.is_error
    with Decklog.open(server.log) as log:
        entry = log.journal.get(noted.structured_content["entry"])
        assert entry.agent is not None
        assert entry.agent.startswith("mcp-")
    refused = over_http(server.address, server.token, note)
    assert "decklog-worker" in refused.structured_content["error"]["hint"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:PORT"}, 200),
        ({"origin": "http://127.0.0.1:PORT"}, 200),
        ({"authorization": None}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic TOKEN"}, 401),
        ({"authorization": "Bearer \xe9"}, 401),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"host": "127.0.0.1:PORT.evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"decklog-worker": "no name \x01"}, 200),
    ],
)
def test_a_request_shows_the_token_and_comes_from_this_machine(
    server: Listening, headers: dict[str, str | None], status: int
) -> None:
    port = str(urlsplit(server.address).port)
    filled = {name: value and value.replace("PORT", port).replace("TOKEN", server.token) for name, value in headers.items()}
    assert server.post(**filled) == status


def test_a_body_without_end_is_refused_and_one_that_is_no_json_too(server: Listening) -> None:
    assert server.post(b" " * (5 * 1024 * 1024)) == 413
    assert server.post(b"{") == 400


def test_the_token_is_in_its_file_alone(server: Listening) -> None:
    assert stat.S_IMODE((server.folder / "token").stat().st_mode) == 0o600
    process = Path(f"/proc/{server.process.pid}")
    assert server.token.encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


def test_server_stops_on_interrupt_without_printing_the_token(server: Listening) -> None:
    os.kill(server.process.pid, signal.SIGINT)
    out, err = server.process.communicate(timeout=10)
    assert server.token.encode() not in out + err


def test_readable_or_short_token_is_refused(tmp_path: Path) -> None:
    from decklog.core.errors import Denied, Invalid
    from decklog.mcp.token import VARIABLE, find_token

    path = tmp_path / "token"
    path.write_text("t" * 30)
    path.chmod(0o644)
    with pytest.raises(Denied, match="can be read by other users"):
        find_token(str(path), {})
    with pytest.raises(Invalid):
        find_token(None, {VARIABLE: "short"})
    variables = {VARIABLE: "t" * 30}
    assert find_token(None, variables).matches_header(b"Bearer " + b"t" * 30)
    assert variables == {}
    assert "t" * 30 not in repr(find_token(None, {VARIABLE: "t" * 30}))
