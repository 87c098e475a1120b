"""Claiming and finishing on PostgreSQL: Decklog compared with procrastinate on the same server, interleaved."""

from importlib.metadata import version
from pathlib import Path

import psycopg

from benchmarks import peer_procrastinate
from benchmarks.figures import Figure
from benchmarks.measure import Row, row
from benchmarks.task_crowd import PROCESSES, Crowd, crowd, judged
from benchmarks.transfer import server

SETTINGS = ("server_version", "fsync", "synchronous_commit", "full_page_writes")


class Rounds:
    """What each side came to, by its number of workers: processes, and for the peer also jobs in hand of one process."""

    def __init__(self) -> None:
        self.peer: dict[int, list[float]] = {1: [], PROCESSES: []}
        self.peer_alone: list[float] = []
        self.ours = {1: Crowd(), PROCESSES: Crowd()}
        self.fused = {1: Crowd(), PROCESSES: Crowd()}

    def one(self, url: str, count: int, workers: int) -> None:
        """Let the peer drain as many jobs as we have tasks, each in its own database that is gone afterwards."""
        with Scratch(url) as fresh:
            self.peer[workers].append(peer_procrastinate.rate(fresh, count, processes=workers, concurrency=1))
        if workers > 1:
            with Scratch(url) as fresh:
                self.peer_alone.append(peer_procrastinate.rate(fresh, count, processes=1, concurrency=workers))
        for way, found in (("ours", self.ours), ("fused", self.fused)):
            with Scratch(url) as fresh:
                crowd(way, fresh, count, found[workers], processes=workers)

    def rows(self) -> list[Row]:
        rows = []
        for workers, label in ((1, "1 process"), (PROCESSES, f"{PROCESSES} processes")):
            name = f"PostgreSQL, {label}"
            peer = Figure(self.peer[workers])
            ours, fused = self.ours[workers], self.fused[workers]
            peer_name = f"compared with procrastinate, {label}"
            rows.append(row(f"{name}, claim and finish, {peer_name}", ours.rate, "per s", floor=peer, target=">= 1.2"))
            rows.append(row(f"{name}, finish and claim fused, {peer_name}", fused.rate, "per s", floor=peer, target=">= 1.2"))
        name, peer = f"PostgreSQL, {PROCESSES} processes", Figure(self.peer_alone)
        peer_name = f"compared with procrastinate, one process with concurrency {PROCESSES}"
        ours, fused = self.ours[PROCESSES], self.fused[PROCESSES]
        rows.append(row(f"{name}, claim and finish, {peer_name}", ours.rate, "per s", floor=peer))
        rows.append(row(f"{name}, finish and claim fused, {peer_name}", fused.rate, "per s", floor=peer))
        return [*rows, *judged(f"PostgreSQL, {PROCESSES} processes", self.ours[PROCESSES])]


class Scratch:
    """A database for one measurement."""

    def __init__(self, url: str) -> None:
        self._server = url

    def __enter__(self) -> str:
        self._say("create database scratch")
        head, _, query = self._server.partition("?")
        return f"{head.rsplit('/', 1)[0]}/scratch" + (f"?{query}" if query else "")

    def __exit__(self, *_: object) -> None:
        self._say("drop database scratch with (force)")

    def _say(self, words: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(words)


def beside_procrastinate(folder: Path, count: int, rounds: int) -> tuple[list[Row], str]:
    """Measure both sides in turns; give the rows, and how the server was set."""
    found = Rounds()
    with server(folder) as url:
        with psycopg.connect(url) as connection:
            settings = [f"{name} {connection.execute(f'show {name}').fetchone()[0]}" for name in SETTINGS]  # type: ignore
        for _ in range(rounds):
            for workers in (1, PROCESSES):
                found.one(url, count, workers)
    peer = f"procrastinate {version('procrastinate')}"
    return found.rows(), f"PostgreSQL as its wheel sets it up ({', '.join(settings)}), for {peer} and Decklog alike."
