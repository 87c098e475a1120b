"""bazinga-db's module over a Decklog log: the class, the validators and the names that others import."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.auto_logger import AutoLogger
    from decklog.plugins.legacy.bazinga.base import CallRefused, DatabaseInitError, MigrationLockError
    from decklog.plugins.legacy.bazinga.database import BazingaDB
    from decklog.plugins.legacy.bazinga.redaction import SECRET_PATTERNS, scan_and_redact
    from decklog.plugins.legacy.bazinga.rules import (
        EXPECTED_SCHEMA_VERSION,
        GROUP_ID_PATTERN,
        MAX_INVESTIGATION_ITERATION,
        RESERVED_GROUP_IDS,
        VALID_INVESTIGATION_STATUSES,
        VALID_SESSION_STATUSES,
        validate_complexity,
        validate_group_id,
        validate_investigation_inputs,
        validate_scope_global_or_group,
        validate_scope_group_only,
        validate_task_group_id,
    )

_HOMES = {
    "AutoLogger": "auto_logger",
    "BazingaDB": "database",
    "DatabaseInitError": "base",
    "MigrationLockError": "base",
    "CallRefused": "base",
    "SECRET_PATTERNS": "redaction",
    "scan_and_redact": "redaction",
    "EXPECTED_SCHEMA_VERSION": "rules",
    "GROUP_ID_PATTERN": "rules",
    "MAX_INVESTIGATION_ITERATION": "rules",
    "RESERVED_GROUP_IDS": "rules",
    "VALID_INVESTIGATION_STATUSES": "rules",
    "VALID_SESSION_STATUSES": "rules",
    "validate_complexity": "rules",
    "validate_group_id": "rules",
    "validate_investigation_inputs": "rules",
    "validate_scope_global_or_group": "rules",
    "validate_scope_group_only": "rules",
    "validate_task_group_id": "rules",
}

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


def __getattr__(name: str) -> "Any":
    # A call of the program needs one noun; the class, which knows all of them, is imported by those who name it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
