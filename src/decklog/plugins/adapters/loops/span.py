"""Something that a loop does, from its beginning to its end, whichever of the ways in which Python runs things it is done.

Both ends are on record before the loop goes on: what was begun and has no end is what a killed process was doing.
"""

import os
from abc import ABC, abstractmethod
from contextvars import ContextVar
from typing import TYPE_CHECKING

from decklog.agents.events import CallOutcome
from decklog.aio import loops
from decklog.plugins.adapters.loops.values import as_text, error_message
from decklog.plugins.adapters.waiting import away

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from decklog.log import Decklog
    from decklog.plugins.adapters.loops.run import Recorded

# The innermost span that this thread or task is in.
present: "ContextVar[LoopSpan | None]" = ContextVar("decklog_span", default=None)


class LoopSpan(ABC):
    """One run, step or call. Entered with `with` where a loop is plain, and with `async with` where it awaits."""

    def __init__(self) -> None:
        self._outer: LoopSpan | None = None
        self._process = 0
        self._outcome: CallOutcome | None = None
        self._output = ""
        self._facts: dict[str, Any] = {}

    # For each kind of span

    @property
    @abstractmethod
    def recording(self) -> "Recorded | None":
        """The run that it is recorded in; None where nobody records."""

    def log_of(self) -> "Decklog | None":
        """Return the log that it is recorded in; None where nobody records."""
        return None if self.recording is None else self.recording.log

    @abstractmethod
    def begin(self) -> None:
        """Write that it begins."""

    @abstractmethod
    def end(self, outcome: CallOutcome, output: str, facts: "dict[str, Any]") -> None:
        """Write that it has ended."""

    # What a block may say of it

    def returned(self, output: "Any", **facts: "Any") -> None:
        """Say what came of it; leaving the block writes it down."""
        self._outcome, self._output, self._facts = CallOutcome.OK, as_text(output), facts

    def failed(self, why: "Any", **facts: "Any") -> None:
        """Mark it as failed, without an error."""
        self._outcome, self._output, self._facts = CallOutcome.FAILED, as_text(why), facts

    # Its two ends

    def settle(self, problem: BaseException | None) -> None:
        """Write the end: as the block said, or by the error that ended it."""
        if os.getpid() != self._process and os.getppid() == self._process:
            # A child that was forked in the block and leaves it too: its parent is at it still.
            return
        if problem is None:
            self.end(self._outcome or CallOutcome.OK, self._output, self._facts)
        else:
            # A cancelled task, a closed generator, Ctrl-C: nobody's mistake, and not done either.
            outcome = CallOutcome.FAILED if isinstance(problem, Exception) else CallOutcome.INTERRUPTED
            self.end(outcome, error_message(problem), self._facts)

    def enter(self) -> None:
        """Make this the innermost span."""
        self._process = os.getpid()
        self._outer = present.get()
        present.set(self)

    def leave(self) -> None:
        """Make the one around it the innermost again; a generator may be closed where another is."""
        if present.get() is self:
            present.set(self._outer)

    def __enter__(self) -> "Self":
        self.enter()
        try:
            if self.log_of() is not None:
                self.begin()
        except BaseException:
            self.leave()
            raise
        return self

    def __exit__(self, _: object, problem: BaseException | None, _trace: "TracebackType | None") -> None:
        self.leave()
        self.settle_if_recorded(problem)

    def settle_if_recorded(self, problem: BaseException | None) -> None:
        """Write the end, where somebody records."""
        if self.log_of() is not None:
            self.settle(problem)

    async def __aenter__(self) -> "Self":
        self.enter()
        try:
            if (log := self.log_of()) is not None and await away(log, self.begin):
                await away(log, lambda: self.settle(loops.cancellation()))
                raise loops.cancellation()
        except BaseException:
            self.leave()
            raise
        return self

    async def __aexit__(self, _: object, problem: BaseException | None, _trace: "TracebackType | None") -> None:
        self.leave()
        log = self.log_of()
        if log is not None and await away(log, lambda: self.settle(problem)) and problem is None:
            raise loops.cancellation()
