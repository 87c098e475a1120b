"""bazinga-db's module over a Decklog log: the class, the validators and the names that others import."""

from typing import Any

from decklog.plugins.legacy.bazinga.base import (
    EXPECTED_SCHEMA_VERSION,
    GROUP_ID_PATTERN,
    MAX_INVESTIGATION_ITERATION,
    RESERVED_GROUP_IDS,
    VALID_INVESTIGATION_STATUSES,
    VALID_SESSION_STATUSES,
    CallRefused,
    DatabaseInitError,
    MigrationLockError,
    validate_complexity,
    validate_group_id,
    validate_investigation_inputs,
    validate_scope_global_or_group,
    validate_scope_group_only,
    validate_task_group_id,
)
from decklog.plugins.legacy.bazinga.database import BazingaDB
from decklog.plugins.legacy.bazinga.project import AutoLogger
from decklog.redaction import scan as scan_and_redact
from decklog.redaction.rules import shipped_rules

__all__ = [
    "EXPECTED_SCHEMA_VERSION",
    "GROUP_ID_PATTERN",
    "MAX_INVESTIGATION_ITERATION",
    "RESERVED_GROUP_IDS",
    "SECRET_PATTERNS",
    "VALID_INVESTIGATION_STATUSES",
    "VALID_SESSION_STATUSES",
    "AutoLogger",
    "BazingaDB",
    "CallRefused",
    "DatabaseInitError",
    "MigrationLockError",
    "scan_and_redact",
    "validate_complexity",
    "validate_group_id",
    "validate_investigation_inputs",
    "validate_scope_global_or_group",
    "validate_scope_group_only",
    "validate_task_group_id",
]


def __getattr__(name: str) -> Any:
    # Compile the patterns on first use: few callers need them, and compiling takes longer than a call.
    if name == "SECRET_PATTERNS":
        return [(rule.pattern, f"[redacted:{rule.label}]") for rule in shipped_rules()]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
