"""The acting agent, task and group, to which entries are attributed by default, and the signed action of the owner."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, NamedTuple

from decklog.records.operations import lease
from decklog.records.record import Record

NAMES = ("agent", "agent_id", "group_id", "task_id", "iteration")

acting: ContextVar[dict[str, Any] | None] = ContextVar("decklog_acting", default=None)
# The task that this context has claimed, with its fencing token.
held_task: ContextVar[tuple[str, int] | None] = ContextVar("decklog_holding", default=None)


class ContextLayer(NamedTuple):
    """The part of the context that one block adds: the actor, and a check that refuses writes after a lost lease.

    `claim` is the claim of the block, if any; `held_task` is the claimed task with its fencing token.
    """

    actor: Mapping[str, Any]
    check: Callable[[Any], None] | None = None
    claim: Any = None
    held_task: tuple[str, int] | None = None


_layers: ContextVar[tuple[ContextLayer, ...]] = ContextVar("decklog_layers", default=())


def enter(layer: ContextLayer) -> None:
    """Add a block's layer on top of the others in this context."""
    _apply((*_layers.get(), layer))


def leave(layer: ContextLayer) -> None:
    """Remove the layer of a block. Blocks may end in another order than they began."""
    _apply(tuple(other for other in _layers.get() if other is not layer))


def _apply(layers: tuple[ContextLayer, ...]) -> None:
    actor: dict[str, Any] = {}
    check = holds = None
    for layer in layers:
        actor.update(layer.actor)
        check = layer.check or check
        holds = layer.held_task or holds
    _layers.set(layers)
    acting.set(actor if layers else None)
    lease.set(check)
    held_task.set(holds)


def list_claims() -> list[Any]:
    """Return the active claims of this context, the innermost last."""
    return [layer.claim for layer in _layers.get() if layer.claim is not None]


def find_context_task(run_id: str | None) -> str | None:
    """Return the task of this context, unless its claim belongs to another run."""
    for layer in reversed(_layers.get()):
        if "task_id" in layer.actor:
            is_of_other_run = layer.claim is not None and layer.claim.task.run_id != run_id
            return None if is_of_other_run else layer.actor["task_id"]
    return None


def fill_context_task(record_class: type[Record], fields: dict[str, Any]) -> dict[str, Any]:
    """Set the task of a new record from the context, unless the record has one or belongs to another run."""
    if acting.get() is None or not record_class.is_work or fields.get("task_id") is not None:
        return fields
    return {**fields, "task_id": find_context_task(fields.get("run_id"))}


class OwnerAct:
    """Collects the changes of one operation of the owner, so that its signature can cover all of them."""

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        # The refs of the entries of these changes.
        self.refs = f'["proof:{nonce}"]'
        self.changes: list[str] = []

    def add(self, table: str, record_id: str, image: str) -> None:
        """Add a change."""
        self.changes.append(change_digest(table, record_id, image))


def change_digest(table: str, record_id: str, image: str) -> str:
    """Return the digest of a changed record for a signature."""
    return sha256("\n".join((table, record_id, image)).encode()).hexdigest()


owner_act: ContextVar[OwnerAct | None] = ContextVar("decklog_proving", default=None)
