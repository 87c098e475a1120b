"""Who is acting: the agent, task and group that entries are attributed to when a call does not say, and under which proof."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, NamedTuple

from decklog.records.operations import lease
from decklog.records.record import Record

NAMES = ("agent", "agent_id", "group_id", "task_id", "iteration")

acting: ContextVar[dict[str, Any] | None] = ContextVar("decklog_acting", default=None)
# The task that this context has claimed, with its fencing token.
holding: ContextVar[tuple[str, int] | None] = ContextVar("decklog_holding", default=None)


class ContextLayer(NamedTuple):
    """What one block adds to the context: who acts, and the check that refuses a write once a lease is lost.

    `claim` is the block's claim, if any; `holds` the claimed task with its fencing token.
    """

    who: Mapping[str, Any]
    check: Callable[[Any], None] | None = None
    claim: Any = None
    holds: tuple[str, int] | None = None


_layers: ContextVar[tuple[ContextLayer, ...]] = ContextVar("decklog_layers", default=())


def enter(layer: ContextLayer) -> None:
    """Add a block's layer on top of the others in this context."""
    _apply((*_layers.get(), layer))


def leave(layer: ContextLayer) -> None:
    """Remove a block's layer, wherever it lies: blocks may end in another order than they began."""
    _apply(tuple(one for one in _layers.get() if one is not layer))


def _apply(layers: tuple[ContextLayer, ...]) -> None:
    who: dict[str, Any] = {}
    check = holds = None
    for layer in layers:
        who.update(layer.who)
        check = layer.check or check
        holds = layer.holds or holds
    _layers.set(layers)
    acting.set(who if layers else None)
    lease.set(check)
    holding.set(holds)


def claims() -> list[Any]:
    """List the claims whose blocks this context is in, the innermost last."""
    return [layer.claim for layer in _layers.get() if layer.claim is not None]


def task_of(run_id: str | None) -> str | None:
    """Return the task that this context is about, unless a claim shows that it belongs to another run."""
    for layer in reversed(_layers.get()):
        if "task_id" in layer.who:
            is_elsewhere = layer.claim is not None and layer.claim.task.run_id != run_id
            return None if is_elsewhere else layer.who["task_id"]
    return None


def attributed(record_class: type[Record], fields: dict[str, Any]) -> dict[str, Any]:
    """Fill in the task of a new record from the context, unless the record names one or belongs to another run."""
    if acting.get() is None or not record_class.is_work or fields.get("task_id") is not None:
        return fields
    return {**fields, "task_id": task_of(fields.get("run_id"))}


class OwnerAct:
    """What one operation of the owner changes, collected while it runs, so that its proof can name all of it."""

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        # What the entries of these changes refer to.
        self.refs = f'["proof:{nonce}"]'
        self.changes: list[str] = []

    def add(self, table: str, record_id: str, image: str) -> None:
        """Note a change that belongs to the act."""
        self.changes.append(change_digest(table, record_id, image))


def change_digest(table: str, record_id: str, image: str) -> str:
    """Digest what a record became, as a proof names it."""
    return sha256("\n".join((table, record_id, image)).encode()).hexdigest()


proving: ContextVar[OwnerAct | None] = ContextVar("decklog_proving", default=None)
