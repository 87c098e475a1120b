"""Criteria: what must be true for a run to succeed, with evidence that becomes stale when commits or files change."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import ForkRule
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.checks import check_boolean, check_filled, check_object, check_text, check_time
from decklog.stores.of_run import RunBound, check_open, check_run, given_fields, lock_run, next_number, not_found, parse_cleared

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_HEX = re.compile(r"[0-9a-f]{7,64}")
# Names of the same fields in other tools.
_OTHER_NAMES = {"text": "criterion", "required_for_completion": "required"}


class CriterionStatus(StrEnum):
    PENDING = "pending"
    MET = "met"
    BLOCKED = "blocked"
    FAILED = "failed"


CriterionStatusLike = CriterionStatus | Literal["pending", "met", "blocked", "failed"]


@dataclass(frozen=True, kw_only=True)
class Criterion(Record):
    """A success criterion of a run, with its evidence."""

    table = "criteria"
    fork = ForkRule("Evidence refers to commits and files, and stays valid.")
    identity = ("run_id", "number")

    run_id: str
    number: int
    criterion: str
    created_at: datetime
    updated_at: datetime
    status: CriterionStatus = CriterionStatus.PENDING
    actual: str | None = None
    evidence: str | None = None
    required: bool = True
    evidence_commit: str | None = None
    evidence_files: dict[str, str] | None = None
    is_stale: bool = False
    stale_reason: str | None = None

    def _decoded(self, name: str, raw: Any) -> Any:
        value = super()._decoded(name, raw)
        if name == "evidence_files" and isinstance(value, list):
            return {file["path"]: file["sha256"] for file in value}
        return value

    def stale_because(self, commit: str | None, files: Mapping[str, object]) -> str | None:
        """Return why the evidence is stale for the present commit and file digests; None if it may still be valid."""
        if commit is not None and self.evidence_commit is not None and not same_commit(commit, self.evidence_commit):
            return f"the commit is now {commit}, and the evidence is of {self.evidence_commit}"
        for path, digest in (self.evidence_files or {}).items():
            if path in files and files[path] != digest:
                return f"{path} {'is gone' if files[path] is None else 'has changed'} since the evidence was taken"
        return None

    def is_confirmed_by(self, commit: str | None, files: Mapping[str, object]) -> bool:
        """Return whether the present commit and files confirm everything that the evidence refers to."""
        seen = (self.evidence_commit is None or commit is not None) and (self.evidence_files or {}).keys() <= files.keys()
        return seen and self.stale_because(commit, files) is None


def same_commit(one: str, other: str) -> bool:
    """Return whether two commits are equal. Either may be abbreviated to seven or more hexadecimal digits."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or (_HEX.fullmatch(short) is not None and long.startswith(short))


def check_commit(name: str, value: object) -> str:
    """Check a commit id."""
    commit = check_filled(name, value)
    if len(commit) > 200 or any(character.isspace() for character in commit):
        raise Invalid(f"{name} is one word, a commit's hash; got {value!r}", field=name)
    return commit


def check_files(name: str, value: object, *, may_be_gone: bool = False) -> dict[str, str | None]:
    """Check digests by path. Null means a deleted file, if that is allowed."""
    digests = check_object(name, value)
    return {check_filled(f"a path in {name}", path): _parse_digest(name, path, digests[path], may_be_gone) for path in digests}


def _parse_digest(name: str, path: str, digest: object, may_be_gone: bool) -> str | None:
    if digest is None and may_be_gone:
        return None
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise Invalid(f"{name} gives each path its SHA-256, 64 hexadecimal digits; {path} has {digest!r}", field=name)
    return digest.lower()


def parse_criteria(given: object) -> list[dict[str, Any]]:
    """Parse a list of criteria, each an object or just its text; null means not given."""
    if not isinstance(given, (list, tuple)) or not given:
        raise Invalid(f"criteria are a list of one or more texts or objects; got {given!r}", field="criteria")
    found = []
    for item in given:
        left = {"criterion": item} if isinstance(item, str) else check_object("a criterion", item)
        named = {_OTHER_NAMES.get(name, name): value for name, value in left.items() if value is not None}
        found.append(check_criterion_fields({"criterion": None} | named))
    return found


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "criterion": check_filled,
    "status": lambda name, value: parse_enum(CriterionStatus, value, name),
    "actual": check_text,
    "evidence": check_text,
    "required": check_boolean,
    "created_at": check_time,
}


def check_criterion_fields(given: dict[str, Any]) -> dict[str, Any]:
    """Check the given fields. Raise Invalid for fields that callers can't set."""
    unknown = given.keys() - _CHECKS.keys()
    if unknown:
        raise Invalid(f"a criterion takes {', '.join(_CHECKS)}; got {', '.join(sorted(unknown))}", field="criteria")
    return {name: _CHECKS[name](name, value) for name, value in given.items()}


_OVER = "its criteria can't change any more"
_FRESH = {"is_stale": False, "stale_reason": None}
_UNBOUND = {"evidence_commit": None, "evidence_files": None, **_FRESH}


class Criteria(RunBound):
    """Stores the success criteria of runs. One is identified by its exact text, or by its number within the run."""

    records = (Criterion,)

    @writes
    def record(self, run_id: str, criteria: object) -> list[Criterion]:
        """Record success criteria of a run, all or none; criteria are a list of texts or of objects.

        An object has criterion and, optionally, status, actual, evidence, required and created_at. A known
        criterion stays unchanged, so sending a list again never undoes progress. A run that has ended gets no new ones.
        """
        wanted = parse_criteria(criteria)
        seen: set[str] = set()
        for fields in wanted:
            text = self._stored("text", fields["criterion"])
            if text in seen:
                raise Invalid(f"{text!r} is in the list twice; a run has each criterion once", field="criteria")
            seen.add(text)
        lock_run(self._db, run_id)
        return [self._record_one(run_id, fields) for fields in wanted]

    def _record_one(self, run_id: str, fields: dict[str, Any]) -> Criterion:
        present = self._seek_by_text(run_id, fields["criterion"])
        if present is None:
            check_open(self._db, run_id, _OVER)
            now = self._now()
            number = next_number(self._db, Criterion, run_id)
            fields = {"created_at": now, **fields}
            return self._add(Criterion, note=fields["criterion"], run_id=run_id, number=number, updated_at=now, **fields)
        if fields.get("required", present.required) != present.required:
            raise Conflict(
                f"criterion {present.criterion!r} is already recorded, {'' if present.required else 'not '}as required",
                hint="Change that with criteria update.",
                run_id=run_id,
                criterion=present.criterion,
            )
        return present.mark_already()

    @writes
    def update(
        self,
        run_id: str,
        criterion: str,
        *,
        status: CriterionStatusLike | None = None,
        actual: str | None = None,
        evidence: str | None = None,
        required: bool | None = None,
        clear: list[str] | None = None,
    ) -> Criterion:
        """Change the given fields of a criterion and keep the rest; `clear` names fields to empty.

        A status other than met removes the commit and files of its evidence. A criterion of an ended run can't be made open or
        required again.
        """
        fields = check_criterion_fields(given_fields(locals(), "run_id", "criterion", "clear"))
        fields |= parse_cleared(clear, ("actual", "evidence"), fields)
        if not fields:
            raise Invalid("no changes given", field="criterion")
        present = self._lock_and_get(run_id, criterion)
        if fields.get("status") is CriterionStatus.MET and present.is_stale:
            raise _stale_error(present)
        if fields.get("status", CriterionStatus.MET) is not CriterionStatus.MET:
            fields |= _UNBOUND
        if self._differing_fields(present, fields).keys() & {"status", "required"}:
            check_open(self._db, run_id, _OVER)
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
        """Mark a criterion as met, with evidence that may refer to a commit and to files by SHA-256 digest.

        A given commit or files replace the earlier ones and make the criterion fresh; other values stay. A stale criterion needs
        them.
        """
        fields = check_criterion_fields(given_fields({"evidence": evidence, "actual": actual}))
        bound = _parse_evidence(evidence_commit, evidence_files)
        present = self._lock_and_get(run_id, criterion)
        if present.is_stale and not bound:
            raise _stale_error(present)
        return self.set_fields(present, {"status": CriterionStatus.MET, **fields, **bound})

    @writes
    def observe(self, run_id: str, *, commit: str | None = None, files: dict[str, object] | None = None) -> list[Criterion]:
        """Compare evidence with the current commit and files, mark outdated criteria as stale, and list them.

        Files are SHA-256 digests by path, null for a deleted file. Evidence is fresh again only if its commit and all of its
        files are given unchanged.
        """
        facts = _parse_current_state(commit, files)
        lock_run(self._db, run_id)
        for present in self._list_all(run_id):
            self.set_fields(present, _staleness_change(present, *facts), note="evidence compared")
        return self._select_by(Criterion, order="number", run_id=run_id, is_stale=True)

    @reads
    def check(self, run_id: str, *, commit: str | None = None, files: dict[str, object] | None = None) -> list[Criterion]:
        """List a run's criteria as `observe` would mark them, without writing anything."""
        facts = _parse_current_state(commit, files)
        check_run(self._db, run_id)
        return [replace(criterion, **_staleness_change(criterion, *facts)) for criterion in self._list_all(run_id)]

    @reads
    def get(self, run_id: str, criterion: str) -> Criterion:
        """Get a criterion of a run by its text or its number."""
        # A criterion whose text is a number is found by its text first.
        by_number = (one for one in self._list_all(run_id) if str(one.number) == str(criterion))
        found = self._seek_by_text(run_id, str(criterion)) or next(by_number, None)
        if found is None:
            raise not_found(Criterion, run_id, criterion)
        return found

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        status: CriterionStatusLike | None = None,
        required: bool | None = None,
        is_stale: bool | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Criterion]:
        """List criteria in the order in which they were recorded, of one run or of all."""
        where = Where(Criterion)
        status = None if status is None else parse_enum(CriterionStatus, status, "status")
        where.equal(run_id=run_id, status=status, required=required, is_stale=is_stale)
        return self._page(Criterion, where, order=("run_id", "number"), limit=limit, after=after)

    @reads
    def open_required(self, run_id: str) -> list[Criterion]:
        """List the required criteria of a run that are not met or stale."""
        check_run(self._db, run_id)
        return [
            criterion
            for criterion in self._list_all(run_id)
            if criterion.required and (criterion.status is not CriterionStatus.MET or criterion.is_stale)
        ]

    def _lock_and_get(self, run_id: str, criterion: str) -> Criterion:
        lock_run(self._db, run_id)
        return self.get(run_id, criterion)

    def _seek_by_text(self, run_id: str, text: str) -> Criterion | None:
        return self._seek_by(Criterion, run_id=run_id, criterion=text)

    def _list_all(self, run_id: str) -> list[Criterion]:
        return self._select_by(Criterion, order="number", run_id=run_id)


def _parse_evidence(commit: str | None, files: dict[str, object] | None) -> dict[str, Any]:
    """Parse the commit and files that evidence refers to. They are replaced together."""
    if commit is None and files is None:
        return {}
    bound: dict[str, Any] = dict(_UNBOUND)
    if commit is not None:
        bound["evidence_commit"] = check_commit("evidence_commit", commit)
    if files is not None:
        if not files:
            raise Invalid("evidence_files names no file; leave it out or name one", field="evidence_files")
        digests = check_files("evidence_files", files)
        # Not an object with paths as keys: redaction would take a file called `token` for a token and remove its digest.
        bound["evidence_files"] = [{"path": path, "sha256": digests[path]} for path in sorted(digests)]
    return bound


def _parse_current_state(commit: str | None, files: dict[str, object] | None) -> tuple[str | None, dict[str, str | None]]:
    """Parse the current commit and files."""
    if commit is None and not files:
        raise Invalid("give the current state: a commit, or files with their digests", field="commit")
    seen = None if commit is None else check_commit("commit", commit)
    return seen, check_files("files", files or {}, may_be_gone=True)


def _staleness_change(criterion: Criterion, commit: str | None, files: Mapping[str, object]) -> dict[str, Any]:
    """Return the change of a criterion's staleness. The first reason is kept: it shows when the evidence became stale."""
    reason = criterion.stale_because(commit, files)
    if reason is not None and not criterion.is_stale:
        return {"is_stale": True, "stale_reason": reason}
    return _FRESH if criterion.is_stale and criterion.is_confirmed_by(commit, files) else {}


def _stale_error(criterion: Criterion) -> Conflict:
    return Conflict(
        f"criterion {criterion.criterion!r} is met by evidence that has gone stale: {criterion.stale_reason}",
        hint="Prove it again, and meet it with the present commit or files.",
        run_id=criterion.run_id,
        criterion=criterion.criterion,
    )
