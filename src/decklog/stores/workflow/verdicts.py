"""Verdicts: results of checks for a tree, and whether a tree has passed all required checks."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import ForkRule, Refer
from decklog.records.operations import reads, within_lease
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.checks import check_filled


class CheckOutcome(StrEnum):
    """The result of a check. Only `pass` lets a change through; `error` means that the check could not run."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    FLAKY = "flaky"
    NOT_RUN = "not-run"


CheckOutcomeLike = CheckOutcome | Literal["pass", "fail", "error", "flaky", "not-run"]


@dataclass(frozen=True, kw_only=True)
class CheckVerdict(Record):
    """The result of one check for one tree. It counts only for this tree, definition and environment."""

    table = "verdicts"
    is_work = True
    fork = ForkRule(
        "A verdict is about a tree, wherever it is met.", fields={"task_id": Refer("tasks"), "artifact_id": Refer("artifacts")}
    )

    id: str
    run_id: str
    name: str
    tree: str
    definition: str
    environment: str
    outcome: CheckOutcome
    created_at: datetime
    task_id: str | None = None
    exit_code: int | None = None
    findings: list[object] = field(default_factory=list)
    artifact_id: str | None = None
    duration_ms: int = 0

    @property
    def is_pass(self) -> bool:
        return self.outcome is CheckOutcome.PASS


class Verdicts(Store):
    """Keeps check results for trees, and decides whether a tree has passed."""

    records = (CheckVerdict,)

    def record(
        self,
        run_id: str,
        name: str,
        outcome: CheckOutcome,
        *,
        tree: str,
        definition: str,
        environment: str,
        task_id: str | None = None,
        exit_code: int | None = None,
        findings: list[object] | None = None,
        artifact_id: str | None = None,
        duration_ms: int = 0,
    ) -> CheckVerdict:
        """Record the result of a check; the newest of the same tree, definition and environment counts.

        No interface offers this: a verdict comes only from running a check.
        """
        bound = {"name": name, "tree": tree, "definition": definition, "environment": environment}
        for field_name, value in bound.items():
            check_filled(field_name, value)
        chosen = parse_enum(CheckOutcome, outcome, "outcome")
        whose = {"run_id": run_id, "task_id": task_id, "artifact_id": artifact_id}
        details = {"outcome": chosen, "exit_code": exit_code, "findings": findings or [], "duration_ms": duration_ms}
        given: dict[str, Any] = {**bound, **whose, **details}

        def add() -> CheckVerdict:
            note = f"{name}: {chosen} on {tree[:12]}"
            return self._add(CheckVerdict, note=note, id=self._ids.new("verdict"), created_at=self._now(), **given)

        return within_lease(self._db, add)

    @reads
    def known(self, run_id: str, tree: str, *, definition: str, environment: str) -> CheckVerdict | None:
        """Get the verdict that counts for a tree, a definition and an environment, or null."""
        where: dict[str, Any] = {"run_id": run_id, "tree": tree, "definition": definition, "environment": environment}
        return self._seek_by(CheckVerdict, order="created_at desc, id desc", **where)

    @reads
    def missing(self, run_id: str, tree: str, *, definitions: list[str], environment: str) -> list[str]:
        """List the definitions that a tree has not passed; an empty list means that it has passed all."""
        verdicts = [self.known(run_id, tree, definition=one, environment=environment) for one in definitions]
        return [one for one, found in zip(definitions, verdicts, strict=True) if found is None or not found.is_pass]

    @reads
    def get(self, verdict_id: str) -> CheckVerdict:
        """Get a verdict."""
        return self._fetch(CheckVerdict, verdict_id)

    @reads
    def find(
        self,
        run_id: str,
        *,
        tree: str | None = None,
        name: str | None = None,
        outcome: CheckOutcomeLike | None = None,
        task_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[CheckVerdict]:
        """List a run's verdicts, newest first."""
        where = Where(CheckVerdict, run_id=run_id, tree=tree, name=name, outcome=outcome, task_id=task_id)
        return self._page(CheckVerdict, where, order=("created_at", "id"), limit=limit, after=after, descending=True)
