"""What a log does for the length of a block: attribute, sign, run once, and write all or nothing."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from decklog.core.errors import Invalid

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from decklog.db.base import Database
    from decklog.stores.effects.acting_once import Once
    from decklog.stores.effects.effects import Effects

    P = ParamSpec("P")
    R = TypeVar("R")


class Blocks:
    """The context managers and decorators of a log."""

    db: "Database"
    if TYPE_CHECKING:

        @property
        def effects(self) -> Effects: ...

    @contextmanager
    def acting(
        self,
        agent: str | None = None,
        *,
        agent_id: str | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        iteration: int | None = None,
        fence: int | None = None,
    ) -> Iterator[None]:
        """Attribute everything written in this block, unless a call names another agent or task.

        With the fence of a claimed task, what is written is refused (`LeaseLost`) once that lease is lost.
        """
        from decklog.journal import attribution

        given: dict[str, Any] = {"agent": agent, "agent_id": agent_id, "group_id": group_id, "task_id": task_id}
        given["iteration"] = iteration
        actor = {name: value for name, value in given.items() if value is not None}
        outer = attribution.acting.get() or {}
        layer = attribution.ContextLayer(actor)
        if fence is not None:
            task = actor.get("task_id", outer.get("task_id"))
            layer = attribution.ContextLayer(actor, check=self._held(task, fence), held_task=(str(task), fence))
        attribution.enter(layer)
        try:
            yield
        finally:
            attribution.leave(layer)

    def _held(self, task_id: str | None, fence: int) -> "Callable[[Database], None]":
        from decklog.stores.tasks.claim import build_lease_check

        if task_id is None:
            raise Invalid("a fence needs the task that it belongs to", field="task_id")
        return build_lease_check(task_id, fence)

    @contextmanager
    def proving(
        self, *, key: str | os.PathLike[str] | None = None, passphrase: str | None = None, password: str | None = None
    ) -> Iterator[None]:
        """Act as the owner in this block: what only the owner does is signed with a key file, or by the password."""
        from decklog.stores.approvals.trust.proofs import prover
        from decklog.stores.approvals.trust.signatures import Prover

        path = None if key is None else os.path.expanduser(os.fspath(key))
        token = prover.set(Prover(key=path, passphrase=passphrase, password=password))
        try:
            yield
        finally:
            prover.reset(token)

    if TYPE_CHECKING:

        @overload
        def once(self, key: Callable[P, R]) -> Callable[P, R]: ...
        @overload
        def once(self, key: str | None = None, *, run_id: str | None = None) -> Once: ...

    def once(self, key: Any = None, *, run_id: str | None = None) -> Any:
        """Run a block (`with log.once("deploy") as effect:`) or a function (`@log.once`) once, and return its first result again.

        A key counts within its run, and in a claim's block within its task. A function's key is its name, unless one is given,
        and its arguments. The result must be JSON. What crashed in the middle is not run again until a person has said
        whether it happened (`effects.reconcile`).
        """
        from decklog.stores.effects.acting_once import Once

        if callable(key):
            return Once(self.effects, run_id=run_id)(key)
        return Once(self.effects, key, run_id=run_id)

    def transaction(self) -> "AbstractContextManager[None]":
        """Make everything written in this block one transaction: all of it, or nothing.

        It belongs to the thread, or the task of asyncio, that opened it.
        """
        return self.db.transaction()

    @property
    def is_in_transaction(self) -> bool:
        """Whether the caller holds a transaction open, so that what is written now may still be undone."""
        return self.db.is_in_transaction
