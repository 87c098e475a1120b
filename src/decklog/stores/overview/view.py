"""What overviews return, as JSON."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from decklog.core.clock import to_text


class View:
    """A result that is shown as JSON: its fields, and the properties that `shown` names."""

    # Not annotated: dataclasses would take it for a field.
    shown = ()  # type: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name)) for name in (*vars(self), *self.shown)}


def plain(value: Any) -> Any:
    """Return a value, or those of a list or an object, as JSON values."""
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value.as_dict() if hasattr(value, "as_dict") else value
