"""What the machines share: a log for each program, transactions over several steps, and the same programs every time."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from decklog import Decklog, ManualClock

MOST_BLOCKS = 3
# A number that picks one of whatever there is at that moment.
WHICH = st.integers(0, 11)

Place = Callable[[], AbstractContextManager[str]]


class RolledBack(Exception):
    """Ends a transaction that is to be undone."""


class World(Protocol):
    """What must be true, worked out without a database."""

    def copy(self) -> Self: ...


def files_like(empty: Path) -> Place:
    """Give each program a copy of an empty log."""

    @contextmanager
    def one() -> Iterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            yield str(shutil.copy(empty, Path(folder) / "decklog.db"))

    return one


W = TypeVar("W", bound=World)
T = TypeVar("T")


class LogMachine(RuleBasedStateMachine, Generic[W]):
    """Does things to a log and to a world beside it. A block rolled back takes both back to where they were."""

    # Where a program's log is, by engine, and the engine that it begins with.
    places: ClassVar[dict[str, Place]]
    engine: ClassVar[str]

    world: W

    @initialize()
    def open(self) -> None:
        self.resources = ExitStack()
        self.clock = ManualClock()
        self.steps = 0
        self.blocks: list[tuple[AbstractContextManager[None], W]] = []
        self.log = self.opened(self.engine)
        self.begin_world()

    def opened(self, engine: str) -> Decklog:
        """Open an empty log that is gone with the program."""
        target = self.resources.enter_context(self.places[engine]())
        return self.resources.enter_context(Decklog.open(target, clock=self.clock, durability="relaxed"))

    def begin_world(self) -> None:
        """Make the world, and the same in the log."""
        raise AssertionError("each machine has a world of its own")

    def at_end(self) -> None:
        """Check what is checked once for each program."""
        result = self.log.journal.verify()
        assert result.ok, result.problems

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        with self.resources:
            while self.blocks:
                self.leave_block(undo=False)
            # A program that has failed already says why by itself.
            if sys.exc_info()[0] is None:
                self.at_end()

    # Transactions

    @precondition(lambda self: len(self.blocks) < MOST_BLOCKS)
    @rule()
    def begin(self) -> None:
        block = self.log.transaction()
        block.__enter__()
        self.blocks.append((block, self.world.copy()))

    @precondition(lambda self: self.blocks)
    @rule(undo=st.booleans())
    def end_block(self, undo: bool) -> None:
        self.leave_block(undo=undo)

    def leave_block(self, *, undo: bool) -> None:
        block, before = self.blocks.pop()
        if not undo:
            block.__exit__(None, None, None)
            return
        problem = RolledBack()
        with suppress(RolledBack):
            block.__exit__(RolledBack, problem, None)
        self.take_back(before)

    def take_back(self, before: W) -> None:
        """Make the world what it was before a block that was undone."""
        self.world = before

    @invariant()
    def log_and_world_agree(self) -> None:
        if hasattr(self, "log"):
            self.steps += 1
            # In one read: a server takes longer to begin and end one than to answer.
            self.log.db.read(self.compare)
            self.look_further()

    def compare(self) -> None:
        raise AssertionError("each machine has a world of its own")

    def look_further(self) -> None:
        """Check what is not checked inside of a read."""


def pick(which: int, choices: list[T]) -> T:
    return choices[which % len(choices)]


def search(machine: type[LogMachine[Any]], engine: str, places: dict[str, Place], *, programs: int, steps: int) -> None:
    """Run so many programs of a machine, each of so many steps at most, on logs that begin on an engine."""
    placed = type(f"{machine.__name__}_{engine}", (machine,), {"places": places, "engine": engine})
    how = settings(max_examples=programs, stateful_step_count=steps, suppress_health_check=list(HealthCheck), database=None)
    run_state_machine_as_test(placed, settings=how)
