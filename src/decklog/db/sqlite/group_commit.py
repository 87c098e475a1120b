"""Group commit: threads that want to write at the same time share one transaction and one sync to disk.

There is no writer thread. The first caller leads: it runs its own job and those that are waiting, commits once, and wakes
the others. A lone caller pays for nothing but a lock it finds free.
"""

from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock, Thread, get_ident
from typing import Any

from decklog.db.callers import copy_detached_context

MOST_IN_ONE_COMMIT = 256


class Ticket:
    """One job on its way: what to run, and what came of it."""

    __slots__ = ("error", "future", "job", "must_lead", "result", "wake", "wants_alone")

    def __init__(self, job: Callable[[], Any], future: Any = None) -> None:
        self.job = job
        self.result: Any = None
        self.error: BaseException | None = None
        self.must_lead = False
        self.wants_alone = False
        self.future = future

    def prepare_to_wait(self) -> None:
        """Make the job see its caller's context variables in whichever thread runs it."""
        job, context = self.job, copy_detached_context()
        self.job = lambda: context.run(job)
        self.wake = Lock()
        self.wake.acquire()

    def settle(self) -> None:
        """Wake the waiting caller."""
        if self.future is None:
            self.wake.release()
        elif self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class GroupCommit:
    """Decides which thread commits.

    `commit_one` runs a job in a transaction. `commit_all` runs tickets in one transaction and fills in their outcomes;
    it raises only when its thread is interrupted.
    """

    def __init__(self, commit_one: Callable[[Callable[[], Any]], Any], commit_all: Callable[[list[Ticket]], None]) -> None:
        self._commit_one = commit_one
        self._commit_all = commit_all
        self._gate = Lock()
        self._waiting: deque[Ticket] = deque()
        self._led = False
        self._pending: set[Any] = set()
        self._delivering: set[int] = set()

    def run(self, job: Callable[[], Any]) -> Any:
        """Run a job and return once it is committed."""
        with self._gate:
            if not self._led and not self._waiting:
                self._led = True
                ticket = None
            else:
                ticket = Ticket(job)
                ticket.prepare_to_wait()
                self._waiting.append(ticket)
        if ticket is None:
            try:
                return self._commit_one(job)
            finally:
                self.done()
        self._wait(ticket)
        if ticket.must_lead:
            self._lead(ticket)
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def _wait(self, ticket: Ticket) -> None:
        try:
            ticket.wake.acquire()
        except BaseException:
            # A signal's handler raised: the next leader must not be a thread that is gone.
            self._leave(ticket)
            raise

    def _leave(self, ticket: Ticket) -> None:
        with self._gate:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                return
        if ticket.must_lead:
            self.done()

    def queue(self, job: Callable[[], Any], future: Any) -> None:
        """Leave a job to be committed in the background."""
        ticket = Ticket(job, future)
        ticket.prepare_to_wait()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        with self._gate:
            self._waiting.append(ticket)
            if self._led:
                return
            self._led = True
        self._start_drain()

    def wait_until_answered(self) -> None:
        """Wait until every queued job has its result; a callback of such a job does not wait for the others."""
        if self._pending and get_ident() not in self._delivering:
            from concurrent.futures import wait

            wait(list(self._pending))

    def alone(self, *, after_all: bool = False) -> None:
        """Wait until nobody else writes, and keep it so until `done` is called.

        It goes before those who wait already, or after all of them.
        """
        ticket = Ticket(lambda: None)
        ticket.wants_alone = True
        ticket.prepare_to_wait()
        with self._gate:
            if not self._led:
                self._led = True
                return
            if after_all:
                self._waiting.append(ticket)
            else:
                self._waiting.appendleft(ticket)
        self._wait(ticket)

    def _lead(self, own: Ticket) -> None:
        batch = [own]
        self._take_waiting(batch)
        try:
            self._commit_all(batch)
        finally:
            self.done()
            self._deliver(iter(batch[1:]))

    def _start_drain(self) -> None:
        Thread(target=self._drain, name="decklog writer", daemon=True).start()

    def _drain(self) -> None:
        """Commit what is queued, batch by batch, until somebody else has to lead."""
        while True:
            batch: list[Ticket] = []
            self._take_waiting(batch)
            leads_on = False
            try:
                if batch:
                    self._commit_all(batch)
                with self._gate:
                    leads_on = bool(self._waiting) and not self._waiting[0].wants_alone
            finally:
                if not leads_on:
                    self.done()
                self._deliver(iter(batch))
            if not leads_on:
                return

    def _deliver(self, tickets: Iterator[Ticket]) -> None:
        """Deliver the results of jobs; callbacks may write, and get results in turn."""
        thread = get_ident()
        if thread in self._delivering:
            _settle(tickets)
            return
        self._delivering.add(thread)
        try:
            _settle(tickets)
        finally:
            self._delivering.discard(thread)

    def _take_waiting(self, batch: list[Ticket]) -> None:
        with self._gate:
            while self._waiting and not self._waiting[0].wants_alone and len(batch) < MOST_IN_ONE_COMMIT:
                batch.append(self._waiting.popleft())

    def done(self) -> None:
        """Let the next one lead."""
        with self._gate:
            if not self._waiting:
                self._led = False
                return
            next_leader = next((ticket for ticket in self._waiting if ticket.future is None), None)
            if next_leader is not None and next_leader.wants_alone and next_leader is not self._waiting[0]:
                next_leader = None  # what was queued before it comes first
            if next_leader is not None:
                self._waiting.remove(next_leader)
                next_leader.must_lead = True
        if next_leader is None:
            self._start_drain()
        else:
            next_leader.wake.release()


def _settle(tickets: Iterator[Ticket]) -> None:
    """Deliver the results of jobs, even if a callback fails."""
    try:
        for ticket in tickets:
            ticket.settle()
    except BaseException:
        _settle(tickets)
        raise
