"""Whether a log can be used, and what monitoring measures of it."""

from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.errors import DecklogError, Invalid

if TYPE_CHECKING:
    from decklog.log import Decklog

    # Name, type in Prometheus' terms, description, value.
    Gauge = tuple[str, str, str, float]

_SECONDS = 2.0
_TEXTS = {
    "up": "Whether the log could be read.",
    "entries_not_indexed": "Entries that are not in the text index yet.",
    "expired_leases": "Running tasks whose lease has expired.",
    "pool_connections": "Open connections to the server.",
    "pool_waiting": "Calls that wait for a connection now.",
    "pool_waits_total": "Calls that had to wait for a connection.",
    "pool_wait_seconds_total": "Time that calls waited for a connection.",
    "standby": "Whether the server is a read-only standby.",
    "replication_lag_seconds": "How far a standby is behind its primary.",
}
NAMES = tuple(_TEXTS)
_EXPIRED = "select count(*) from tasks where state = 'running' and leased_until < :now"


def check_ready(log: "Decklog") -> None:
    """Raise an error if the log can't be read, or has another schema than this Decklog needs."""
    with log.db.within(_SECONDS):
        found, needed = log.db.read(log.db.schema_versions)
    if found != needed:
        raise Invalid(f"the log has schema {found}; this Decklog needs {needed}", found=found, needed=needed)


def gauges(log: "Decklog") -> "list[Gauge]":
    """Measure the log; one that can't be read is not up and gives nothing else."""
    try:
        with log.db.within(_SECONDS):
            found = {"up": 1.0, **log.db.read(lambda: _measured(log))}
    except DecklogError:
        found = {"up": 0.0}
    return [(f"decklog_{name}", _kind(name), _TEXTS[name], value) for name, value in found.items()]


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


def _measured(log: "Decklog") -> dict[str, float]:
    expired = log.db.one(_EXPIRED, {"now": to_text(log.clock.steady())})
    return {
        "entries_not_indexed": log.db.not_indexed(),
        "expired_leases": expired[0] if expired else 0,
        **log.db.server_gauges(),
    }
