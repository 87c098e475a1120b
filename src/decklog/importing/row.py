"""A row of a source. A mapping takes its columns one by one; leftover columns are kept with the record."""

import base64
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from math import isfinite
from typing import Any, TypeVar

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.records.values import to_json

E = TypeVar("E", bound=StrEnum)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_TYPES = (str, int, bool)
# Records accept 200 levels, and a value is nested in a payload.
_MOST_LEVELS = 190
_SPECIAL_FLOATS = ("nan", "inf", "-inf")


class Row:
    """One row of a source: its table, its id and its columns.

    A value that the field does not accept becomes a leftover, with the value used instead in `replacements`.
    An export restores it unless the record was changed since.
    """

    __slots__ = ("columns", "expected", "id", "leftovers", "replacements", "result_name", "stream", "table")

    def __init__(self, table: str, row_id: object, columns: dict[str, Any]) -> None:
        self.table = table
        self.id = str(row_id)
        self.columns = columns
        # Columns that are leftovers by design, and need no note in the report.
        self.expected: tuple[str, ...] = ()
        self.reset()

    def reset(self) -> None:
        """Forget the taken columns and the result of the row."""
        self.stream = "@desk"
        # The name of the resulting record or entry, if it differs from the row's id.
        self.result_name: str | None = None
        self.leftovers: dict[str, Any] = {name: value for name, value in self.columns.items() if value is not None}
        self.replacements: dict[str, Any] = {}

    def characters(self) -> int:
        """Return the length of all texts, which approximates the memory of the row."""
        return sum(len(value) for value in self.leftovers.values() if isinstance(value, (str, bytes)))

    def __str__(self) -> str:
        return f"{self.table} {self.id}"

    def take(self, name: str, default: Any = None) -> Any:
        """Take a column unchanged; return the default if it is null or missing."""
        self.leftovers.pop(name, None)
        value = self.columns.get(name)
        return default if value is None else value

    def fields(self, read: Callable[..., Any], names: str, *default: Any) -> dict[str, Any]:
        """Take several columns with one reader. A name is `field`, or `field=column` if they differ."""
        pairs = (name.partition("=") for name in names.split())
        return {field: read(column or field, *default) for field, _, column in pairs}

    def ignore(self, names: Iterable[str]) -> None:
        """Take columns without information."""
        for name in names:
            self.leftovers.pop(name, None)

    def replace(self, name: str, instead: Any) -> Any:
        """Keep a column as a leftover; the record gets the value `instead`."""
        self.leftovers[name] = self.columns.get(name)
        self.replacements[name] = instead
        return instead

    def _read(self, name: str, convert: Callable[[Any], Any], default: Any, instead: Any = None) -> Any:
        """Take a column and convert it; a value that can't be converted is a leftover, and the record gets the default."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.leftovers.pop(name, None)
        try:
            return convert(value)
        except (ValueError, OverflowError):
            self.replace(name, instead)
            return default

    def text(self, name: str, default: Any = None) -> Any:
        """Take a text; numbers become texts, and other values are leftovers."""
        value = self.columns.get(name)
        if isinstance(value, (int, float)):
            return self.replace(name, str(value))
        return self._read(name, _text, default, default)

    def integer(self, name: str, default: Any = None, *, low: int = 0, high: int = 2**63 - 1) -> Any:
        """Take a whole number within bounds."""
        return self._read(name, lambda value: _whole(value, low, high), default, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """Take a boolean, which is 0 or 1."""
        return bool(self._read(name, lambda value: bool((0, 1).index(value)), default, default))

    def one_of(self, name: str, kind: type[E], default: E | None) -> E | None:
        """Take a word of an enumeration."""
        found: E | None = self._read(name, kind, default, default and default.value)
        return found

    def required(self, name: str, kind: type[E]) -> E:
        """Take a word of an enumeration that a record requires."""
        value = self.take(name)
        if value not in kind._value2member_map_:
            raise Invalid(f"{name} is {value!r}, and only {', '.join(kind)} are known", field=name)
        return kind(value)

    def time(self, name: str, default: Any = None) -> Any:
        """Take a time; one without a zone is UTC."""
        return self._read(name, lambda value: from_text(str(value).strip()), default)

    def json(self, name: str, kinds: tuple[type, ...], default: Any = None) -> Any:
        """Take a JSON text of the types that a field accepts."""
        return self._read(name, lambda value: _check_kind(parse_json(value), kinds), default)

    def value(self, name: str, kinds: tuple[type, ...], default: Any = None) -> Any:
        """Take a value of a document, of the types that a field accepts."""
        return self._read(name, lambda value: _check_kind(value, kinds), default, default)

    def non_empty(self, names: Iterable[str]) -> dict[str, Any]:
        """Take the columns that are not empty; numbers that JSON lacks are leftovers."""
        found = {name: value for name in names if (value := self.take(name)) not in (None, "", [], {})}
        for name in [name for name, value in found.items() if _is_special_float(value)]:
            del found[name]
            self.replace(name, None)
        return found

    def text_list(self, name: str) -> list[str]:
        """Take a document's list of texts; numbers become texts, and a list with other values is a leftover."""
        found = self.value(name, (list,), [])
        written = [str(item) for item in found if isinstance(item, _TEXT_TYPES)]
        return list(found) if written == found else self.replace(name, written)

    def tags(self, name: str) -> list[str]:
        """Take a document's list of texts without blanks and duplicates."""
        tags = list(dict.fromkeys(filter(str.strip, self.text_list(name))))
        if tags != (self.columns.get(name) or []):
            self.replace(name, tags)
        return tags

    def json_texts(self, name: str) -> list[str] | None:
        """Take a JSON list of texts; numbers in it become texts."""
        found = self.json(name, (list,))
        if found is None:
            return None
        if not all(type(item) in _TEXT_TYPES for item in found):
            self.replace(name, None)
            return None
        texts = [str(item) for item in found]
        if texts != found:
            self.replace(name, to_json(texts))
        return texts

    def document(self, name: str, kinds: tuple[type, ...]) -> Any:
        """Take a JSON text of any type; other texts are taken as they are, and are leftovers."""
        found = self.json(name, kinds)
        if name not in self.replacements:
            return found
        raw = self.columns[name]
        self.replacements[name] = to_json(raw) if isinstance(raw, str) else None
        return raw

    def digest(self) -> str:
        """Return a digest of the columns, which changes with the row and differs between files."""
        return sha256(json.dumps(to_storable(self.columns), sort_keys=True).encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    if isinstance(value, str) and "\x00" not in value:
        return value
    raise ValueError


def _whole(value: Any, low: int, high: int) -> int:
    is_digits = isinstance(value, str) and len(value) < 20 and value.strip().lstrip("-").isdigit()
    number = int(value) if is_digits else value
    if type(number) is int and low <= number <= high:
        return number
    raise ValueError


def _check_kind(value: Any, kinds: tuple[type, ...]) -> Any:
    if isinstance(value, kinds):
        return value
    raise ValueError


def parse_json(text: object) -> object:
    """Parse JSON; return `NotImplemented` for anything else, because no JSON value equals it."""
    if not isinstance(text, str):
        return NotImplemented
    try:
        found: object = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return NotImplemented
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def to_storable(value: Any, depth: int = 0) -> Any:
    """Return a value of a source in a form that records and both engines accept.

    Sources contain bytes, `NaN`, NUL characters, half surrogate pairs and endless nesting.
    """
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return {"base64_text": base64.b64encode(text.encode()).decode()} if "\x00" in text else text
    if isinstance(value, (dict, list)):
        if depth >= _MOST_LEVELS:
            return json.dumps(value)
        if isinstance(value, list):
            return [to_storable(item, depth + 1) for item in value]
        return {_storable_name(name): to_storable(item, depth + 1) for name, item in value.items()}
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not isfinite(value):
        return {"float": repr(value)}
    return value


def _storable_name(name: object) -> str:
    return str(name).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_storable_json(value: Any) -> str:
    """Return any value of a source as JSON."""
    return to_json(to_storable(value))


def _is_special_float(value: Any) -> bool:
    """Return whether this represents `NaN` or an infinite number."""
    return isinstance(value, dict) and value.get("float") in _SPECIAL_FLOATS


def from_storable(value: Any, *, of_json: bool = False) -> Any:
    """Reverse `to_storable`. With `of_json`, leave objects that only look like encoded bytes: JSON has no bytes."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind == "float" and held in _SPECIAL_FLOATS:
        return float(held)
    if kind not in ("base64", "base64_text") or (of_json and kind == "base64"):
        return value
    try:
        found = base64.b64decode(held, validate=True)
        return found.decode() if kind == "base64_text" else found
    except (ValueError, TypeError):
        return value
