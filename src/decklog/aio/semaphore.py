"""A fair semaphore for async tasks: waiting tasks hold no thread."""

from collections import deque
from collections.abc import Hashable
from threading import Lock

from decklog.aio import loops


class Semaphore:
    """Admits `places` holders at a time, in order of arrival."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._free = places
        self._waiting: deque[loops.Signal] = deque()
        self._gate = Lock()

    async def acquire(self, seconds: float | None = None) -> bool:
        """Wait for a turn or a timeout; return whether it came."""
        with self._gate:
            if self._free and not self._waiting:
                self._free -= 1
                return True
            turn = loops.signal()
            self._waiting.append(turn)
        try:
            await turn.wait(seconds)
        except BaseException:
            if not self._left(turn):
                self.release()
            raise
        return not self._left(turn)

    def _left(self, turn: loops.Signal) -> bool:
        """Stop waiting; return False if the turn has come."""
        with self._gate:
            if turn not in self._waiting:
                return False
            self._waiting.remove(turn)
            return True

    async def wait_for_all(self) -> None:
        """Wait until all earlier holders are done."""
        taken = 0
        try:
            for _ in range(self.places):
                await self.acquire()
                taken += 1
        finally:
            for _ in range(taken):
                self.release()

    def release(self) -> None:
        with self._gate:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


class Queues:
    """One queue per key; only its first waiter polls."""

    def __init__(self) -> None:
        self._gate = Lock()
        self._queues: dict[Hashable, tuple[Semaphore, int]] = {}

    def join(self, key: Hashable) -> Semaphore:
        with self._gate:
            queue, people = self._queues.get(key, (Semaphore(1), 0))
            self._queues[key] = queue, people + 1
            return queue

    def leave(self, key: Hashable) -> None:
        with self._gate:
            queue, people = self._queues.pop(key)
            if people > 1:
                self._queues[key] = queue, people - 1
