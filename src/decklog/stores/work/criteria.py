"""Criteria: what must be true for a run to be a success, and evidence that notices when the world moved on."""

from dataclasses import replace

from decklog.errors import Conflict, Invalid
from decklog.operations import reads, writes
from decklog.records import Page
from decklog.stores.base import Where, enum_of
from decklog.stores.numbers import next_number
from decklog.stores.of_run import RunBound, cleared, given_of, missing
from decklog.stores.work.criterion import (
    Criterion,
    CriterionStatus,
    check_commit,
    check_files,
    checked,
    files_column,
    read_criteria,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Criteria", "Criterion", "CriterionStatus"]

_FRESH = {"is_stale": False, "stale_reason": None}
_UNBOUND = {"evidence_commit": None, "evidence_files": None, **_FRESH}


class Criteria(RunBound):
    """Keeps the success criteria of every run. One is named by its exact text, or by its number within the run."""

    records = (Criterion,)

    @writes
    def record(self, run_id: str, criteria: object) -> list[Criterion]:
        """Record success criteria of a run, all or none; criteria are a list of texts or of objects.

        An object has criterion and, optionally, status, actual, evidence, required and created_at. One that is recorded
        already stays as it is now: sending a list again never undoes progress.
        """
        wanted = read_criteria(criteria)
        seen: set[str] = set()
        for fields in wanted:
            text = self.as_stored(fields["criterion"])
            if text in seen:
                raise Invalid(f"{text!r} is in the list twice; a run has each criterion once", field="criteria")
            seen.add(text)
        self.hold(run_id)
        return [self._record_one(run_id, fields) for fields in wanted]

    def _record_one(self, run_id: str, fields: "dict[str, Any]") -> Criterion:
        present = self._by_text(run_id, fields["criterion"])
        if present is None:
            now = self.now()
            number = next_number(self, Criterion, run_id)
            fields = {"created_at": now, **fields}
            return self.add(Criterion, note=fields["criterion"], run_id=run_id, number=number, updated_at=now, **fields)
        if fields.get("required", present.required) != present.required:
            raise Conflict(
                f"criterion {present.criterion!r} is recorded already, {'' if present.required else 'not '}as required",
                hint="Change that with criteria update.",
                run_id=run_id,
                criterion=present.criterion,
            )
        return present.marked_already()

    @writes
    def update(
        self,
        run_id: str,
        criterion: str,
        *,
        status: CriterionStatus | None = None,
        actual: str | None = None,
        evidence: str | None = None,
        required: bool | None = None,
        clear: list[str] | None = None,
    ) -> Criterion:
        """Change what is given of a criterion and keep the rest; `clear` names fields to empty.

        A status other than met lets go of the commit and files that the evidence was bound to.
        """
        fields = checked(given_of(locals(), "run_id", "criterion", "clear"))
        fields |= cleared(clear, ("actual", "evidence"), fields)
        if not fields:
            raise Invalid("nothing to change was given", field="criterion")
        present = self._held(run_id, criterion)
        if fields.get("status") is CriterionStatus.MET and present.is_stale:
            raise _stale(present)
        if fields.get("status", CriterionStatus.MET) is not CriterionStatus.MET:
            fields |= _UNBOUND
        return self.set_fields(present, fields)

    @writes
    def meet(
        self,
        run_id: str,
        criterion: str,
        *,
        evidence: str | None = None,
        actual: str | None = None,
        evidence_commit: str | None = None,
        evidence_files: dict[str, object] | None = None,
    ) -> Criterion:
        """Mark a criterion as met, with evidence that may be bound to a commit and to files' SHA-256 digests by path.

        A commit or files replace those that were bound before and make the criterion fresh; what is not given stays. One
        that has gone stale needs them.
        """
        fields = checked(given_of({"evidence": evidence, "actual": actual}))
        bound = _binding(evidence_commit, evidence_files)
        present = self._held(run_id, criterion)
        if present.is_stale and not bound:
            raise _stale(present)
        return self.set_fields(present, {"status": CriterionStatus.MET, **fields, **bound})

    @writes
    def observe(self, run_id: str, *, commit: str | None = None, files: dict[str, object] | None = None) -> list[Criterion]:
        """Say what is true now, mark criteria whose evidence is of something else as stale, and list the stale ones.

        Files are SHA-256 digests by path, null for one that is gone. What is not named is left open: evidence is fresh
        again only when all that it is bound to is seen unchanged.
        """
        facts = _facts(commit, files)
        self.hold(run_id)
        for present in self._bound(run_id):
            self.set_fields(present, _staleness(present, *facts), note="what it rests on was looked at")
        return self.select(
            Criterion, "select * from criteria where run_id = :run_id and is_stale = 1 order by number", run_id=run_id
        )

    @reads
    def check(self, run_id: str, *, commit: str | None = None, files: dict[str, object] | None = None) -> list[Criterion]:
        """List a run's criteria as they would be if this were observed now, without writing it."""
        facts = _facts(commit, files)
        self.expect_run(run_id)
        return [replace(criterion, **_staleness(criterion, *facts)) for criterion in self._all(run_id)]

    @reads
    def get(self, run_id: str, criterion: str) -> Criterion:
        """Get a criterion of a run by its text or its number."""
        return self._get(run_id, criterion)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        status: CriterionStatus | None = None,
        required: bool | None = None,
        is_stale: bool | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page:
        """List criteria in the order in which they were recorded, of one run or of all."""
        where = Where(Criterion)
        status = None if status is None else enum_of(CriterionStatus, status, "status")
        where.equal(run_id=run_id, status=status, required=required, is_stale=is_stale)
        return self.page(Criterion, where, order=("run_id", "number"), limit=limit, after=after)

    @reads
    def open_required(self, run_id: str) -> list[Criterion]:
        """List the required criteria of a run that are not met, or whose evidence has gone stale."""
        self.expect_run(run_id)
        return [
            criterion
            for criterion in self._all(run_id)
            if criterion.required and (criterion.status is not CriterionStatus.MET or criterion.is_stale)
        ]

    def shaped(self, fields: "Mapping[str, Any]") -> "dict[str, Any]":
        """Give fields in the shape in which their columns keep them."""
        return {name: files_column(value) if name == "evidence_files" else value for name, value in fields.items()}

    def _held(self, run_id: str, criterion: str) -> Criterion:
        self.hold(run_id)
        return self._get(run_id, criterion)

    def _get(self, run_id: str, criterion: str) -> Criterion:
        # A criterion whose text is a number is found by it first.
        found = self._by_text(run_id, str(criterion)) or self._by_number(run_id, str(criterion))
        if found is None:
            raise missing(Criterion, run_id, criterion)
        return found

    def _by_text(self, run_id: str, text: str) -> Criterion | None:
        sql = "select * from criteria where run_id = :run_id and criterion = :text"
        found = self.select(Criterion, sql, run_id=run_id, text=text)
        return found[0] if found else None

    def _by_number(self, run_id: str, text: str) -> Criterion | None:
        return next((criterion for criterion in self._all(run_id) if str(criterion.number) == text), None)

    def _all(self, run_id: str) -> list[Criterion]:
        return self.select(Criterion, "select * from criteria where run_id = :run_id order by number", run_id=run_id)

    def _bound(self, run_id: str) -> list[Criterion]:
        sql = """
            select * from criteria
             where run_id = :run_id
               and (evidence_commit is not null or evidence_files is not null)
             order by number
        """
        return self.select(Criterion, sql, run_id=run_id)


def _binding(commit: str | None, files: "dict[str, object] | None") -> "dict[str, Any]":
    """Read what evidence is bound to; commit and files are one proof, so they are replaced together."""
    if commit is None and files is None:
        return {}
    bound: dict[str, Any] = dict(_UNBOUND)
    if commit is not None:
        bound["evidence_commit"] = check_commit("evidence_commit", commit)
    if files is not None:
        bound["evidence_files"] = check_files("evidence_files", files)
        if not files:
            raise Invalid("evidence_files names no file; leave it out or name one", field="evidence_files")
    return bound


def _facts(commit: str | None, files: "dict[str, object] | None") -> "tuple[str | None, dict[str, str | None]]":
    """Read what a caller says is true now."""
    if commit is None and not files:
        raise Invalid("say what is true now: a commit, or files with their digests", field="commit")
    seen = None if commit is None else check_commit("commit", commit)
    return seen, check_files("files", files or {}, may_be_gone=True)


def _staleness(criterion: Criterion, commit: str | None, files: "Mapping[str, object]") -> "dict[str, Any]":
    """Say how facts change a criterion's staleness. The first reason stays: it tells when the evidence was lost."""
    reason = criterion.stale_because(commit, files)
    if reason is not None and not criterion.is_stale:
        return {"is_stale": True, "stale_reason": reason}
    return _FRESH if criterion.is_stale and criterion.is_confirmed_by(commit, files) else {}


def _stale(criterion: Criterion) -> Conflict:
    return Conflict(
        f"criterion {criterion.criterion!r} is met by evidence that has gone stale: {criterion.stale_reason}",
        hint="Prove it again, and meet it with the present commit or files.",
        run_id=criterion.run_id,
        criterion=criterion.criterion,
    )
