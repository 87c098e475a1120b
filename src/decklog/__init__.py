"""Decklog: the system of record for autonomous coding agents."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.app import Decklog
    from decklog.clock import Clock, ManualClock
    from decklog.errors import BudgetExceeded, Busy, Conflict, DecklogError, Denied, Invalid, LeaseLost, NotFound, SchemaTooNew
    from decklog.ids import Ids
    from decklog.records import Page, Record

__version__ = "0.1.0"

_HOMES = {
    "Decklog": "app",
    "Clock": "clock",
    "ManualClock": "clock",
    "Ids": "ids",
    "Page": "records",
    "Record": "records",
    "BudgetExceeded": "errors",
    "Busy": "errors",
    "Conflict": "errors",
    "DecklogError": "errors",
    "Denied": "errors",
    "Invalid": "errors",
    "LeaseLost": "errors",
    "NotFound": "errors",
    "SchemaTooNew": "errors",
}

__all__ = [
    "BudgetExceeded",
    "Busy",
    "Clock",
    "Conflict",
    "Decklog",
    "DecklogError",
    "Denied",
    "Ids",
    "Invalid",
    "LeaseLost",
    "ManualClock",
    "NotFound",
    "Page",
    "Record",
    "SchemaTooNew",
    "open",
]


def open(target: "Any", **settings: "Any") -> "Decklog":
    """Open a log: `Decklog.open` under its short name."""
    from decklog.app import Decklog

    return Decklog.open(target, **settings)


def __getattr__(name: str) -> "Any":
    # Names are imported when they are used: a command-line call pays only for what it needs.
    if name not in _HOMES:
        raise AttributeError(f"module 'decklog' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"decklog.{_HOMES[name]}"), name)
