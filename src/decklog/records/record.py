"""Records: frozen dataclasses to rows and back, and the one place where images of older schemas are brought up to date."""

from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from enum import Enum, StrEnum
from operator import itemgetter
from types import UnionType
from typing import TYPE_CHECKING

from decklog.core import fork_safety as forks
from decklog.core.clock import from_text, to_text
from decklog.core.errors import Damaged
from decklog.records.values import from_json, to_json, to_json_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from dataclasses import Field
    from typing import Any, Self, TypeVar

    from decklog.records.fork_rules import ForkRule

    T = TypeVar("T")


def _plain(annotation: "Any") -> "Any":
    """Return the type behind `X | None`."""
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


def default_of(field: "Field[Any]") -> "Any":
    """Return a field's default, or MISSING; a list or a dictionary is only read, and written as JSON, so that one serves all."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _as_column(default: "Any") -> "Any":
    """Write a field's default as its column holds it."""
    if default is MISSING or default is None:
        return None
    if isinstance(default, Enum):
        return default.value
    return int(default) if isinstance(default, bool) else to_json(default) if isinstance(default, (list, dict)) else default


# Before the name of a field stands the column as it was read; no field's own name can begin with it.
_HELD = " "
# Stands the row that a record was made of, with the names of its columns, or its image as JSON, until something is looked at.
_ROW = ""
_one_at_a_time = forks.lock()


def _take_defaults_off(record_class: type, names: "Iterable[str]") -> None:
    """Take defaults off a class, where they would be found in place of fields that were not read yet."""
    for owner in record_class.__mro__:
        for name in names:
            if name in owner.__dict__:
                delattr(owner, name)


def _is_its_own_text(decode: "Callable[[Any], Any]") -> bool:
    """Return whether a column's text is what JSON shows of it, as for times and enumerations."""
    return decode is from_text or (isinstance(decode, type) and issubclass(decode, Enum))


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row as it was read. `table` names its table, `identity` its primary key, `home` its stream when it has no run."""

    # Not annotated in the body: dataclasses would take them for fields.
    table = ""
    identity = ("id",)  # type: tuple[str, ...]
    home = None  # type: str | None
    # The column that names the stream where there is no home, and the one that names the task which a change is about.
    stream_column = "run_id"
    task_column = "task_id"  # type: str | None
    # True for what is made while somebody works on a task: a new record takes its `task_id` from the context.
    is_work = False
    # What a fork of its run does with the record; every record without a home has its own rule.
    fork = None  # type: ForkRule | None
    # True for what only the manager may change, in whole or in part: `needs_proof` says which changes.
    is_managed = False
    # True where a verb compares the row with its newest entry before it writes the next one.
    is_guarded = False
    # What an image leaves out: columns with the value that most rows have, and for which no image that lacks the column can mean
    # another. What stands here stands for good, whatever the field's default becomes: entries of the past were written by it.
    unsaid = ()  # type: tuple[tuple[str, str | int], ...]
    # The column with the digest of bytes that are kept beside the row; with a second one, only where that is empty.
    keeps = ()  # type: tuple[str, ...]
    # The columns that undo may give the value they had before; a record that names none is never taken back.
    restores = ()  # type: tuple[str, ...]
    # Those that may have changed with them, and go on from what they are.
    kept_on_undo = ("updated_at",)  # type: tuple[str, ...]
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
    def _decoders(cls) -> "dict[str, Callable[[Any], Any]]":
        cached: dict[str, Callable[[Any], Any]] | None = cls.__dict__.get("_decoding")
        if cached is None:
            found = ((field.name, _decoder(field.type)) for field in fields(cls))
            cached = {name: decode for name, decode in found if decode is not None}
            with _one_at_a_time:
                _take_defaults_off(cls, cls.columns())
            cls._decoding = cached  # type: ignore[attr-defined]
        return cached

    @classmethod
    def from_row(cls, names: "Iterable[str]", row: "Sequence[Any]") -> "Self":
        """Make the record from a row of its table; columns it does not name are left out.

        The row is taken apart when something of it is first looked at, and times, enumerations and JSON are read when they are:
        of most records, few of them ever are, and of many nothing.
        """
        names = names if type(names) is tuple else tuple(names)
        shape = cls.shape_of(names)
        if shape.held is None:
            if len(names) != len(cls.columns()) or set(names) != set(cls.columns()):
                fitted = cls.upcast(dict(zip(names, row, strict=True)))
                names, row = tuple(fitted), tuple(fitted.values())
                shape = cls.shape_of(names)
            shape.hold(cls._decoders())
        record = cls.__new__(cls)
        record.__dict__[_ROW] = shape, row
        return record

    @classmethod
    def from_rows(cls, names: "tuple[str, ...]", rows: "Iterable[tuple[Any, ...]]") -> "list[Self]":
        """Make records from many rows with the same columns."""
        if cls.from_row.__func__ is not Record.from_row.__func__:  # type: ignore[attr-defined]
            # It reads a row in a way of its own.
            return [cls.from_row(names, row) for row in rows]
        made: list[Self] = []
        rest = iter(rows)
        for row in rest:
            # The first one finds out what each column is called.
            made.append(cls.from_row(names, row))
            shape = cls.shape_of(names)
            if shape.held is not None:
                new = cls.__new__
                for each in rest:
                    record = new(cls)
                    record.__dict__[_ROW] = shape, each
                    made.append(record)
        return made

    @classmethod
    def from_image(cls, image: "Mapping[str, Any]") -> "Self":
        """Make the record from what an entry of any age says of it."""
        columns = cls.upcast(image)
        return cls.from_row(tuple(columns), tuple(columns.values()))

    @classmethod
    def from_text(cls, image: str) -> "Self":
        """Make the record from an image as JSON, which is read when something of the record is first looked at."""
        if cls.from_row.__func__ is not Record.from_row.__func__:  # type: ignore[attr-defined]
            # It reads a row in a way of its own.
            return cls.from_image(from_json(image))
        record = cls.__new__(cls)
        record.__dict__[_ROW] = image
        return record

    def _own(self) -> "dict[str, Any]":
        """Return the record's dictionary, with the row taken apart."""
        own = self.__dict__
        unread = own.get(_ROW)
        if unread is not None:
            if type(unread) is str:
                unread = self.from_image(from_json(unread)).__dict__[_ROW]
            shape, row = unread
            # Frozen dataclasses set each field through object.__setattr__; filling the dictionary is five times cheaper. What was
            # looked at before stays as it is.
            own.update({**dict(zip(shape.held, row, strict=True)), **own})
            # Last, and only if it is there: another thread may be doing the same.
            own.pop(_ROW, None)
        return own

    if not TYPE_CHECKING:  # fields are declared; whatever else is asked for is a mistake

        def __getattr__(self, name: str) -> "Any":
            unread = self.__dict__.get(_ROW)
            if type(unread) is tuple and (place := unread[0].places.get(name)) is not None:
                # Of a record that was just changed, most look at its id alone.
                value = self.__dict__[name] = unread[1][place]
                return value
            own = self._own()
            if name in own:
                return own[name]
            held = _HELD + name
            if held not in own:
                raise AttributeError(f"a {self.noun()} has no {name!r}")
            raw = own[held]
            value = own[name] = None if raw is None else self._decoded(name, raw)
            return value

        def _decoded(self, name: str, raw: "Any") -> "Any":
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
    def upcast(cls, image: "Mapping[str, Any]") -> "dict[str, Any]":
        """Return what an entry of any age says of a record as today's columns.

        A column that an entry does not name has its field's default: null, which entries leave out, or what the migration that
        added the column later gave to every row; or the value that goes unsaid of such records. A record whose columns were
        renamed or split says here what became of the old ones, and then asks this one.
        """
        defaults = cls._column_defaults()
        columns = {**defaults, **image}
        if len(columns) > len(defaults):
            # It names what is no column any more.
            columns = {name: columns[name] for name in defaults}
        return columns

    @classmethod
    def _column_defaults(cls) -> "dict[str, Any]":
        cached: dict[str, Any] | None = cls.__dict__.get("_defaults")
        if cached is None:
            cached = {field.name: _as_column(default_of(field)) for field in fields(cls)} | dict(cls.unsaid)
            cls._defaults = cached  # type: ignore[attr-defined]
        return cached

    def as_held(self, name: str) -> "Any":
        """Return a column as its row holds it, without taking the row apart."""
        unread = self.__dict__.get(_ROW)
        if type(unread) is tuple:
            shape, row = unread
            return row[shape.names.index(name)]
        own = self._own()
        return own[_HELD + name] if _HELD + name in own else own[name]

    @classmethod
    def shape_of(cls, names: "tuple[str, ...]") -> "RowShape":
        """Return how rows with these columns are read and told of, which is found out once."""
        latest: RowShape | None = cls.__dict__.get("_latest_shape")
        if latest is not None and latest.names is names:
            return latest
        shapes = cls.__dict__.get("_shapes")
        if shapes is None:
            shapes = cls._shapes = {}  # type: ignore[attr-defined]
        shape: RowShape | None = shapes.get(names)
        if shape is None:
            shape = shapes[names] = RowShape(cls, names)
        cls._latest_shape = shape  # type: ignore[attr-defined]
        return shape

    @classmethod
    def image_of(cls, names: "tuple[str, ...]", row: "tuple[Any, ...]") -> str:
        """Write a row as canonical JSON, without the nulls and what else goes unsaid: `upcast` puts it back."""
        return cls.shape_of(names).image(row)

    @classmethod
    def holds_time(cls, name: str) -> bool:
        """Return whether a column holds a time."""
        return cls._decoders().get(name) is from_text

    @classmethod
    def enumeration_of(cls, name: str) -> "type[StrEnum] | None":
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
    def id_of(cls, values: "Mapping[str, Any]") -> str:
        """Return the key as one text: itself, or a JSON list when it has several parts."""
        if len(cls.identity) == 1:
            return str(values[cls.identity[0]])
        return to_json([str(values[part]) for part in cls.identity])

    @classmethod
    def stream_of(cls, values: "Mapping[str, Any]") -> str:
        """Name the stream that tells this record's story: its run, or the kind's own."""
        return cls.home or str(values[cls.stream_column])

    @classmethod
    def needs_proof(cls, _before: "Mapping[str, Any] | None", _after: "Mapping[str, Any]") -> bool:
        """Return whether only the manager makes a record of what it was before, if anything, into what an entry says."""
        return cls.is_managed

    @classmethod
    def why_not_undone(cls, _before: "Mapping[str, Any]", _after: "Mapping[str, Any]", _db: "Any") -> "str | None":
        """Return why what a record became can't be taken back, although all that changed could be restored; None when it can."""
        return None

    @classmethod
    def kept_in(cls, image: "Mapping[str, Any]") -> "str | None":
        """Return the digest of the bytes that are kept beside the row of such an image."""
        digest, *inline = cls.keeps
        return image.get(digest) if all(image.get(name) is None for name in inline) else None

    @classmethod
    def task_of(cls, values: "Mapping[str, Any]") -> "str | None":
        """Name the task that a change of this record is about."""
        return None if cls.task_column is None else values.get(cls.task_column)

    def values(self) -> "dict[str, Any]":
        """Return the fields by their names."""
        return {name: getattr(self, name) for name in self.columns()}

    @classmethod
    def fork_rule(cls) -> "ForkRule":
        """Return what a fork does with such a record; raise where nobody decided."""
        rule: ForkRule | None = cls.__dict__.get("fork")
        if rule is None:
            raise TypeError(f"{cls.__name__} has no `fork`: decide what a fork does with it")
        return rule

    @classmethod
    def forked(cls, image: "dict[str, Any]", _db: "Any") -> "dict[str, Any]":
        """Set the fields of a fork's copy that its rule calls computed."""
        return image

    @classmethod
    def fitted(cls, images: "list[dict[str, Any]]", _told: "Mapping[str, list[dict[str, Any]]]") -> "list[dict[str, Any]]":
        """Return what a fork has of these, true of all else that is told of its run.

        A fork may begin at an entry in the middle of what one verb wrote.
        """
        return images

    def as_dict(self) -> "dict[str, Any]":
        """Return the record as plain JSON values."""
        own, decoders = self._own(), self._decoders()
        data = {}
        for name in self.columns():
            if name in own:
                data[name] = _jsonable(own[name])
            elif _is_its_own_text(decoders[name]):
                data[name] = own[_HELD + name]
            else:
                data[name] = getattr(self, name)
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


# Equal to nothing that a column holds.
_SAID = object()


class RowShape:
    """How rows with the same columns are read, and told of: as canonical JSON, and by what an entry names of them."""

    __slots__ = ("_kind", "_named", "held", "in_order", "names", "places", "sorted", "unsaid")

    def __init__(self, kind: type[Record], names: "tuple[str, ...]") -> None:
        self._kind = kind
        self.names = names
        # What each column is called in a record that was taken apart, and where those stand that are read as they are.
        self.held: tuple[str, ...] | None = None
        self.places: dict[str, int] = {}
        # Found out with the first row that is told of: most kinds of record are only read.
        self.in_order: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None

    def hold(self, decoders: "dict[str, Callable[[Any], Any]]") -> None:
        """Find out how a row is taken apart, of which some columns have to be read."""
        self.places = {name: place for place, name in enumerate(self.names) if name not in decoders}
        self.held = tuple([_HELD + name if name in decoders else name for name in self.names])

    def _find_out(self) -> "Callable[[tuple[Any, ...]], tuple[Any, ...]]":
        kind, names = self._kind, self.names
        places = sorted(range(len(names)), key=names.__getitem__)
        self.sorted = tuple([names[place] for place in places])
        # What goes unsaid of each column: null, or what its kind says, of which null is something else.
        defaults, unsaid = kind._column_defaults(), dict(kind.unsaid)
        self.unsaid = tuple([unsaid.get(name, None if defaults.get(name) is None else _SAID) for name in self.sorted])
        self._named = self._find_named()
        self.in_order = itemgetter(*places) if len(places) > 1 else lambda row: tuple([row[place] for place in places])
        return self.in_order

    def said(self, row: "tuple[Any, ...]") -> "Iterator[tuple[str, Any, Any]]":
        """Return each column by its name, in their order, with what goes unsaid of it."""
        in_order = self.in_order or self._find_out()
        return zip(self.sorted, in_order(row), self.unsaid, strict=True)

    def _find_named(self) -> "Callable[[tuple[Any, ...]], tuple[Any, ...]] | None":
        """Find where in a row stands what an entry names; None where the kind has a way of its own to tell."""
        kind, names = self._kind, self.names
        own = [getattr(kind, name).__func__ for name in ("stream_of", "id_of", "task_of")]
        usual = [getattr(Record, name).__func__ for name in ("stream_of", "id_of", "task_of")]
        wanted = (kind.stream_column, *kind.identity, "group_id", kind.task_column, "redacted")
        if (
            own != usual
            or len(kind.identity) > 1
            or not {kind.identity[0], kind.home or kind.stream_column} <= {*names, kind.home}
        ):
            return None
        # Behind the row stands the null of columns that it has not.
        return itemgetter(*[names.index(name) if name in names else len(names) for name in wanted])

    def named(self, row: "tuple[Any, ...]") -> "tuple[str, str, str | None, str | None, bool]":
        """Return a row's stream, id, group and task, and whether it says itself that something was redacted."""
        kind = self._kind
        if self.in_order is None:
            self._find_out()
        if self._named is not None:
            stream, record_id, group_id, task_id, redacted = self._named((*row, None))
            return kind.home or str(stream), str(record_id), group_id, task_id, bool(redacted)
        image = dict(zip(self.names, row, strict=True))
        return (
            kind.stream_of(image),
            kind.id_of(image),
            image.get("group_id"),
            kind.task_of(image),
            bool(image.get("redacted")),
        )

    def image(self, row: "tuple[Any, ...]") -> str:
        """Write a row as canonical JSON, without what goes unsaid."""
        # By types too: to a comparison 0 and 0.0 are the same, and a damaged page may hold either.
        said = {
            name: value
            for name, value, unsaid in self.said(row)
            if value is not unsaid and (value != unsaid or type(value) is not type(unsaid))
        }
        return to_json_in_order(said)


class Page(list["T"]):
    """A list of records and the cursor after which the next page starts (None at the end).

    `not_indexed` counts the entries that a search by words has not looked at, because they are not indexed yet. `is_cut` is true
    where a search stopped before the page was full, because a prefix has too many words; `next` goes on from there.
    """

    def __init__(
        self, items: "Iterable[T]" = (), next: "str | None" = None, not_indexed: int = 0, *, is_cut: bool = False
    ) -> None:
        super().__init__(items)
        self.next = next
        self.not_indexed = not_indexed
        self.is_cut = is_cut

    @property
    def warnings(self) -> list[str]:
        """What a surface shows besides the records."""
        return search_warnings(self.not_indexed, self.next if self.is_cut else None)


def search_warnings(not_indexed: int, stopped_at: "str | None") -> list[str]:
    """Warn that a search by words has not looked at some entries."""
    warnings = []
    if not_indexed:
        warnings.append(f"{not_indexed:,} entries are not indexed yet and were not searched; index them: decklog journal index")
    if stopped_at is not None:
        warnings.append(f"the prefix has too many words to search all entries at once; search on with --after {stopped_at}")
    return warnings
