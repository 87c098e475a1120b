"""Side effects: actions of tools on the outside world, recorded before and finalized after."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Invalid, Unproven
from decklog.db.where import Where, parse_enum
from decklog.journal.blobs import INLINE_CHARACTERS, load_blob_text, store_blob
from decklog.records.fork_rules import Computed, ForkRule, Refer, Replace, Reset
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.records.values import from_json
from decklog.stores.base import Store
from decklog.stores.checks import check_filled


class EffectState(StrEnum):
    INTENDED = "intended"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CLEARED = "cleared"


EffectStateLike = EffectState | Literal["intended", "done", "failed", "unknown", "cleared"]

_FORKED = "it was being done for the run that this one was forked from"


def _is_open(image: Mapping[str, Any]) -> bool:
    return image["state"] in (EffectState.INTENDED, EffectState.UNKNOWN)


class EffectOutcome(StrEnum):
    """The outcome of a side effect that nobody finalized."""

    YES = "yes"
    NO = "no"


EffectOutcomeLike = EffectOutcome | Literal["yes", "no"]


@dataclass(frozen=True, kw_only=True)
class Effect(Record):
    """One act of a tool. `facts` are what a check compares the world with; `actor` is the process that acts."""

    table = "effects"
    is_work = True
    fork = ForkRule(
        "What was done is not done again. Of what was being done, nobody in the fork knows whether it happened.",
        fields={
            "task_id": Refer("tasks"),
            "state": Replace({"intended": "unknown"}),
            "actor": Reset(),
            "note": Computed("gives the reason if it was being done"),
        },
        left_out="steps of the conductor that were being done, which its tasks name by their ids",
        is_left_out=lambda image, _fork: _is_open(image) and image["tool"].startswith("conductor."),
    )
    is_managed = True
    blob_columns = ("result_digest",)

    id: str
    run_id: str
    step: str
    tool: str
    key: str
    state: EffectState
    intended_at: datetime
    task_id: str | None = None
    arguments: dict[str, object] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    actor: str | None = None
    attempts: int = 1
    result: object = None
    result_digest: str | None = None
    error: dict[str, object] | None = None
    reconciled_by: str | None = None
    note: str | None = None
    settled_at: datetime | None = None

    def _decoded(self, name: str, raw: Any) -> Any:
        value = super()._decoded(name, raw)
        # Stored in a list, so that the column is always JSON.
        return value[0] if name == "result" and isinstance(value, list) else value

    @classmethod
    def needs_proof(cls, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
        """Return whether the owner must sign: to decide or clear an unknown side effect. Copies of forks need no signature."""
        if before is None:
            return False
        was, now = before.get("state"), after.get("state")
        return was != now and (was == EffectState.UNKNOWN or now == EffectState.CLEARED)

    @classmethod
    def repair_fork(cls, images: list[dict[str, Any]], _told: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        return [{**image, "note": _FORKED} if image["state"] == EffectState.INTENDED else image for image in images]

    @property
    def is_settled(self) -> bool:
        return self.state in (EffectState.DONE, EffectState.FAILED)


class Effects(Store):
    """Records side effects of tools before and after they happen, so that none is repeated or lost silently."""

    records = (Effect,)

    @writes(hands_out=True)
    def intend(
        self,
        run_id: str,
        step: str,
        tool: str,
        *,
        key: str,
        actor: str,
        arguments: dict[str, object] | None = None,
        facts: dict[str, object] | None = None,
        task_id: str | None = None,
    ) -> Effect:
        """Record that an effect is about to be made. A key that the run knows returns that effect unchanged."""
        check_filled("step", step)
        return self._find_or_add(
            lambda: self.known(run_id, key),
            lambda: self._add(
                Effect,
                note=f"{tool} in {step}",
                id=self._ids.new("eff"),
                run_id=run_id,
                task_id=task_id,
                step=step,
                tool=tool,
                key=key,
                state=EffectState.INTENDED,
                arguments=arguments or {},
                facts=facts or {},
                actor=actor,
                intended_at=self._now(),
            ),
        )

    def check_can_act(self) -> None:
        """Refuse to act inside a transaction: its record could be rolled back, but not the action."""
        if self._db.is_in_transaction:
            raise Invalid(
                "nothing can be done once inside a transaction: its record could still be rolled back",
                hint="Do it before or after the block of log.transaction().",
            )

    @reads
    def known(self, run_id: str, key: str) -> Effect | None:
        """Get the effect that a run knows under a key, or null."""
        found = self._seek_by(Effect, run_id=run_id, key=key)
        return None if found is None else self._filled(found)

    @writes(hands_out=True)
    def take_up(
        self,
        effect_id: str,
        *,
        actor: str,
        attempts: int,
        facts: dict[str, object] | None = None,
        abandoned_by: str | None = None,
    ) -> Effect:
        """Try an effect again that is known not to have happened.

        `attempts` is how many the caller saw: when another has taken it up meanwhile, nothing changes. An effect that is still
        intended is taken over from `abandoned_by`, its actor, after a check found that it did not happen. Where an owner is
        bound, one of unknown outcome is not taken up: `reconcile` is for the owner.
        """
        changes = {"state": "intended", "actor": actor, "note": None, "intended_at": self._now()}
        return self._update(
            Effect,
            effect_id,
            changes if facts is None else {**changes, "facts": facts},
            condition=f"attempts = :attempts and ({self._checkable(effect_id)} or state = 'cleared')",
            adding={"attempts": 1},
            note="taken up again",
            attempts=attempts,
            abandoned_by=abandoned_by,
        )

    def _checkable(self, effect_id: str) -> str:
        """Return the condition for side effects that a check may decide. Raise `Unproven` if only the owner may."""
        if not self._proofs().is_needed:
            return "(state = 'unknown' or (state = 'intended' and actor = :abandoned_by))"
        if self._fetch(Effect, effect_id).state is EffectState.UNKNOWN:
            raise Unproven(
                f"nobody knows whether effect {effect_id} happened, and only the owner decides",
                hint=f"Look at what it was to do, then: decklog effects reconcile {effect_id} yes|no --by NAME",
                operation="effects.reconcile",
                id=effect_id,
            )
        return "(state = 'intended' and actor = :abandoned_by)"

    # Late writes too: the side effect has happened, even if another worker has the task.
    @writes(late=True)
    def settle(self, effect_id: str, *, actor: str, result: object = None, error: dict[str, object] | None = None) -> Effect:
        """Record the outcome of an effect by its own actor: a result or an error."""
        changed = self._update(
            Effect,
            effect_id,
            {
                "state": EffectState.FAILED if error else EffectState.DONE,
                **self._outcome(result),
                "error": error,
                "settled_at": self._now(),
            },
            condition="state = 'intended' and actor = :actor",
            actor=actor,
        )
        return self._filled(changed)

    def _outcome(self, result: object) -> dict[str, Any]:
        """Return the fields of an effect without an actor: a short result inline, a long one as its digest."""
        # Wrapped in a list, so that the column is always JSON.
        text = self._db.values.bind_json("result", [result])[0]
        if result is not None and len(text) > INLINE_CHARACTERS:
            return {"actor": None, "result": None, "result_digest": store_blob(self._db, text.encode())}
        return {"actor": None, "result": None if result is None else [result], "result_digest": None}

    def _filled(self, effect: Effect) -> Effect:
        if effect.result_digest is not None and (content := load_blob_text(self._db, effect.result_digest)) is not None:
            object.__setattr__(effect, "result", from_json(content)[0])
        return effect

    # Late writes too: the side effect has happened, even if another worker has the task.
    @writes(late=True)
    def doubt(self, effect_id: str, *, actor: str, note: str | None = None) -> Effect:
        """Record that nobody knows whether an effect happened, because its actor is gone or can't say."""
        return self._update(
            Effect,
            effect_id,
            {"state": "unknown", "actor": None, "note": note},
            condition="state = 'intended' and actor = :actor",
            note=note,
            actor=actor,
        )

    @writes
    def confirm(
        self, effect_id: str, *, attempts: int, result: object = None, by: str = "check", abandoned_by: str | None = None
    ) -> Effect:
        """Record that a check found the effect done; `attempts` is the number that the checker saw.

        An effect that is still intended is confirmed for `abandoned_by`, its actor, which has ended. Where an owner is bound,
        one of unknown outcome is not confirmed: `reconcile` is for the owner.
        """
        changed = self._update(
            Effect,
            effect_id,
            {
                "state": "done",
                **self._outcome(result),
                "reconciled_by": by,
                "settled_at": self._now(),
            },
            condition=f"attempts = :attempts and {self._checkable(effect_id)}",
            note=f"found done by {by}",
            attempts=attempts,
            abandoned_by=abandoned_by,
        )
        return self._filled(changed)

    @writes(owner_only=True)
    def reconcile(
        self, effect_id: str, happened: EffectOutcomeLike, *, by: str, result: object = None, reason: str | None = None
    ) -> Effect:
        """Record whether an effect of unknown outcome happened: `yes` finalizes it, `no` lets the next call act.

        An effect that is still marked as intended may be reconciled too, when its actor ran where nobody can look.
        """
        answer = parse_enum(EffectOutcome, happened, "happened")
        check_filled("by", by)
        changed = self._update(
            Effect,
            effect_id,
            {
                "state": EffectState.DONE if answer is EffectOutcome.YES else EffectState.CLEARED,
                **self._outcome(result),
                "reconciled_by": by,
                "note": reason,
                "settled_at": self._now() if answer is EffectOutcome.YES else None,
            },
            condition="(state = 'unknown' or state = 'intended')",
            note=f"{by}: it {'happened' if answer is EffectOutcome.YES else 'did not happen'}",
        )
        return self._filled(changed)

    @reads
    def get(self, effect_id: str) -> Effect:
        """Get an effect, with its result."""
        return self._filled(self._fetch(Effect, effect_id))

    @reads
    def open(self, run_id: str | None = None, *, limit: int = 20, after: str | None = None) -> Page[Effect]:
        """List the effects that are intended or of unknown outcome, oldest first."""
        where = Where(Effect, run_id=run_id)
        where.add("(state = 'intended' or state = 'unknown')")
        return self._page(Effect, where, order=("intended_at", "id"), limit=limit, after=after)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: EffectStateLike | None = None,
        tool: str | None = None,
        step: str | None = None,
        task_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Effect]:
        """List effects, newest first."""
        where = Where(Effect, run_id=run_id, state=state, tool=tool, step=step, task_id=task_id)
        return self._page(Effect, where, order=("intended_at", "id"), limit=limit, after=after, descending=True)
