"""Jobs for processes of tests. Each takes its number and the arguments of the test, and returns JSON."""

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from decklog import Clock, Decklog
from decklog.core.errors import Busy, Conflict, DecklogError, LeaseLost
from decklog.db.sqlite.clock import BootClock
from decklog.journal import journal, tail, verify  # noqa: F401
from tests.db.processes import write_line
from tests.stores.claiming import claimed


def in_processes(order: str) -> None:
    """Do what a test of a store has packed, in several processes."""
    from tests.stores.processes import run_packed

    run_packed(order)


def in_process(order: str) -> None:
    """Do what a test of a store has packed, here."""
    from tests.stores.processes import call_packed

    call_packed(order)


def open_often(_number: int, target: str, times: int) -> int:
    for _ in range(times):
        with Decklog.open(target) as log:
            assert log.journal.heads() is not None
    return times


def start_runs(number: int, target: str, times: int) -> int:
    with Decklog.open(target) as log:
        for turn in range(times):
            log.runs.start("goal", run_id=f"run_{number}_{turn}")
    return times


def append(number: int, target: str, stream: str, times: int) -> list[int]:
    with Decklog.open(target) as log:
        return [log.journal.append(stream, f"{number}.{count}", agent=f"w{number}").seq for count in range(times)]


def append_to_own(number: int, target: str, times: int) -> list[int]:
    """Append alternately to a shared stream and to a private one."""
    with Decklog.open(target) as log:
        own = log.runs.start(f"run of {number}", run_id=f"own_{number}").id
        return [log.journal.append(("run_1", own)[count % 2], f"{number}.{count}").seq for count in range(times)]


def follow(target: str, stream: str | None, count: int) -> None:
    """Tail until enough entries have come, and a moment longer; write the ids of all entries."""
    ids: list[str] = []
    with Decklog.open(target) as log:
        write_line("ready")
        for entry in log.journal.tail(stream, timeout_seconds=100):
            ids.append(entry.id)
            if len(ids) == count:
                break
        after = int(ids[-1].rpartition(":")[2]) if stream is not None else None
        late = [entry.id for entry in log.journal.tail(stream, after=after, timeout_seconds=0.3)]
        write_line(ids + (late if stream is not None else [name for name in late if name not in set(ids)]))


def migrate(_number: int, target: str) -> str:
    with Decklog.open(target, migrate=True) as log:
        return str(log.db.facts()["schema"])


def open_with_migrations(_number: int, target: str, folder: str, read_only: bool = False) -> dict[str, Any]:
    """Open a log as a Decklog with other migrations would."""
    from decklog.db import schema

    schema.FOLDER = folder
    schema.steps.cache_clear()
    try:
        with Decklog.open(target, migrate=True, read_only=read_only) as log:
            return dict(log.db.facts())
    except DecklogError as problem:
        return problem.as_dict()


def hold_open(target: str) -> None:
    """Open a log, write once, and again after a line on stdin; write the outcome."""
    with Decklog.open(target) as log:
        log.journal.append("run_1", "before")
        write_line("ready")
        sys.stdin.readline()
        try:
            log.journal.append("run_1", "after")
            write_line("written")
        except DecklogError as problem:
            write_line(problem.code)


def hold_lock(target: str, busy_seconds: float = 30.0) -> None:
    """Begin a transaction, write the process id, and keep it open until a line comes on stdin."""
    with Decklog.open(target, busy_seconds=busy_seconds) as log:
        with log.transaction():
            log.journal.append("run_1", "by the holder")
            write_line(os.getpid())
            sys.stdin.readline()
        write_line("done")


def hold_lock_and_report_error(target: str) -> None:
    """Begin a transaction, continue in it after a moment, and write the error."""
    with Decklog.open(target) as log:
        try:
            with log.transaction():
                log.journal.append("run_1", "by the holder")
                write_line(os.getpid())
                time.sleep(0.2)
                log.journal.append("run_1", "by the holder")
        except DecklogError as problem:
            write_line([problem.code, problem.retryable])


def write_twice(target: str) -> None:
    """Write by a verb and in a block, and again after a line on stdin; write each outcome."""
    with Decklog.open(target) as log:

        def write() -> None:
            log.journal.append("run_1", "by a verb")

        def write_in_a_block() -> None:
            with log.transaction():
                log.journal.append("run_1", "in a block")

        for acts in ((write, write_in_a_block), (write, write_in_a_block)):
            for act in acts:
                try:
                    act()
                    write_line("written")
                except DecklogError as problem:
                    write_line(problem.code)
            sys.stdin.readline()


def freeze_in_a_verb(target: str) -> None:
    """Stop this process in the middle of a write; write how often it was tried."""
    tries: list[int] = []
    with Decklog.open(target) as log:
        write_line(os.getpid())

        def job() -> None:
            tries.append(1)
            log.journal.append("run_1", f"try {len(tries)}")
            if len(tries) == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            log.runs.count_cycle("run_1")

        log.db.write(job)
        write_line(len(tries))


def write_and_close(_number: int, target: str, stream: str, body: str) -> int:
    with Decklog.open(target) as log:
        return log.journal.append(stream, body).seq


# Tasks


def work(number: int, target: str, run_id: str, lease_seconds: float, die: float, seed: int = 0) -> dict[str, int]:
    """Claim and finish until nothing is left; with a chance of `die`, end like a worker whose machine is gone."""
    luck = random.Random(f"{seed}, worker {number}")
    done = lost = 0
    with Decklog.open(target) as log:
        while True:
            claim = log.tasks.claim(run_id, worker=f"w{number}", lease_seconds=lease_seconds)
            if claim is None:
                if not log.tasks.find(run_id, state="running", limit=1):
                    return {"done": done, "lost": lost}
                time.sleep(0.02)
                continue
            if luck.random() < die:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                log.journal.append(run_id, "worked", kind="event", subtype="worked", task_id=claim.task.id)
                log.tasks.finish(claim.task.id, fence=claim.task.fence, summary=f"by w{number}")
                done += 1
            except LeaseLost:
                lost += 1


def claim_and_hold(target: str, run_id: str, lease_seconds: float) -> None:
    """Claim a task, write its id, and try to finish it after a line on stdin."""
    with Decklog.open(target) as log:
        claim = claimed(log, run_id, worker=f"holder {os.getpid()}", lease_seconds=lease_seconds)
        write_line({"task": claim.task.id, "fence": claim.task.fence, "pid": os.getpid()})
        sys.stdin.readline()
        try:
            log.tasks.finish(claim.task.id, fence=claim.task.fence)
            write_line("finished")
        except LeaseLost as lost:
            write_line(lost.code)


# Forks and threads


def fork_while_open(_number: int, target: str, times: int) -> dict[str, Any]:
    """Fork with a log open and in use: parent and child both go on with it."""
    log = Decklog.open(target)
    log.journal.append("run_1", "parent before")
    statuses = []
    for count in range(times):
        child = os.fork()
        if child == 0:
            _exit_after(lambda: (_write_some(log, f"child {count}"), log.close()))  # noqa: B023
        _write_some(log, f"parent {count}")
        statuses.append(os.waitpid(child, 0)[1])
    result = log.journal.verify()
    log.close()
    return {"statuses": statuses, "ok": result.ok, "entries": result.entries}


def fork_while_threads_write(_number: int, target: str, forks: int) -> dict[str, Any]:
    log = Decklog.open(target)
    stop = threading.Event()
    written: list[int] = []
    problems: list[str] = []

    def keep_writing() -> None:
        try:
            while not stop.is_set():
                written.append(log.journal.append("run_1", "by a thread").seq)
                assert log.journal.find("run_1", limit=1)
        except BaseException as problem:  # noqa: BLE001
            problems.append(repr(problem))

    def keep_following() -> None:
        try:
            for _ in log.journal.tail("run_1", timeout_seconds=2):
                if stop.is_set():
                    return
        except BaseException as problem:  # noqa: BLE001
            problems.append(repr(problem))

    threads = [threading.Thread(target=job) for job in (keep_writing, keep_writing, keep_writing, keep_following)]
    for thread in threads:
        thread.start()
    statuses = []
    for count in range(forks):
        child = os.fork()
        if child == 0:
            _exit_after(lambda: _write_some(log, f"child {count}"))  # noqa: B023
        statuses.append(_wait_for(child, 30))
    stop.set()
    for thread in threads:
        thread.join()
    result = log.journal.verify()
    log.close()
    return {
        "statuses": statuses,
        "problems": problems,
        "ok": result.ok,
        "entries": result.entries,
        "written": len(written),
        "distinct": len(set(written)),
    }


def die_with_lock_after_fork(target: str) -> None:
    """Leave a forked child behind that has the log, and be killed in the middle of a transaction."""
    log = Decklog.open(target)
    log.journal.append("run_1", "before")
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    with log.transaction():
        write_line(child)
        time.sleep(60)


def fork_inside_transaction(_number: int, target: str) -> dict[str, Any]:
    log = Decklog.open(target)
    with log.transaction():
        log.journal.append("run_1", "parent, before the fork")
        child = os.fork()
        if child == 0:
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        log.journal.append("run_1", "parent, after the fork")
    result = log.journal.verify()
    return {"status": status, "ok": result.ok, "entries": result.entries}


def fork_inside_transaction_and_write(_number: int, target: str) -> dict[str, Any]:
    """Fork inside of a transaction: the child tries to use the log, as it is and opened anew, once the parent has committed."""
    results_end, own_end = os.pipe()
    gate, opener = os.pipe()
    log = Decklog.open(target, busy_seconds=2)
    with log.transaction():
        log.journal.append("run_1", "by the parent")
        child = os.fork()
        if child == 0:
            os.read(gate, 1)
            os.write(own_end, json.dumps([_refusal(act) for act in _ways_to_use(log, target)]).encode())
            os._exit(0)
    os.write(opener, b"x")
    os.waitpid(child, 0)
    again = log.journal.append("run_1", "by the parent again").seq
    return {"child": json.loads(os.read(results_end, 4096)), "again": again, "ok": log.journal.verify().ok}


def _ways_to_use(log: Decklog, target: str) -> list[Callable[[], object]]:
    return [lambda: log.journal.append("run_1", "by the child"), lambda: log.journal.heads(), lambda: Decklog.open(target)]


def _refusal(act: Callable[[], object]) -> str:
    try:
        return repr(act())
    except DecklogError as refusal:
        return refusal.code


def outlive_the_parents_read(_number: int, target: str) -> dict[str, Any]:
    """Fork inside of a read: the child writes when its parent has closed the log."""
    results_end, own_end = os.pipe()
    gate, opener = os.pipe()
    log = Decklog.open(target)

    def read() -> int:
        log.db.rows("select count(*) from entries", {})
        child = os.fork()
        if child == 0:
            os.read(gate, 1)
            os.write(own_end, str(log.journal.append("run_1", "by the child").seq).encode())
            os._exit(0)
        return child

    child = log.db.read(read)
    log.close()
    os.write(opener, b"x")
    os.waitpid(child, 0)
    with Decklog.open(target) as after:
        child_seq = os.read(results_end, 99).decode()
        return {"child": child_seq, "entries": len(after.journal.find("run_1")), "ok": after.journal.verify().ok}


def give_up_and_fork(target: str) -> None:
    """Time out on the log, fork a child that lives on, and write after a line on stdin."""
    log = Decklog.open(target, busy_seconds=0.3)
    try:
        log.journal.append("run_1", "in vain")
    except Busy:
        child = os.fork()
        if child == 0:
            os.closerange(0, 3)
            time.sleep(60)
            os._exit(0)
        write_line(child)
        sys.stdin.readline()
        write_line(log.journal.append("run_1", "at last").seq)


def fork_inside_a_read(_number: int, target: str) -> dict[str, Any]:
    """Fork in the middle of a read: the child goes on with the log, and the parent with its read."""
    log = Decklog.open(target)

    def read() -> tuple[int, int]:
        assert log.db.rows("select count(*) from entries", {})[1] == [(2,)]
        child = os.fork()
        if child == 0:
            _exit_after(lambda: log.journal.append("run_1", "by the child"))
        status = _wait_for(child, 20)
        rows = log.db.rows("select count(*) from entries", {})[1]
        return status, rows[0][0]

    log.journal.append("run_1", "before")
    status, count = log.db.read(read)
    return {"status": status, "read": count, "after": len(log.journal.find("run_1"))}


def peek_with_a_forking_embedder(_number: int, target: str) -> list[str]:
    class Embedder:
        name = "pool"
        dimensions = 3

        def embed(self, texts: list[str]) -> list[list[float]]:
            child = os.fork()
            if child == 0:
                os._exit(0)
            assert _wait_for(child, 20) == 0
            return [[float(len(text)), 1.0, 0.0] for text in texts]

    log = Decklog.open(target)
    log.memory.embedder = Embedder()
    log.memory.remember("tool_usage_heuristics", "Commas are tokens")
    return [hit.body for hit in log.memory.peek("commas")]


def _wait_for(child: int, seconds: float) -> int:
    """Wait for a child; one that hangs is killed, which shows in its status."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _write_some(log: Decklog, who: str) -> None:
    for count in range(5):
        log.journal.append("run_1", f"{who} {count}")
        assert log.journal.find("run_1", limit=1)
    log.runs.count_cycle("run_1")


def _exit_after(job: Any) -> None:
    try:
        job()
    except BaseException:  # noqa: BLE001
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def open_twice_in_one_process(target: str) -> None:
    """Open the same file again while it is open; then write after another process has closed it."""
    first = Decklog.open(target)
    first.journal.append("run_1", "first")
    Decklog.open(target).close()
    write_line(locks_on(target))
    sys.stdin.readline()
    write_line([first.journal.append("run_1", f"later {count}").seq for count in range(5)])
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)


def locks_on(path: str) -> int | None:
    """Count the POSIX locks on a file, if the system lists them."""
    if not os.path.exists("/proc/locks"):
        return None
    inode = f":{os.stat(path).st_ino}"
    with open("/proc/locks") as file:
        return sum(line.split()[5].endswith(inode) for line in file)


def interrupt_a_waiting_write(_number: int, target: str) -> list[str]:
    """A thread holds the log, the main thread waits for it and is interrupted; later writes must go on."""
    log = Decklog.open(target)
    is_held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with log.transaction():
            is_held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait(10)

    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    results = []
    try:
        log.journal.append("run_1", "interrupted")
    except Interrupted:
        results.append("interrupted")
    release.set()
    holder.join()
    writer = threading.Thread(target=lambda: results.append(str(log.journal.append("run_1", "later").seq)), daemon=True)
    writer.start()
    writer.join(10)
    return results


def disk_full(_number: int, target: str, pages: int) -> dict[str, Any]:
    """Fill a log up to a limit of pages, then lift the limit and go on."""
    log = Decklog.open(target)
    last = log.journal.append("run_1", "before").seq
    connection = log.db.connections.writing()
    now = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {now + pages}")
    problems = []
    for size in (2, 40, 400, 1):
        try:
            entries = [{"stream": "run_1", "body": f"{count} " + "x" * 3000} for count in range(size)]
            last = log.journal.append_many(entries)[-1].seq
        except DecklogError as problem:
            problems.append(problem.code)
    mixed = _mixed_transaction(log)
    connection.execute("pragma max_page_count = 1000000")
    after = log.journal.append("run_1", "after").seq
    result = log.journal.verify()
    log.close()
    return {
        "problems": problems,
        "kept": last,
        "mixed": mixed,
        "after": after,
        "ok": result.ok,
        "what": result.first and result.first.what,
    }


def _mixed_transaction(log: Decklog) -> str:
    """In one block: a small write, one that fails and is caught, and another small one."""
    before = log.journal.heads()
    try:
        with log.transaction():
            log.journal.append("run_1", "small")
            try:
                log.journal.append_many([{"stream": "run_1", "body": "y" * 3000} for _ in range(400)])
            except DecklogError:
                log.runs.update("run_1", summary="caught")
    except DecklogError as problem:
        return f"{problem.code}, {'nothing kept' if log.journal.heads() == before else 'half kept'}"
    return "kept"


def die_with_open_wal(_number: int, target: str) -> None:
    """Leave a write-ahead log behind, as a program that is killed does."""
    import apsw

    child = os.fork()
    if child == 0:
        connection = apsw.Connection(target)
        connection.execute("insert into theirs values (1)")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def move_until_killed(_number: int, source: str, target: str, phase: str, calls: int) -> None:
    """Move a log, and be killed after a number of progress reports of a phase."""
    from decklog.transfer.move import Move

    seen_calls = 0

    def progress(what: str, _done: int, _whole: int) -> None:
        nonlocal seen_calls
        seen_calls += what == phase
        if seen_calls == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    with Decklog.open(source, read_only=True) as old, Decklog.open(target, migrate=True) as new:
        Move(old, new, progress).run()


def _set_clock(hours: float) -> None:
    """Let this process see the machine's clock set ahead or back."""
    Clock.now = lambda _clock: datetime.now(UTC) + timedelta(hours=hours)
    BootClock.now_text = Clock.now_text


def claim_with_a_clock_ahead(_number: int, target: str, hours: float, wait_seconds: float) -> str | None:
    _set_clock(hours)
    with Decklog.open(target) as log:
        claim = log.tasks.claim("run_1", worker="other", wait_seconds=wait_seconds)
        return None if claim is None else claim.task.id


def extend_with_a_clock_ahead(_number: int, target: str, hours: float, task_id: str, fence: int, seconds: float) -> str:
    _set_clock(hours)
    with Decklog.open(target) as log:
        return log.tasks.extend(task_id, fence=fence, lease_seconds=seconds).state.value


# Plans that change while others work


def edit_and_claim(number: int, target: str, run_id: str, count: int) -> dict[str, Any]:
    """Edit every task that can be, or claim every one: half of the processes do either."""
    with Decklog.open(target) as log:
        if number % 2:
            edited = []
            for place in range(count):
                with suppress(Conflict):
                    log.tasks.edit(f"t{place}", reason="a race", title="after")
                    edited.append(f"t{place}")
            return {"edited": edited}
        claimed = {}
        while (claim := log.tasks.claim(run_id, worker=f"w{number}")) is not None:
            claimed[claim.task.id] = claim.task.title
        return {"claimed": claimed}


def assign_and_claim(number: int, target: str, run_id: str, count: int) -> dict[str, Any]:
    """Assign a share of the tasks to oneself, then claim until no task is left."""
    claimed = []
    with Decklog.open(target) as log:
        for place in range(number, count, 8):
            if log.tasks.get(f"t{place}").state == "pending":
                log.tasks.assign(f"t{place}", f"w{number}")
            if (claim := log.tasks.claim(run_id, worker=f"w{number}")) is not None:
                claimed.append(claim.task.id)
        while log.tasks.find(run_id, state="pending", limit=1):
            if (claim := log.tasks.claim(run_id, worker=f"w{number}")) is not None:
                claimed.append(claim.task.id)
    return {"claimed": claimed}


def undepend_and_work(number: int, target: str, run_id: str, count: int) -> int:
    """Take dependencies off while others finish what is waited for, then do what is left."""
    with Decklog.open(target) as log:
        for place in range(count) if number % 2 else ():
            with suppress(Conflict):
                log.tasks.undepend(f"t{place}", "first")
    return work(number, target, run_id, 60.0, 0.0)["done"]


def claim_what_is_due(number: int, target: str, run_id: str, at: str) -> list[str]:
    """Claim all tasks at a moment; return their keys."""
    from decklog import ManualClock

    found = []
    with Decklog.open(target, clock=ManualClock(datetime.fromisoformat(at))) as log:
        while (claim := log.tasks.claim(run_id, worker=f"w{number}")) is not None:
            found.append(str(claim.finish().key))
    return found


def use_template(_number: int, target: str, run_id: str, values: dict[str, object]) -> list[str]:
    with Decklog.open(target) as log:
        return [task.id for task in log.templates.use("release", run_id, values=values, key="one")]
