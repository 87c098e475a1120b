"""The shape of an answer: without empty fields, or with chosen fields only."""

from collections.abc import Iterator
from typing import Any

# JSON of users, in which an empty value may mean something.
AS_IT_IS = frozenset(
    (
        *("arguments", "command", "config", "content", "details", "document", "error", "evidence_files", "extra", "facts"),
        *("findings", "inputs", "metadata", "notes", "payload", "result", "review_passes", "scope", "signature", "snapshot"),
        *("template_values", "value"),
    )
)


class OutputShape:
    """Which fields of records are shown; it remembers the omitted ones."""

    def __init__(self, *, brief: bool = False, fields: tuple[str, ...] = ()) -> None:
        self.brief = brief
        self.fields = fields
        self._left_out: set[str] = set()
        # Chosen fields that no record of the answer has. That is no error, since the command is done.
        self.warnings: list[str] = []

    @property
    def is_whole(self) -> bool:
        return not self.brief and not self.fields

    def of_envelope(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Return an envelope with its data in this shape, and what it omits."""
        shaped = {**envelope, "data": self.of_data(envelope["data"])} if "data" in envelope else dict(envelope)
        if self.warnings:
            shaped["warnings"] = [*shaped.get("warnings", ()), *self.warnings]
        if self.brief:
            shaped = {name: value for name, value in shaped.items() if name == "data" or not _is_empty(value)}
            if isinstance(shaped.get("error"), dict):
                shaped["error"] = _filled(shaped["error"])
        return {**shaped, "left_out": said} if (said := self.left_out) else shaped

    def of_data(self, data: Any) -> Any:
        """Return JSON values in this shape."""
        if self.fields:
            self._look_for_unknown(data)
            data = self._chosen(data)
        return self._without_empties(data) if self.brief else data

    @property
    def left_out(self) -> str | None:
        """Describe the omitted fields, and how to see them."""
        if not self._left_out:
            return None
        if self.fields:
            return f"{len(self._left_out)} other fields"
        return f"{len(self._left_out)} empty fields; --no-brief shows them"

    def _without_empties(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self._without_empties(item) for item in data]
        if not isinstance(data, dict):
            return data
        kept = _filled(data)
        self._left_out |= data.keys() - kept.keys()
        return {name: value if name in AS_IT_IS else self._without_empties(value) for name, value in kept.items()}

    def _chosen(self, data: Any) -> Any:
        """Keep the chosen fields of a record, or of all records in nested lists."""
        if isinstance(data, list):
            return [self._chosen(item) for item in data]
        if not isinstance(data, dict):
            return data
        if not any(name in data for name in self.fields):
            return {name: self._chosen(value) for name, value in data.items() if isinstance(value, (dict, list))}
        self._left_out |= data.keys() - set(self.fields)
        return {name: data[name] for name in self.fields if name in data}

    def _look_for_unknown(self, data: Any) -> None:
        known = dict.fromkeys(_names(data))
        for name in self.fields:
            if known and name not in known:
                from decklog.cli.meant import hint

                said = hint(name, known, f"There are: {', '.join(known)}")
                self.warnings.append(f"there is no field {name} in this answer. {said}")


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _filled(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not _is_empty(value)}


def _names(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
        for name, value in data.items():
            if name not in AS_IT_IS:
                yield from _names(value)
    elif isinstance(data, list):
        for item in data:
            yield from _names(item)
