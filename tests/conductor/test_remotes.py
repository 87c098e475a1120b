"""Refs of a run travel through whatever a user's remote is: a path, an address of a file, git's own server, the web, ssh."""

import os
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from decklog import Unavailable
from decklog.conductor.git.refs import Remote
from decklog.conductor.git.repository import Person, Repository
from tests.conductor.repositories import git, make_repository

ANA = Person("Ana", "ana@example.test")
NAME = "refs/decklog/run_1/target"
OTHER = "refs/decklog/run_1/tasks/a/1/tip"
# In the place of ssh, which would run the same words on another machine.
SSH = '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    """Answer on a port of this machine until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def by_git(home: Path) -> Iterator[str]:
    words = ["git", "daemon", "--inetd", "--export-all", "--enable=receive-pack", f"--base-path={home}"]

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            subprocess.run(words, stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, check=False)

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"git://127.0.0.1:{port}/remote.git"


@contextmanager
def by_web(home: Path, *, status: int | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if status is not None:
                self.send_error(status)
                return
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(home),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": "ana",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = subprocess.run(
                ["git", "http-backend"], env=environment, input=given, capture_output=True, check=False
            ).stdout
            head, _, body = answer.partition(b"\r\n\r\n")
            lines = [line.partition(": ") for line in head.decode().split("\r\n")]
            self.send_response(next((int(value[:3]) for name, _, value in lines if name == "Status"), 200))
            for name, _, value in lines:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            return

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}/remote.git"


@contextmanager
def by_name(_: Path, url: str) -> Iterator[str]:
    yield url


def address(way: str, home: Path) -> AbstractContextManager[str]:
    match way:
        case "git":
            return by_git(home)
        case "http":
            return by_web(home)
        case "ssh":
            return by_name(home, f"ssh://host.example.test{home}/remote.git")
        case "file":
            return by_name(home, f"file://{home}/remote.git")
        case "relative path":
            return by_name(home, "../remote.git")
        case _:
            return by_name(home, f"{home}/remote.git")


def clone(home: Path, name: str, url: str) -> Repository:
    folder = make_repository(home / name)
    git(folder, "remote", "add", "origin", url)
    return Repository.find(folder, home / f"state-{name}")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["path", "relative path", "file", "git", "http", "ssh"])
def test_refs_travel_through_every_kind_of_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(tmp_path / "ssh"))
    with address(way, tmp_path) as url:
        one, other = clone(tmp_path, "one", url), clone(tmp_path, "other", url)
        first = one.resolve("HEAD")
        assert first is not None
        second = one.commit(one.tree(first), [first], "Second\n", ANA, 1)
        here, there = Remote(one, "origin"), Remote(other, "origin")
        here.push({OTHER: second})
        assert here.swap(NAME, first, None)
        there.fetch([f"{NAME}:{NAME}", OTHER])
        assert not there.swap(NAME, second, None), "it is there already"
        assert (other.ref(NAME), other.has(second)) == (first, True)
        assert there.swap(NAME, second, first)
        third = one.commit(one.tree(first), [first], "Third\n", ANA, 1)
        assert not here.swap(NAME, third, first), "another was faster"
        assert there.refs("refs/decklog/run_1") == {NAME: second, OTHER: second}
        here.drop([OTHER])
        assert there.refs("refs/decklog/run_1") == {NAME: second}


@pytest.mark.parametrize("status", [401, 503])
def test_a_remote_that_asks_for_a_password_or_is_down_is_away_and_nobody_is_asked(tmp_path: Path, status: int) -> None:
    with by_web(tmp_path, status=status) as url, pytest.raises(Unavailable, match="origin can't be reached"):
        Remote(clone(tmp_path, "one", url), "origin").refs("refs/decklog/run_1")


def test_a_remote_whose_address_starts_a_program_is_not_called(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(Unavailable, match="not allowed"):
        Remote(clone(tmp_path, "one", f"ext::touch {made}"), "origin").refs("refs/decklog/run_1")
    assert not made.exists()
