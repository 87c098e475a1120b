"""What a success criterion is, and when the evidence that it is met has gone stale."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from decklog.db.where import enum_of
from decklog.errors import Invalid
from decklog.records import Record
from decklog.stores.checks import filled, flag, mapping, moment, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Self

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_HEX = re.compile(r"[0-9a-f]{7,64}")
# What other tools call the same thing.
_OTHER_NAMES = {"text": "criterion", "required_for_completion": "required"}


class CriterionStatus(StrEnum):
    PENDING = "pending"
    MET = "met"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Criterion(Record):
    table = "criteria"
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

    @classmethod
    def from_row(cls, names: "Iterable[str]", row: "Iterable[Any]") -> "Self":
        record = super().from_row(names, row)
        files: Any = record.evidence_files
        if isinstance(files, list):
            record.__dict__["evidence_files"] = {file["path"]: file["sha256"] for file in files}
        return record

    def stale_because(self, commit: str | None, files: "Mapping[str, object]") -> str | None:
        """Say why the evidence no longer holds, given the present commit and files' digests; None when it may hold."""
        if commit is not None and self.evidence_commit is not None and not same_commit(commit, self.evidence_commit):
            return f"the commit is now {commit}, and the evidence is of {self.evidence_commit}"
        for path, digest in (self.evidence_files or {}).items():
            if path in files and files[path] != digest:
                return f"{path} {'is gone' if files[path] is None else 'has changed'} since the evidence was taken"
        return None

    def is_confirmed_by(self, commit: str | None, files: "Mapping[str, object]") -> bool:
        """Say whether every fact that the evidence is bound to is among the present ones, unchanged."""
        seen = (self.evidence_commit is None or commit is not None) and (self.evidence_files or {}).keys() <= files.keys()
        return seen and self.stale_because(commit, files) is None


def same_commit(one: str, other: str) -> bool:
    """Compare commits, of which either may be shortened to seven hexadecimal digits or more."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or (_HEX.fullmatch(short) is not None and long.startswith(short))


def files_column(files: "Mapping[str, str] | None") -> "list[dict[str, str]] | None":
    """Give bound files in the shape in which their column keeps them."""
    if files is None:
        return None
    # Not as an object with paths for keys: a file called `token` would pass for a token, and lose its digest to redaction.
    return [{"path": path, "sha256": files[path]} for path in sorted(files)]


def check_commit(name: str, value: object) -> str:
    """Check a commit's name."""
    commit = filled(name, value)
    if len(commit) > 200 or any(character.isspace() for character in commit):
        raise Invalid(f"{name} is one word, a commit's hash; got {value!r}", field=name)
    return commit


def check_files(name: str, value: object, *, may_be_gone: bool = False) -> dict[str, str | None]:
    """Check digests by path; null is a file that is gone, where that can be said."""
    digests = mapping(name, value)
    return {filled(f"a path in {name}", path): _digest(name, path, digests[path], may_be_gone) for path in digests}


def _digest(name: str, path: str, digest: object, may_be_gone: bool) -> str | None:
    if digest is None and may_be_gone:
        return None
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise Invalid(f"{name} gives each path its SHA-256, 64 hexadecimal digits; {path} has {digest!r}", field=name)
    return digest.lower()


def read_criteria(given: object) -> "list[dict[str, Any]]":
    """Read a list of criteria, each an object or just its text; null means not given."""
    if not isinstance(given, (list, tuple)) or not given:
        raise Invalid(f"criteria are a list of one or more texts or objects; got {given!r}", field="criteria")
    return [_read_criterion(item) for item in given]


def _read_criterion(item: object) -> "dict[str, Any]":
    left = {"criterion": item} if isinstance(item, str) else mapping("a criterion", item)
    named = {_OTHER_NAMES.get(name, name): value for name, value in left.items() if value is not None}
    return checked({"criterion": None} | named)


_CHECKS: "dict[str, Callable[[str, Any], Any]]" = {
    "criterion": filled,
    "status": lambda name, value: enum_of(CriterionStatus, value, name),
    "actual": text,
    "evidence": text,
    "required": flag,
    "created_at": moment,
}


def checked(given: "dict[str, Any]") -> "dict[str, Any]":
    """Check the fields that were given, and refuse those that a caller can't set."""
    unknown = given.keys() - _CHECKS.keys()
    if unknown:
        raise Invalid(f"a criterion takes {', '.join(_CHECKS)}; got {', '.join(sorted(unknown))}", field="criteria")
    return {name: _CHECKS[name](name, value) for name, value in given.items()}
