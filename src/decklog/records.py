"""Records: frozen dataclasses to rows and back, and the one place where values are checked and redacted."""

import json
import re
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from types import UnionType

from decklog import redact
from decklog.clock import from_text, to_text
from decklog.errors import Invalid, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Self

DEFAULT_LIMIT_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 200
# An escaped NUL, but not an escaped backslash before the letters u0000.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_NAME_LENGTH = 64
_NAMES_KEPT = 4096

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode


def to_json(value: "Any") -> str:
    """Write a value as canonical JSON: sorted keys, no blanks, text as it is."""
    try:
        text = _encode(value)
    except RecursionError:
        raise Invalid(f"this JSON value is nested too deeply (more than {MAX_DEPTH} levels); flatten it") from None
    except (TypeError, ValueError) as problem:
        raise Invalid(f"this value can't be written as JSON: {problem}") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise Invalid(f"this JSON value is nested too deeply (more than {MAX_DEPTH} levels); flatten it")
    return text


def _depth(value: "Any") -> int:
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list, tuple))
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return depth


from_json = json.loads


class Values:
    """Turns Python values into column values: checks them, and takes the secrets out."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        # Ids and names come again and again; what was found clean once is not looked through again.
        self._clean: set[str] = set()

    def bind(self, parameters: "Mapping[str, Any]") -> "tuple[dict[str, Any], bool]":
        """Make every parameter fit for a column; also say whether anything was redacted."""
        bound: dict[str, Any] = {}
        redacted = False
        for name, value in parameters.items():
            if value is None or type(value) is int:
                bound[name] = value
            else:
                bound[name], changed = self.one(name, value)
                redacted = redacted or changed
        return bound, redacted

    def one(self, name: str, value: "Any") -> "tuple[Any, bool]":
        kind = type(value)
        if kind is str:
            return self.text(name, value)
        if value is None or kind is int:
            return value, False
        if isinstance(value, Enum):
            return value.value, False
        if isinstance(value, datetime):
            return self._time(name, value), False
        if kind is bool:
            return int(value), False
        if isinstance(value, bytes):
            self._fits(name, len(value))
            return value, False
        if isinstance(value, (dict, list, tuple)):
            return self.json(name, value)
        if kind is float:
            if value != value or value in (float("inf"), float("-inf")):
                raise Invalid(f"{name} is {value}, which is not a number a record can hold", field=name)
            return value, False
        raise Invalid(f"{name} is a {kind.__name__}, which a record can't hold", field=name)

    def text(self, name: str, value: str) -> tuple[str, bool]:
        """Check and redact one text."""
        if value in self._clean:
            return value, False
        if not value.isascii():
            self._unicode(name, value)
        if "\x00" in value:
            raise Invalid(f"{name} contains a NUL byte; remove it or send it as base64", field=name)
        if len(value) > self.limit_bytes // 4:
            self._fits(name, len(value.encode()))
        if redact.may_hold_secret(value):
            clean, changed = redact.scan(value)
            if changed:
                return clean, True
        if len(value) <= _NAME_LENGTH:
            if len(self._clean) >= _NAMES_KEPT:
                self._clean.clear()
            self._clean.add(value)
        return value, False

    def json(self, name: str, value: "Any") -> tuple[str, bool]:
        """Check and redact one JSON value: its strings are redacted, never its text."""
        text = to_json(value)
        if "\\u0000" in text and _NUL.search(text):
            raise Invalid(f"{name} contains a NUL byte; remove it or send it as base64", field=name)
        if not text.isascii():
            self._unicode(name, text)
        if len(text) > self.limit_bytes // 4:
            self._fits(name, len(text.encode()))
        if redact.may_hold_secret(text):
            clean, changed = redact.scan_value(value)
            if changed:
                return to_json(clean), True
        return text, False

    def _time(self, name: str, value: datetime) -> str:
        try:
            return to_text(value)
        except ValueError as problem:
            raise Invalid(f"{name}: {problem}", field=name) from None

    def _unicode(self, name: str, value: str) -> None:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Invalid(
                f"{name} contains half of a surrogate pair, which is not text; decode it with errors='replace'",
                field=name,
            ) from None

    def _fits(self, name: str, size: int) -> None:
        if size > self.limit_bytes:
            raise TooLarge(
                f"{name} has {size} bytes and the limit is {self.limit_bytes}",
                hint="Store it as an artifact's file, or open the log with a higher limit_bytes.",
                field=name,
                size=size,
                limit=self.limit_bytes,
            )


def _plain(annotation: "Any") -> "Any":
    """Give the type behind `X | None`."""
    if isinstance(annotation, UnionType):
        inner = [part for part in annotation.__args__ if part is not type(None)]
        return inner[0] if len(inner) == 1 else object
    return annotation


def _decoder(annotation: "Any") -> "Callable[[Any], Any] | None":
    plain = _plain(annotation)
    origin = getattr(plain, "__origin__", plain)
    if origin is datetime:
        return from_text
    if origin is bool:
        return bool
    if isinstance(origin, type) and issubclass(origin, Enum):
        return origin
    if origin in (dict, list, tuple, object):
        return from_json
    return None


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row as it was read. `table` names its table, `identity` its primary key, `home` its stream when it has no run."""

    # Not annotated in the body: dataclasses would take them for fields.
    table = ""
    identity = ("id",)  # type: tuple[str, ...]
    home = None  # type: str | None
    # False for what a fork of its run must not have twice, such as money that was spent.
    copied_by_fork = True
    # True on what an idempotent verb gives back when there was nothing left to do.
    already = False

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Name the fields, which are the columns."""
        cached: tuple[str, ...] | None = cls.__dict__.get("_columns")
        if cached is None:
            cached = tuple(field.name for field in fields(cls))
            cls._columns = cached  # type: ignore[attr-defined]
        return cached

    @classmethod
    def _decoders(cls) -> "list[tuple[str, Callable[[Any], Any]]]":
        cached: list[tuple[str, Callable[[Any], Any]]] | None = cls.__dict__.get("_decoding")
        if cached is None:
            found = ((field.name, _decoder(field.type)) for field in fields(cls))
            cached = [(name, decode) for name, decode in found if decode is not None]
            cls._decoding = cached  # type: ignore[attr-defined]
        return cached

    @classmethod
    def from_row(cls, names: "Iterable[str]", row: "Iterable[Any]") -> "Self":
        """Make the record from a row of its table; columns it does not name are left out."""
        record = cls.__new__(cls)
        # Frozen dataclasses set each field through object.__setattr__; filling the dictionary is five times cheaper.
        own = record.__dict__
        own.update(zip(names, row, strict=True))
        for name, decode in cls._decoders():
            value = own.get(name)
            if value is not None:
                own[name] = decode(value)
        if len(own) != len(cls.columns()):
            cls._fit(own)
        return record

    @classmethod
    def _fit(cls, own: "dict[str, Any]") -> None:
        """Drop what is not a field, and fill in fields that a table of another version does not have."""
        for name in [name for name in own if name not in cls.columns()]:
            del own[name]
        for name in cls.columns():
            own.setdefault(name, None)

    @classmethod
    def id_of(cls, values: "Mapping[str, Any]") -> str:
        """Give the key as one text: itself, or a JSON list when it has several parts."""
        if len(cls.identity) == 1:
            return str(values[cls.identity[0]])
        return to_json([str(values[part]) for part in cls.identity])

    @classmethod
    def stream_of(cls, values: "Mapping[str, Any]") -> str:
        """Name the stream that tells this record's story: its run, or the kind's own."""
        return cls.home or str(values["run_id"])

    @classmethod
    def task_of(cls, values: "Mapping[str, Any]") -> "str | None":
        """Name the task that a change of this record is about."""
        return values.get("task_id")

    @classmethod
    def forked(cls, image: "dict[str, Any]", _db: "Any") -> "dict[str, Any]":
        """Make anew, for the copy in a fork, what is good only once in a log."""
        return image

    def as_dict(self) -> "dict[str, Any]":
        """Give the record as plain JSON values."""
        data = {name: _jsonable(self.__dict__[name]) for name in self.columns()}
        if self.already:
            data["already"] = True
        return data

    def marked_already(self) -> "Self":
        object.__setattr__(self, "already", True)
        return self


def _jsonable(value: "Any") -> "Any":
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    return value


class Page(list):  # type: ignore[type-arg]
    """A list of records and the cursor after which the next page starts (None at the end)."""

    def __init__(self, items: "Iterable[Any]" = (), next: "str | None" = None) -> None:
        super().__init__(items)
        self.next = next
