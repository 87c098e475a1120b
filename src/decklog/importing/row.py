"""A row of the source, from which a mapping takes column by column. What it does not take is never lost: it is left over."""

import base64
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, TypeVar

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.importing.files import storable
from decklog.records.values import to_json

E = TypeVar("E", bound=StrEnum)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 2**63
_WRITABLE = {str, int, bool}
_NO_NUMBERS = ("nan", "inf", "-inf")


class Row:
    """One row: its table, its id there, and its columns.

    A column that holds what no field can is left over with the value used instead (`instead`), so that writing the row back
    restores it unless the record was changed since.
    """

    __slots__ = ("columns", "id", "instead", "left", "made", "stream", "table", "usual")

    def __init__(self, table: str, row_id: object, columns: dict[str, Any]) -> None:
        self.table = table
        self.id = str(row_id)
        self.columns = columns
        # Columns that are usually kept with the record, and need no note.
        self.usual: tuple[str, ...] = ()
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what was taken, and what the row became."""
        self.stream = "@desk"
        # Names what the row became, where the source's own id does not.
        self.made: str | None = None
        self.left: dict[str, Any] = {name: value for name, value in self.columns.items() if value is not None}
        self.instead: dict[str, Any] = {}

    def characters(self) -> int:
        """Return how long the texts are together, which is about how much memory the row takes."""
        return sum([len(value) for value in self.left.values() if value.__class__ is str or value.__class__ is bytes])

    def __str__(self) -> str:
        return f"{self.table} {self.id}"

    def take(self, name: str, default: Any = None) -> Any:
        """Take a column as it is; null or missing gives the default."""
        self.left.pop(name, None)
        value = self.columns.get(name)
        return default if value is None else value

    def fields(self, read: Callable[..., Any], names: str, *default: Any) -> dict[str, Any]:
        """Take several columns alike: `field`, or `field=column` where the names differ."""
        pairs = (name.partition("=") for name in names.split())
        return {field: read(column or field, *default) for field, _, column in pairs}

    def pass_over(self, names: Iterable[str]) -> None:
        """Take columns without information."""
        for name in names:
            self.left.pop(name, None)

    def replace(self, name: str, instead: Any) -> Any:
        """Leave a column over, and say what the record has in its place."""
        self.left[name] = self.columns.get(name)
        self.instead[name] = instead
        return instead

    def text(self, name: str, default: Any = None) -> Any:
        """Take a text; a number is written out, and what is no text is left over."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.left.pop(name, None)
        if value.__class__ is str and "\x00" not in value:
            return value
        return self.replace(name, str(value) if isinstance(value, (int, float)) else default)

    def shown(self, names: Iterable[str]) -> dict[str, Any]:
        """Take the columns that say something as they are; what is no number that a record can hold is left over."""
        found = {name: value for name in names if (value := self.take(name)) not in (None, "", [], {})}
        for name in [name for name, value in found.items() if is_no_number(value)]:
            del found[name]
            self.replace(name, None)
        return found

    def whole(self, name: str, default: Any = None, *, low: int = 0, high: int = _MOST - 1) -> Any:
        """Take a whole number within bounds; anything else is left over."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.left.pop(name, None)
        if value.__class__ is str and value.strip().lstrip("-").isdigit() and len(value) < 19:
            value = int(value)
        if value.__class__ is int and low <= value <= high:
            return value
        return self.replace(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """Take a truth; anything but 0 and 1 is left over."""
        value = self.take(name)
        if value is None:
            return default
        return bool(value) if value in (0, 1) else bool(self.replace(name, default))

    def one_of(self, name: str, kind: type[E], default: E | None) -> E | None:
        """Take a word of an enumeration; another word is left over."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.left.pop(name, None)
        known: E | None = kind._value2member_map_.get(value)  # type: ignore[assignment]
        if known is None:
            self.replace(name, default and default.value)
            return default
        return known

    def needed(self, name: str, kind: type[E]) -> E:
        """Take a word of an enumeration that a record can't do without."""
        value = self.take(name)
        if value not in kind._value2member_map_:
            raise Invalid(f"{name} is {value!r}, and only {', '.join(kind)} are known", field=name)
        return kind(value)

    def time(self, name: str, default: Any = None) -> Any:
        """Take a time; one without a zone is UTC, and what is no time is left over."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.left.pop(name, None)
        try:
            return from_text(str(value).strip())
        except (ValueError, OverflowError):
            self.replace(name, None)
            return default

    def json(self, name: str, kinds: tuple[type, ...], default: Any = None) -> Any:
        """Take a JSON text of the kinds a field can hold; anything else is left over."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.left.pop(name, None)
        parsed = parsed_json(value)
        if not isinstance(parsed, kinds):
            self.replace(name, None)
            return default
        return parsed

    def value(self, name: str, kinds: tuple[type, ...], default: Any = None) -> Any:
        """Take what a document holds as it is, of the kinds that a field can hold; anything else is left over."""
        value = self.columns.get(name)
        if value is None:
            return default
        self.left.pop(name, None)
        return value if isinstance(value, kinds) else self.replace(name, default)

    def words(self, name: str) -> list[str]:
        """Take a document's list of texts; numbers in it are written out, and a list that holds anything else is left over."""
        found = self.value(name, (list,), [])
        if {*map(type, found)} <= {str}:
            return list(found)
        written = [str(item) for item in found if item.__class__ in _WRITABLE]
        self.replace(name, written)
        return written

    def tags(self, name: str) -> list[str]:
        """Take a document's list of texts, each once and none of them blank; a list that held more is left over."""
        tags = list(dict.fromkeys(filter(str.strip, self.words(name))))
        if tags != (self.columns.get(name) or []):
            self.replace(name, tags)
        return tags

    def texts(self, name: str) -> list[str] | None:
        """Take a JSON list of texts; numbers in it are written out, and the list is left over as it was."""
        found = self.json(name, (list,))
        if found is None:
            return None
        kinds = {*map(type, found)}
        if not kinds <= _WRITABLE:
            self.replace(name, None)
            return None
        texts = [str(item) for item in found]
        if not kinds <= {str}:
            self.replace(name, to_json(texts))
        return texts

    def document(self, name: str, kinds: tuple[type, ...]) -> Any:
        """Take a JSON text of any kind that a document may be; what is no JSON is a text, and is left over as it was."""
        found = self.json(name, kinds)
        if name not in self.instead:
            return found
        raw = self.columns[name]
        self.instead[name] = to_json(raw) if isinstance(raw, str) else None
        return raw

    def as_json(self) -> str:
        """Write the columns down in one spelling."""
        return to_json(plain(self.columns))

    def digest(self) -> str:
        """Return a digest of the columns, which changes with the row and differs between files."""
        return sha256(json.dumps(plain(self.columns), sort_keys=True).encode()).hexdigest()[:16]


def parsed_json(text: object) -> object:
    """Read JSON; what is none gives the exact object `NotImplemented`, which no kind of value is."""
    if not isinstance(text, str):
        return NotImplemented
    try:
        found: object = json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return NotImplemented
    return found


def no_constant(name: str) -> object:
    """Refuse what JSON does not have."""
    raise ValueError(f"{name} is no JSON")


def plain(value: Any) -> Any:
    """Return a row's values in a form that JSON and every engine can hold."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, str) and "\x00" in value:
        return {"base64_text": base64.b64encode(value.encode()).decode()}
    if isinstance(value, float) and not abs(value) < float("inf"):
        return {"float": repr(value)}
    return value


def kept_columns(columns: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the columns of a document in a form that a record can hold, and write them down.

    Programs write `NaN`, which is no JSON, numbers beyond all bounds, and values that are nested without end.
    """
    try:
        return columns, to_json(columns)
    except Invalid:
        found = {name: _kept(value) for name, value in columns.items()}
        return found, to_json(found)


def kept_json(value: Any) -> str:
    """Write any value of a document as JSON."""
    try:
        return to_json(value)
    except Invalid:
        return to_json(_kept(value))


def kept_value(value: Any) -> Any:
    """Return a document's value as an import of it has it."""
    try:
        to_json(value).encode()
    except (Invalid, UnicodeEncodeError):
        return _kept(value)
    return value


def _kept(value: Any) -> Any:
    try:
        found = plain(storable(value))
        # With room for the levels around it.
        to_json([[[[[[found]]]]]])
    except (Invalid, RecursionError):
        return json.dumps(value)
    return found


def is_no_number(value: Any) -> bool:
    """Return whether this represents `NaN` or an infinite number."""
    return isinstance(value, dict) and value.get("float") in _NO_NUMBERS


def unplain(value: Any, *, of_json: bool = False) -> Any:
    """Give back what `plain` was given. JSON holds no bytes, and may itself have an object that only looks so."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind == "float" and held in _NO_NUMBERS:
        return float(held)
    if kind not in ("base64", "base64_text") or (of_json and kind == "base64"):
        return value
    try:
        found = base64.b64decode(held, validate=True)
        return found.decode() if kind == "base64_text" else found
    except (ValueError, TypeError):
        return value
