"""Three machines with networks of their own on one PostgreSQL: one is cut off in the middle of its work, and comes back."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import psycopg
import pytest

from decklog import Decklog
from decklog.conductor import starting
from decklog.conductor.conductor import Conductor
from decklog.conductor.git.repository import Repository
from tests.conductor.hosts import Host
from tests.conductor.plans import work_item
from tests.conductor.test_machines import World, first_shared  # noqa: F401 - a fixture
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"),
]
NAMES = ("alpha", "beta", "gamma")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def forward(source: socket.socket, target: socket.socket) -> None:
    with source, target, suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


class Link:
    """A cable between a machine and the server: TCP at its one end is handed to the server's socket."""

    def __init__(self, number: int, url: str) -> None:
        self._name = f"dl{os.getpid() % 100000}x{number}"
        self._address = f"10.231.{number}.1"
        self._socket = f"{psycopg.conninfo.conninfo_to_dict(url)['host']}/.s.PGSQL.5432"
        self._number = number
        ip("link", "add", self._name, "type", "veth", "peer", "name", f"{self._name}p")
        ip("addr", "add", f"{self._address}/30", "dev", self._name)
        ip("link", "set", self._name, "up")
        self._listening = socket.create_server((self._address, 0))
        self.url = f"postgresql://postgres@{self._address}:{self._listening.getsockname()[1]}{urlsplit(url).path}"
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._socket)
                Thread(target=forward, args=(client, server), daemon=True).start()
                Thread(target=forward, args=(server, client), daemon=True).start()

    def plug_in(self, process: int) -> None:
        """Put the other end into the network of a process, once it has left ours."""
        ours = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{process}/ns/net") != ours)
        ip("link", "set", f"{self._name}p", "netns", str(process))
        inside = ["nsenter", "-t", str(process), "-n", "ip"]
        for words in (
            ["addr", "add", f"10.231.{self._number}.2/30", "dev", f"{self._name}p"],
            ["link", "set", f"{self._name}p", "up"],
        ):
            subprocess.run([*inside, *words], check=True, timeout=20)

    def cut(self) -> None:
        ip("link", "set", self._name, "down")

    def mend(self) -> None:
        ip("link", "set", self._name, "up")

    def wait_in_machine(self) -> None:
        """Wait, in the machine, until the server can be reached."""
        end = time.monotonic() + 20
        address = urlsplit(self.url)
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection((str(address.hostname), address.port or 0), 1):
                return
            time.sleep(0.05)

    def close(self) -> None:
        self._listening.close()
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", self._name)


@pytest.fixture
def links(postgres_target: str) -> Iterator[list[Link]]:
    with ExitStack() as stack:
        made = []
        for number, _ in enumerate(NAMES):
            made.append(Link(number, postgres_target))
            stack.callback(made[-1].close)
        yield made


def work(world: World, host: Host, link: Link) -> None:
    def program() -> None:
        link.wait_in_machine()
        with Decklog.open(link.url, busy_seconds=5) as log:
            Conductor(starting.resume(log, world.run_id, Repository.find(host.clone, host.state))).run()

    host.boot(program)
    link.plug_in(host.process)


def test_worker_that_was_cut_off_loses_its_lease_and_nothing_lands_twice(
    tmp_path: Path,
    first_shared: Path,  # noqa: F811
    postgres_target: str,
    links: list[Link],
) -> None:
    world = World(tmp_path, first_shared, postgres_target)
    third = Host(tmp_path, "gamma", world.remote)
    names = [f"p{number}" for number in range(3)]
    world.plan(
        *(work_item(name, ["write", f"{name}.txt", f"{name}\n"], ["write", f"begun-{name}", ""], ["sleep", 3]) for name in names)
    )
    work(world, third, links[2])
    wait_until(lambda: list(third.state.glob("places/*/run_*/*/tree/begun-*")), seconds=60)
    links[2].cut()
    work(world, world.a, links[0])
    work(world, world.b, links[1])
    assert (world.a.wait(120), world.b.wait(120)) == (0, 0)
    links[2].mend()
    assert third.wait(120) == 0
    with Decklog.open(postgres_target) as log:
        world.check_whole(log, *(f"Item {name}" for name in names))
        attempts = [attempt for task in log.tasks.find(world.run_id) for attempt in log.tasks.attempts(task.id)]
        lost = [attempt for attempt in attempts if attempt.outcome == "expired"]
        assert lost
        assert all("-gamma-" in str(attempt.worker) for attempt in lost)
        assert log.effects.open(world.run_id) == []
