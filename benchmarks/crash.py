"""Kills a writer with SIGKILL at random moments and checks that no acknowledged write was lost or half done.

    python -m benchmarks.crash                      200 kills on each engine
    python -m benchmarks.crash --engine sqlite --kills 20 --json

A writer reports each acknowledgement over a pipe. After the last kill every acknowledged write must be in the
log, every operation must be there whole or not at all, and the log must verify.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg  # noqa: F401 - imported before the forks, where it is paid for once
import psycopg_pool  # noqa: F401
from tests.postgres import get_server

from decklog import Decklog
from decklog.journal import journal, tail, verify  # noqa: F401

RUN = "run_crash"
# A writer is killed some seconds after some acknowledged writes.
LONGEST_LIFE = 0.12
MOST_WRITES = 20
KILLED_WHILE_OPENING = 0.15
Tell = Callable[..., None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--target", help="a log to use, instead of a new one")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(10**9)
    good = True
    for engine in ["sqlite", "postgres"] if given.engine == "both" else [given.engine]:
        with place(engine, given.target) as target:
            figures = {"engine": engine, "seed": seed, **crash(target, engine, given.kills, random.Random(seed))}
        good = good and not figures["lost"] and not figures["half_done"] and figures["whole"]
        print(json.dumps(figures) if given.json else as_text(figures), flush=True)
    return 0 if good else 1


def as_text(figures: dict[str, Any]) -> str:
    return (
        "{engine}: {kills} kills, {acknowledged} acknowledged writes, {entries} entries; "
        "{lost} lost, {half_done} half done, {whole_word} (seed {seed})"
    ).format(whole_word="whole" if figures["whole"] else "NOT WHOLE", **figures)


@contextmanager
def place(engine: str, target: str | None) -> Iterator[str]:
    """Give a log's address: the one that was named, a new file, or a new server."""
    if target is not None:
        yield target
    elif engine == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield os.path.join(folder, "decklog.db")
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.environ.setdefault("XDG_RUNTIME_DIR", folder)
            server = get_server(os.path.join(folder, "postgres"))
            try:
                yield server.get_uri()
            finally:
                server.cleanup()


def crash(target: str, engine: str, kills: int, luck: random.Random) -> dict[str, Any]:
    """Let one writer after another begin, and end each before it is done; then look what is there."""
    acknowledged: list[dict[str, Any]] = []
    if engine == "postgres":
        Decklog.open(target, migrate=True).close()
    import_everything()
    for number in range(kills):
        writes = luck.randint(1, MOST_WRITES) if luck.random() > KILLED_WHILE_OPENING else 0
        acknowledged += one_life(target, number, luck.uniform(0.0, LONGEST_LIFE), writes)
    return {"kills": kills, "acknowledged": len(acknowledged), **judge(target, acknowledged)}


def import_everything() -> None:
    """Do everything once in its own log, so that the forked writers are not killed while they import modules."""
    with tempfile.TemporaryDirectory() as folder, Decklog.open(os.path.join(folder, "warm.db")) as log:
        log.runs.start("warm up", run_id=RUN)
        for deed in DEEDS:
            deed(log, deed.__name__, lambda **_: None)


def one_life(target: str, number: int, seconds: float, writes: int) -> list[dict[str, Any]]:
    """Fork a writer, kill it a while after some acknowledged writes, and return what was acknowledged."""
    hearing, telling = os.pipe()
    child = os.fork()
    if child == 0:
        write_for_ever(target, number, lambda **what: os.write(telling, json.dumps(what).encode() + b"\n"))
    os.close(telling)
    heard = b""
    while heard.count(b"\n") < writes and (part := os.read(hearing, 65536)):
        heard += part
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(hearing, "rb") as file:
        lines = (heard + file.read()).splitlines()
    if os.WIFEXITED(status):
        raise SystemExit(f"the writer ended early with {os.WEXITSTATUS(status)}")
    return [json.loads(line) for line in lines]


def write_for_ever(target: str, number: int, tell: Tell) -> None:
    try:
        log = Decklog.open(target)
        log.runs.start("written under fire", run_id=RUN)
        luck = random.Random(number)
        count = 0
        while True:
            count += 1
            luck.choice(DEEDS)(log, f"{number}.{count}", tell)
    except BaseException:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        os._exit(1)


def append(log: Decklog, name: str, tell: Tell) -> None:
    entry = log.journal.append(RUN, name, kind="event")
    tell(did="append", seq=entry.seq, hash=entry.hash)


def append_long(log: Decklog, name: str, tell: Tell) -> None:
    entry = log.journal.append(RUN, f"{name} " + "output " * 12_000, kind="tool")
    tell(did="append", seq=entry.seq, hash=entry.hash)


def append_three(log: Decklog, name: str, tell: Tell) -> None:
    entries = log.journal.append_many([{"stream": RUN, "body": name, "subtype": "three", "kind": "event"}] * 3)
    for entry in entries:
        tell(did="append", seq=entry.seq, hash=entry.hash)


def update(log: Decklog, name: str, tell: Tell) -> None:
    log.runs.update(RUN, summary=name)
    tell(did="update", summary=name)


def do_both(log: Decklog, name: str, tell: Tell) -> None:
    with log.transaction():
        entry = log.journal.append(RUN, name, subtype="both", kind="event")
        log.runs.update(RUN, summary=f"both {name}")
    tell(did="append", seq=entry.seq, hash=entry.hash)


def work(log: Decklog, name: str, tell: Tell) -> None:
    log.tasks.add(RUN, name, task_id=f"task_{name}", max_attempts=2)
    tell(did="add", task=f"task_{name}")
    claim = log.tasks.claim(RUN, worker=name, lease_seconds=0.2)
    if claim is not None:
        tell(did="claim", task=claim.task.id, fence=claim.task.fence)
        log.tasks.finish(claim.task.id, fence=claim.task.fence, summary=name)
        tell(did="finish", task=claim.task.id, summary=name)


DEEDS = (append, append, append_long, append_three, update, do_both, work)


def judge(target: str, acknowledged: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare acknowledged writes with the log."""
    with Decklog.open(target, migrate=True) as log:
        entries = list(log.journal.tail(RUN, follow=False)) if log.journal.heads() else []
        result = log.journal.verify()
    hashes = {entry.seq: entry.hash for entry in entries}
    images: list[tuple[str | None, Any]] = [(entry.record_table, entry.payload) for entry in entries if entry.kind == "change"]
    summaries = {image.get("summary") for table, image in images if table == "runs"}
    tasks = {
        (image["id"], image["state"], image.get("fence", 0), image.get("summary")) for table, image in images if table == "tasks"
    }
    present = {(task, state) for task, state, _, _ in tasks}
    leases = {(task, fence) for task, state, fence, _ in tasks if state == "running"}
    done = {(task, summary) for task, state, _, summary in tasks if state == "done"}
    checks: dict[str, Callable[[dict[str, Any]], bool]] = {
        "append": lambda deed: hashes.get(deed["seq"]) == deed["hash"],
        "update": lambda deed: deed["summary"] in summaries,
        "add": lambda deed: (deed["task"], "pending") in present,
        "claim": lambda deed: (deed["task"], deed["fence"]) in leases,
        "finish": lambda deed: (deed["task"], deed["summary"]) in done,
    }
    threes = Counter(entry.body for entry in entries if entry.subtype == "three")
    both = {f"both {entry.body}" for entry in entries if entry.subtype == "both"}
    halves = sum(count != 3 for count in threes.values()) + len(
        both ^ {text for text in summaries if str(text).startswith("both")}
    )
    return {
        "entries": len(entries),
        "lost": sum(not checks[deed["did"]](deed) for deed in acknowledged),
        "half_done": halves,
        "whole": result.ok and sorted(hashes) == list(range(1, len(entries) + 1)),
    }


if __name__ == "__main__":
    sys.exit(main())
