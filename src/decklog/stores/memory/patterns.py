"""Error patterns: recurring errors, their solutions, and the confidence in them."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import to_text
from decklog.db.where import Where, page_size, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Record
from decklog.stores.base import Store
from decklog.stores.checks import check_filled, check_integer, check_share
from decklog.stores.memory.text import classic_message, message_pattern, pattern_hash

DEFAULT_TTL_DAYS = 90
INJECTABLE = 0.3
_LONGER_SOLUTION = """
case when length(excluded.solution) > length(patterns.solution) then excluded.solution else patterns.solution end
"""


class PatternOutcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"


PatternOutcomeLike = PatternOutcome | Literal["success", "failure"]


@dataclass(frozen=True, kw_only=True)
class ErrorPattern(Record):
    """An error that came up before, and what helped."""

    table = "patterns"
    identity = ("pattern_hash", "project")
    home = "@memory"

    pattern_hash: str
    project: str
    signature: dict[str, object]
    solution: str
    confidence: float = 0.5
    occurrences: int = 1
    lang: str | None = None
    ttl_days: int = DEFAULT_TTL_DAYS
    created_at: datetime
    last_seen_at: datetime

    @property
    def is_injectable(self) -> bool:
        """Whether its solution is reliable enough to offer it to an agent."""
        return self.confidence >= INJECTABLE


class Patterns(Store):
    """Counts errors under a signature that every occurrence shares, project by project."""

    records = (ErrorPattern,)

    @writes
    def record(
        self,
        project: str,
        error_type: str,
        message: str,
        solution: str,
        *,
        lang: str | None = None,
        context_hints: list[str] | None = None,
        stack_pattern: list[str] | None = None,
        ttl_days: int = DEFAULT_TTL_DAYS,
        classic: bool = False,
    ) -> ErrorPattern:
        """Record an error and its solution. A repeated error is counted, and a longer solution replaces a shorter one.

        Paths, numbers, ids and line numbers do not distinguish errors. With `classic` the message is normalized as in bazinga-db,
        so that the hash is the same; an error that is known under such a hash is counted there.
        """
        _check(project, solution, ttl_days)
        signature = self._signature(error_type, message, context_hints, stack_pattern)
        if not classic and self._seek(ErrorPattern, (pattern_hash(*_identity(signature)), project)) is None:
            signature["message_pattern"] = message_pattern(self._clean("message", message))
        now = self._now()
        return self._upsert(
            ErrorPattern,
            {
                "pattern_hash": pattern_hash(*_identity(signature)),
                "project": project,
                "signature": signature,
                "solution": solution,
                "confidence": 0.5,
                "occurrences": 1,
                "lang": lang,
                "ttl_days": ttl_days,
                "created_at": now,
                "last_seen_at": now,
            },
            keep=("signature", "confidence", "lang", "ttl_days", "created_at"),
            update={"occurrences": "patterns.occurrences + 1", "solution": _LONGER_SOLUTION},
            note=f"{error_type}: {message}",
        )

    def _signature(self, error_type: str, message: str, hints: list[str] | None, stack: list[str] | None) -> dict[str, Any]:
        """Build the signature from values that are redacted one by one before hashing.

        So no hash has a secret, an error with two different secrets is one pattern, and the stored JSON stays valid.
        """
        return {
            "error_type": self._clean("error_type", error_type).strip() or "Unknown",
            "message_pattern": classic_message(self._clean("message", message)),
            "context_hints": [self._clean("context_hints", hint) for hint in hints or []],
            "stack_pattern": [self._clean("stack_pattern", frame) for frame in stack or []],
        }

    def _clean(self, name: str, text: str) -> str:
        return self._db.values.bind_text(name, text)[0]

    @writes
    def judge(self, pattern_hash: str, project: str, outcome: PatternOutcomeLike) -> ErrorPattern:
        """Record whether a solution worked: success adds 0.1 to its confidence (at most 1.0), failure takes 0.2 (least 0.1)."""
        worked = parse_enum(PatternOutcome, outcome, "outcome") is PatternOutcome.SUCCESS
        key = (pattern_hash, project)
        known = self._fetch_for_update(ErrorPattern, key).confidence
        moved = min(known + 0.1, 1.0) if worked else max(known - 0.2, 0.1)
        # Binary fractions accumulate errors; round to four decimal places.
        return self._update(ErrorPattern, key, {"confidence": round(moved, 4)}, note=outcome)

    @reads
    def get(self, pattern_hash: str, project: str) -> ErrorPattern:
        """Get one pattern of a project."""
        return self._fetch(ErrorPattern, (pattern_hash, project))

    @reads
    def find(
        self,
        project: str,
        *,
        lang: str | None = None,
        min_confidence: float = 0.7,
        include_expired: bool = False,
        limit: int = 5,
    ) -> list[ErrorPattern]:
        """List a project's patterns, the surest first, then the most frequent."""
        check_share("min_confidence", min_confidence)
        where = Where(ErrorPattern, project=project, lang=lang)
        where.add("confidence >= :least", least=float(min_confidence))
        if not include_expired:
            expired, bound = self._expired()
            where.add(f"not ({expired})", **bound)
        order = "confidence desc, occurrences desc, pattern_hash"
        return self._list(ErrorPattern, where, order=order, limit=page_size(limit))

    @writes
    def cleanup(self, *, project: str | None = None) -> int:
        """Remove the patterns that expired, of one project or of all; say how many there were."""
        expired, bound = self._expired()
        where = Where(ErrorPattern, project=project)
        where.add(f"({expired})", **bound)
        removed = self._remove(ErrorPattern, f"delete from patterns {where.sql} returning *", note="expired", **where.bound)
        return len(removed)

    def _expired(self) -> tuple[str, dict[str, Any]]:
        """Build the condition for expired patterns, with one clause for each lifetime in use."""
        _, rows = self._db.rows("select distinct ttl_days from patterns order by ttl_days", {})
        now = self._now()
        clauses = [f"(ttl_days = {days} and last_seen_at < :oldest_{days})" for (days,) in rows]
        bound = {f"oldest_{days}": to_text(_oldest(now, days)) for (days,) in rows}
        return " or ".join(clauses) or "1 = 0", bound

    @writes
    def adopt(
        self,
        pattern_hash: str,
        project: str,
        signature: dict[str, object],
        solution: str,
        *,
        created_at: datetime,
        last_seen_at: datetime,
        confidence: float = 0.5,
        occurrences: int = 1,
        lang: str | None = None,
        ttl_days: int = DEFAULT_TTL_DAYS,
    ) -> ErrorPattern:
        """Take over a pattern from another system as it is; a known one comes back as it is."""
        _check(project, solution, ttl_days)
        return self._find_or_add(
            lambda: self._seek(ErrorPattern, (pattern_hash, project)),
            lambda: self._add(
                ErrorPattern,
                note="imported",
                pattern_hash=pattern_hash,
                project=project,
                signature=signature,
                solution=solution,
                confidence=float(confidence),
                occurrences=occurrences,
                lang=lang,
                ttl_days=ttl_days,
                created_at=created_at,
                last_seen_at=last_seen_at,
            ),
        )


def _check(project: str, solution: str, ttl_days: int) -> None:
    check_filled("project", project)
    check_filled("solution", solution)
    check_integer("ttl_days", ttl_days, low=1)


def _identity(signature: dict[str, Any]) -> tuple[str, str, list[str]]:
    return signature["error_type"], signature["message_pattern"], signature["context_hints"]


def _oldest(now: datetime, ttl_days: int) -> datetime:
    """Return the start of the oldest day whose patterns are not expired."""
    return datetime.combine(now.date(), time(), UTC) - timedelta(days=ttl_days)
