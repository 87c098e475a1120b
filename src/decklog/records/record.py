"""Convert between rows, entry payloads and frozen dataclasses; older payloads are upcast here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from decklog.core import fork_safety as forks
from decklog.core.clock import from_text, to_text
from decklog.core.errors import Damaged
from decklog.records.fork_rules import ForkRule
from decklog.records.values import from_json, to_json

T = TypeVar("T")
# A record as JSON: what `as_dict` returns.
RecordJson = dict[str, Any]


def _strip_optional(annotation: Any) -> Any:
    """Return the type behind `X | None`."""
    if isinstance(annotation, UnionType):
        inner = [part for part in annotation.__args__ if part is not type(None)]
        return inner[0] if len(inner) == 1 else object
    return annotation


def _choose_decoder(annotation: Any) -> Callable[[Any], Any] | None:
    plain = _strip_optional(annotation)
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


def default_of(field: Field[Any]) -> Any:
    """Return a field's default, or MISSING."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _encode_default(default: Any) -> Any:
    """Return a field's default as its column stores it."""
    if default is MISSING or default is None:
        return None
    if isinstance(default, Enum):
        return default.value
    return int(default) if isinstance(default, bool) else to_json(default) if isinstance(default, (list, dict)) else default


# Prefix of the raw value of a field that is decoded on first access. No field's name can begin with it.
_RAW_PREFIX = " "
# Equal to no value of a column.
_ALWAYS_WRITTEN = object()
# Records of a page, where all pages are read.
_PAGE_SIZE = 200
_defaults_lock = forks.create_lock()


def _remove_defaults(record_class: type, names: Iterable[str]) -> None:
    """Delete the defaults of fields from a class: Python would find them before it calls `__getattr__`."""
    for owner in record_class.__mro__:
        for name in names:
            if name in owner.__dict__:
                delattr(owner, name)


def _is_json_text(decode: Callable[[Any], Any]) -> bool:
    """Return whether a column's text is also its JSON form, as for times and enumerations."""
    return decode is from_text or (isinstance(decode, type) and issubclass(decode, Enum))


@cache
def _dict_keys(record_class: "type[Record]", names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the keys in a record's dictionary for these columns; None if they are not exactly the record's columns."""
    if set(names) != set(record_class.columns()):
        return None
    decoders = record_class._decoders()
    return tuple(_RAW_PREFIX + name if name in decoders else name for name in names)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of `table` with the primary key `identity`. `home` is its stream if it belongs to no run."""

    # Not annotated in the body: dataclasses would take them for fields.
    table = ""
    identity = ("id",)  # type: tuple[str, ...]
    home = None  # type: str | None
    # The column with the stream, for records without a home, and the column with the task that a change is about.
    stream_column = "run_id"
    task_column = "task_id"  # type: str | None
    # True if a new record takes its `task_id` from the claim in whose context it is created.
    is_work = False
    # How a fork of the run copies the record. Every record without a home needs a rule.
    fork = None  # type: ForkRule | None
    # True if some or all changes need the signature of the owner; `needs_proof` decides which.
    is_managed = False
    # True if a verb compares the row with its newest entry before it writes the next one.
    is_guarded = False
    # Columns that an image leaves out when they have this value. Never change an entry of this list: old images rely on it.
    omitted_values = ()  # type: tuple[tuple[str, str | int], ...]
    # The column with the digest of bytes stored with the row. With a second column: only where that one is null.
    blob_columns = ()  # type: tuple[str, ...]
    # Columns that undo restores. A record without any can't be undone.
    undo_columns = ()  # type: tuple[str, ...]
    # Columns that may have changed too and keep their current value.
    undo_ignored_columns = ("updated_at",)  # type: tuple[str, ...]
    # True on the result of an idempotent verb that had nothing left to do.
    already = False

    @classmethod
    @cache
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the columns, which are the fields."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    @cache
    def _decoders(cls) -> dict[str, Callable[[Any], Any]]:
        found = ((field.name, _choose_decoder(field.type)) for field in fields(cls))
        with _defaults_lock:
            _remove_defaults(cls, cls.columns())
        return {name: decode for name, decode in found if decode is not None}

    @classmethod
    def from_row(cls, names: Iterable[str], row: Sequence[Any]) -> Self:
        """Build the record from a row of its table."""
        return cls.from_rows(tuple(names), [row])[0]

    @classmethod
    def from_rows(cls, names: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> list[Self]:
        """Build records from rows with the same columns. Times, enumerations and JSON are decoded on first access."""
        keys = _dict_keys(cls, names)  # type: ignore[arg-type]
        if keys is None:
            return [cls.from_image(dict(zip(names, row, strict=True))) for row in rows]
        records = []
        for row in rows:
            record = cls.__new__(cls)
            # A frozen dataclass sets each field with object.__setattr__, which takes five times as long.
            record.__dict__.update(zip(keys, row, strict=True))
            records.append(record)
        return records

    @classmethod
    def from_image(cls, image: Mapping[str, Any]) -> Self:
        """Build the record from the payload of an entry of any schema version."""
        columns = cls.upcast(image)
        return cls.from_row(columns, tuple(columns.values()))

    if not TYPE_CHECKING:  # type checkers know the fields; any other name is an error

        def __getattr__(self, name: str) -> Any:
            own = self.__dict__
            if _RAW_PREFIX + name not in own:
                raise AttributeError(f"a {self.noun()} has no {name!r}")
            raw = own[_RAW_PREFIX + name]
            value = own[name] = None if raw is None else self._decoded(name, raw)
            return value

    def _decoded(self, name: str, raw: Any) -> Any:
        """Decode a column; a record that stores a value in another form overrides this."""
        try:
            return self._decoders()[name](raw)
        except (ValueError, TypeError):
            raise Damaged(
                f"the {name} of a {self.noun()} can't be read: {str(raw)[:80]!r}",
                hint="The rest of the record can. See: decklog verify",
                table=self.table,
                column=name,
            ) from None

    @classmethod
    def upcast(cls, image: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of an entry of any schema version as current columns.

        A missing column gets its field's default, which is also what the migration that added it wrote, or its value in
        `omitted_values`.
        A record whose columns were renamed or split overrides this, maps the old names and calls the base.
        """
        defaults = cls._column_defaults()
        columns = {**defaults, **image}
        if len(columns) > len(defaults):
            columns = {name: columns[name] for name in defaults}
        return columns

    @classmethod
    @cache
    def _column_defaults(cls) -> dict[str, Any]:
        return {field.name: _encode_default(default_of(field)) for field in fields(cls)} | dict(cls.omitted_values)

    def raw(self, name: str) -> Any:
        """Return a column as the row stores it, not decoded."""
        return self.__dict__[_RAW_PREFIX + name] if _RAW_PREFIX + name in self.__dict__ else self.__dict__[name]

    @classmethod
    def image_of(cls, names: Iterable[str], row: Sequence[Any]) -> str:
        """Return a row as canonical JSON, without the nulls and defaults that `upcast` restores."""
        names = tuple(names)
        return to_json(
            {
                name: value
                for name, value, default in zip(names, row, cls._omitted_values_of(names), strict=True)
                # Compare types too: 0 equals 0.0, and a damaged page may hold either.
                if value is not default and (value != default or type(value) is not type(default))
            }
        )

    @classmethod
    def entry_fields(cls, names: Iterable[str], row: Sequence[Any]) -> tuple[str, str, str | None, str | None, bool]:
        """Return the stream, id, group and task of a row, and whether the row is marked as redacted."""
        columns = dict(zip(names, row, strict=True))
        group_id, redacted = columns.get("group_id"), bool(columns.get("redacted"))
        return cls.stream_of(columns), cls.id_of(columns), group_id, cls.task_of(columns), redacted

    @classmethod
    @cache
    def _omitted_values_of(cls, names: tuple[str, ...]) -> list[Any]:
        """Return the value of each column that an image leaves out; `_ALWAYS_WRITTEN` for columns that are always written."""
        written = {name: _ALWAYS_WRITTEN for name, default in cls._column_defaults().items() if default is not None}
        return [(written | dict(cls.omitted_values)).get(name) for name in names]

    @classmethod
    def holds_time(cls, name: str) -> bool:
        """Return whether a column holds a time."""
        return cls._decoders().get(name) is from_text

    @classmethod
    def enumeration_of(cls, name: str) -> type[StrEnum] | None:
        """Return the enumeration that a field's words are of, if they are."""
        decoder = cls._decoders().get(name)
        return decoder if isinstance(decoder, type) and issubclass(decoder, StrEnum) else None

    @classmethod
    def holds_json(cls, name: str) -> bool:
        """Return whether a column holds a list or an object."""
        return cls._decoders().get(name) is from_json

    @classmethod
    def noun(cls) -> str:
        """Name the kind of record in words: a `ContextPackage` is a context package."""
        return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in cls.__name__).strip()

    @classmethod
    def id_of(cls, values: Mapping[str, Any]) -> str:
        """Return the key as one text: itself, or a JSON list when it has several parts."""
        if len(cls.identity) == 1:
            return str(values[cls.identity[0]])
        return to_json([str(values[part]) for part in cls.identity])

    @classmethod
    def stream_of(cls, values: Mapping[str, Any]) -> str:
        """Return the stream of this record: its run, or the `home` of its class."""
        return cls.home or str(values[cls.stream_column])

    @classmethod
    def needs_proof(cls, _before: Mapping[str, Any] | None, _after: Mapping[str, Any]) -> bool:
        """Return whether a change needs the signature of the owner. `_before` is None for a new record."""
        return cls.is_managed

    @classmethod
    def undo_refusal(cls, _before: Mapping[str, Any], _after: Mapping[str, Any], _db: Any) -> str | None:
        """Return why a change can't be undone although its columns could be restored; None if it can."""
        return None

    @classmethod
    def blob_digest(cls, image: Mapping[str, Any]) -> str | None:
        """Return the digest of the bytes stored with this row, or None."""
        digest, *inline = cls.blob_columns
        return image.get(digest) if all(image.get(name) is None for name in inline) else None

    @classmethod
    def task_of(cls, values: Mapping[str, Any]) -> str | None:
        """Name the task that a change of this record is about."""
        return None if cls.task_column is None else values.get(cls.task_column)

    def values(self) -> dict[str, Any]:
        """Return the fields by their names."""
        return {name: getattr(self, name) for name in self.columns()}

    @classmethod
    def fork_rule(cls) -> ForkRule:
        """Return the fork rule of this record; raise TypeError if it has none."""
        rule: ForkRule | None = cls.__dict__.get("fork")
        if rule is None:
            raise TypeError(f"{cls.__name__} has no `fork`: decide what a fork does with it")
        return rule

    @classmethod
    def compute_forked_fields(cls, image: dict[str, Any], _db: Any) -> dict[str, Any]:
        """Return the image of a copy with its `Computed` fields set."""
        return image

    @classmethod
    def repair_fork(cls, images: list[dict[str, Any]], _told: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the records of a fork, made consistent with its other records.

        A fork may begin between two entries of one verb.
        """
        return images

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        own, decoders = self.__dict__, self._decoders()
        data = {}
        for name in self.columns():
            if name in own:
                data[name] = _jsonable(own[name])
            elif _is_json_text(decoders[name]):
                data[name] = own[_RAW_PREFIX + name]
            else:
                data[name] = getattr(self, name)
        if self.already:
            data["already"] = True
        return data

    def mark_already(self) -> Self:
        object.__setattr__(self, "already", True)
        return self


def _jsonable(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    return value


class Page(list["T"]):
    """A list of records and the cursor after which the next page starts (None at the end).

    `not_indexed` counts entries that a search skipped because they are not indexed yet. `is_cut` is true if it stopped before
    the page was full, because there was too much to look at; continue with `next`.
    """

    def __init__(self, items: Iterable[T] = (), next: str | None = None, not_indexed: int = 0, *, is_cut: bool = False) -> None:
        super().__init__(items)
        self.next = next
        self.not_indexed = not_indexed
        self.is_cut = is_cut

    @property
    def warnings(self) -> list[str]:
        """Warnings to show with the records."""
        return search_warnings(self.not_indexed, self.next if self.is_cut else None)


def find_all(find: "Callable[..., Page[T]]", *arguments: object, **filters: object) -> "Iterator[T]":
    """Yield the records of all pages of a search."""
    after: str | None = None
    while True:
        page = find(*arguments, **{"limit": _PAGE_SIZE, **filters}, after=after)
        yield from page
        if (after := page.next) is None:
            return


def search_warnings(not_indexed: int, stopped_at: str | None) -> list[str]:
    """Return warnings about entries that a search has skipped."""
    warnings = []
    if not_indexed:
        warnings.append(f"{not_indexed:,} entries are not indexed yet and were not searched; index them: decklog journal index")
    if stopped_at is not None:
        warnings.append(f"there is too much to search all of it at once; go on with --after {stopped_at}")
    return warnings
