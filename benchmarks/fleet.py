"""A fleet on one PostgreSQL server: agents behind a pooler, agents that wait for work, and many that start at once.

    python -m benchmarks.fleet --agents 300 --starting 1000 --baseline ../other/src

Each part runs with this source and with that of `--baseline`, on the same new server. Server CPU is that of all its processes.
DECKLOG_TEST_POSTGRES names the programs of another version of PostgreSQL.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import tests.postgres
from tests.pgbouncer import MISSING, PROGRAM, PgBouncer

from benchmarks.measure import Row, row, write

# What was measured: its name, the figure, its unit, what it is compared with, and the target.
Found = tuple[str, float, str, float | None, str]
_NOTES = (
    "Agents are processes on the machine of the server. The pooler is PgBouncer in transaction mode.",
    "Waiting agents wait for a task; working ones append an entry each second. Both are compared with the number of agents.",
    "Starting agents open the log and claim a task at the same moment, and claim again at some moment later.",
    "Rows of the earlier commit were measured in the same run, on the same server.",
)
ROOT = Path(__file__).parents[1]
RUN = "fleet"
_TICKS = os.sysconf("SC_CLK_TCK")


class Server(tests.postgres.Server):
    """A server whose CPU time is known."""

    def __init__(self, connections: int) -> None:
        super().__init__(max_connections=connections + 50, fsync="off")

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server and all its processes, those that have ended included."""
        own = _stat(self.process)
        stats = (_stat(int(folder.name)) for folder in Path("/proc").glob("[0-9]*"))
        return (sum(own[1:]) + sum(sum(ticks[:2]) for parent, *ticks in stats if parent == self.process)) / _TICKS

    def new_database(self, name: str, source: Path) -> str:
        url = self.url.replace("/postgres?", f"/{name}?")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        self.run(source, "prepare", url)
        return url

    def run(self, source: Path, *words: str) -> None:
        subprocess.run(_command(*words), env=_environment(source), check=True)


def _stat(pid: int) -> list[int]:
    """Return the parent of a process, its ticks in user and system mode, and those of its ended children."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return [0, 0, 0, 0, 0]
    return [int(word) for word in (words[1], *words[11:15])]


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.fleet", "--part", *words]


def _environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}


# The parts, each in its own process with one of the sources


def prepare(url: str) -> None:
    """Make a log with one run."""
    from decklog import Decklog

    with Decklog.open(url, migrate=True) as log:
        log.runs.start("A fleet", run_id=RUN)


def open_and_append(url: str, count: str) -> None:
    from decklog import Decklog

    for number in range(int(count)):
        with Decklog.open(url) as log:
            log.journal.append(RUN, f"Ran the tests {number}")


def crowd(url: str, what: str, agents: str, seconds: str) -> None:
    """Fork agents that begin together. Print what each has to report when all are done."""
    from decklog import Decklog

    # Import all modules before the forks: agents of a fleet do not share the server's processors.
    with Decklog.open(url) as log:
        log.journal.append(RUN, "Before the agents")
        if claim := log.tasks.claim(RUN, worker="first"):
            claim.release("only to import modules")
    reading, writing = os.pipe()
    start = time.time() + 1 + int(agents) / 100
    for number in range(int(agents)):
        if os.fork() == 0:
            _agent(url, what, number, start, float(seconds), writing)
    os.close(writing)
    with os.fdopen(reading) as lines:
        sys.stdout.write(lines.read())
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _agent(url: str, what: str, number: int, start: float, seconds: float, writing: int) -> None:
    report: dict[str, Any] = {"start": [], "later": [], "errors": []}
    try:
        time.sleep(max(0.0, start - time.time()))
        {"waiting": _wait, "working": _work, "starting": _claim}[what](url, number, start, seconds, report)
    except Exception as problem:  # noqa: BLE001 - reported to the parent
        report["errors"].append(repr(problem)[:200])
    os.write(writing, (json.dumps(report) + "\n").encode())
    os._exit(0)


def _wait(url: str, number: int, start: float, seconds: float, _: dict[str, Any]) -> None:
    from decklog import Decklog

    with Decklog.open(url) as log:
        log.tasks.claim(RUN, worker=f"w{number}", wait_seconds=start + seconds - time.time())


def _work(url: str, number: int, start: float, seconds: float, _: dict[str, Any]) -> None:
    """Append an entry each second."""
    from decklog import Decklog

    with Decklog.open(url) as log:
        time.sleep(number % 100 / 100)
        while time.time() < start + seconds:
            log.journal.append(RUN, f"Ran the tests of {number}", agent=f"w{number}")
            time.sleep(1)


def _claim(url: str, number: int, start: float, seconds: float, report: dict[str, Any]) -> None:
    """Open the log and claim at once with all others; later claim again at some moment."""
    from decklog import Decklog

    with Decklog.open(url) as log:
        begin = time.perf_counter()
        claim = log.tasks.claim(RUN, worker=f"w{number}")
        report["start"].append(time.perf_counter() - begin)
        report["opened"] = begin - time.perf_counter() + time.time() - start
        assert claim is not None
        time.sleep(max(0.0, start + seconds * (0.5 + number % 97 / 200) - time.time()))
        begin = time.perf_counter()
        log.tasks.finish_and_claim(claim.task.id, fence=claim.task.fence)
        report["later"].append(time.perf_counter() - begin)


# The rows


def pooled(server: Server, url: str, source: Path, count: int) -> Iterator[Found]:
    direct = _cpu_of(server, source, "open_and_append", url, str(count)) / count
    if PROGRAM is None:
        print(MISSING)
        return
    with PgBouncer(server.url, "transaction") as pooler:
        through = pooler.address_of(url)
        try:
            server.run(source, "open_and_append", through, "20")
            shared = _cpu_of(server, source, "open_and_append", through, str(count)) / count
        except subprocess.CalledProcessError:
            yield "open and append through the pooler: failed", 1.0, "", None, "<= 0"
            return
    yield "open and append through the pooler, server CPU, compared with direct", shared * 1000, "ms", direct * 1000, "<= 0.15"


def _cpu_of(server: Server, source: Path, *words: str) -> float:
    before = server.cpu_seconds()
    server.run(source, *words)
    time.sleep(0.3)
    return server.cpu_seconds() - before


def waiting(server: Server, url: str, source: Path, agents: int, seconds: int) -> Iterator[Found]:
    found = {}
    for what in ("waiting", "working"):
        with _crowd(source, url, what, agents, seconds):
            time.sleep(2 + agents / 100 + seconds / 2)
            with psycopg.connect(url, autocommit=True) as connection:
                before = _commits(connection), server.cpu_seconds(), time.monotonic()
                time.sleep(seconds / 4)
                passed = time.monotonic() - before[2]
                cpu, commits = server.cpu_seconds() - before[1], _commits(connection) - before[0]
                sql = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                connections = (connection.execute(sql).fetchone() or (0,))[0]
        found[what] = cpu / passed
        is_waiting = what == "waiting"
        if not is_waiting and connections < agents:
            raise RuntimeError(f"only {connections} of {agents} agents have begun: give them more --seconds")
        yield f"{agents} {what}: connections", float(connections), "", float(agents), "<= 1.1" if is_waiting else ""
        yield f"{agents} {what}: commits", commits / passed, "per s", float(agents), "<= 0.3" if is_waiting else ""
    yield f"{agents} waiting: server CPU, compared with working", 100 * found["waiting"], "%", 100 * found["working"], "<= 0.3"


def _commits(connection: "psycopg.Connection[Any]") -> int:
    row = connection.execute("select xact_commit from pg_stat_database where datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def _crowd(source: Path, url: str, what: str, agents: int, seconds: int) -> Iterator[list[dict[str, Any]]]:
    command = _command("crowd", url, what, str(agents), str(seconds))
    process = subprocess.Popen(command, env=_environment(source), stdout=subprocess.PIPE, text=True)
    reports: list[dict[str, Any]] = []
    try:
        yield reports
    finally:
        out, _ = process.communicate()
        reports += [json.loads(line) for line in out.splitlines()]
        for error in sorted({error for report in reports for error in report["errors"]})[:5]:
            print("error:", error)


def starting(_: Server, url: str, source: Path, agents: int, seconds: int) -> Iterator[Found]:
    subprocess.run(_command("add_tasks", url, str(2 * agents)), env=_environment(source), check=True)
    with _crowd(source, url, "starting", agents, seconds) as reports:
        pass
    yield f"{agents} starting: errors", float(sum(len(report["errors"]) for report in reports)), "", None, "<= 0"
    for name, what, most in (("start", "claim during the start", 2000), ("later", "claim afterwards", 100)):
        times = sorted(time for report in reports for time in report[name])
        if len(times) > 1:
            yield f"{agents} starting: {what}, median", 1000 * statistics.median(times), "ms", None, ""
            yield f"{agents} starting: {what}, p99", 1000 * times[int(len(times) * 0.99)], "ms", None, f"<= {most}"


def add_tasks(url: str, count: str) -> None:
    from decklog import Decklog

    with Decklog.open(url) as log:
        for first in range(0, int(count), 500):
            log.tasks.add_many(RUN, [{"title": f"Task {first + number}"} for number in range(500)])


def main() -> list[Row]:
    """Measure; write benchmarks/results/fleet-VERSION.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=300)
    parser.add_argument("--starting", type=int, default=1000)
    parser.add_argument("--opens", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=100)
    parser.add_argument("--baseline", type=Path, help="the folder src of another checkout")
    parser.add_argument("--rows", nargs="*", default=["pooled", "waiting", "starting"])
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        parts: dict[str, Any] = {"prepare": prepare, "open_and_append": open_and_append, "crowd": crowd, "add_tasks": add_tasks}
        parts[given.part[0]](*given.part[1:])
        return []
    version = tests.postgres.version_of(tests.postgres.programs())
    server = Server(max(2 * given.agents, 2 * given.starting))
    sources = {"new": ROOT / "src"} | ({"earlier": given.baseline.resolve()} if given.baseline else {})
    rows = []
    works: dict[str, Any] = {
        "pooled": lambda url, source: pooled(server, url, source, given.opens),
        "waiting": lambda url, source: waiting(server, url, source, given.agents, given.seconds),
        "starting": lambda url, source: starting(server, url, source, given.starting, given.seconds),
    }
    try:
        for part in given.rows:
            for name, source in sources.items():
                for what, figure, unit, floor, target in works[part](server.new_database(f"{part}_{name}", source), source):
                    is_new = name == "new"
                    label = what if is_new else f"{what}, earlier commit"
                    rows.append(row(label, figure, unit, floor=floor, target=target if is_new else ""))
    finally:
        server.close()
    write(f"fleet-{version}", f"Agents on one server: PostgreSQL {version}", rows, _NOTES)
    return rows


if __name__ == "__main__":
    main()
