"""Dataclasses whose fields are found, and whose methods are written, when they are first used.

Python's own looks at every field, and writes the source of up to six methods for each class and compiles it, while the module is
imported: half of what importing the records takes, and of most of them a process never makes one by its fields, compares or
prints one, and of many it never asks for a field.
"""

from dataclasses import MISSING, FrozenInstanceError, fields, make_dataclass
from dataclasses import dataclass as _declare

from decklog import forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field
    from dataclasses import dataclass as dataclass
    from typing import Any, NoReturn


_one_at_a_time = forks.lock()
# What Python's own notes of a class.
_NOTED = ("__dataclass_fields__", "__dataclass_params__")
_MATCHED = "__match_args__"


class _FoundLater:
    """Stands for what Python's own notes of a dataclass until somebody asks for it, and then has it noted."""

    def __init__(self, owner: type, name: str, kw_only: bool) -> None:
        self.owner = owner
        self.name = name
        self.kw_only = kw_only

    def __get__(self, instance: object, owner: type) -> "Any":
        with _one_at_a_time:
            # Another thread may have done so while this one waited.
            if self.owner.__dict__[self.name] is self:
                _declare(init=False, repr=False, eq=False, match_args=False, kw_only=self.kw_only)(self.owner)
        return self.owner.__dict__[self.name]


class _MatchedLater:
    """Stands for the names that a pattern with places matches, until there is such a pattern."""

    def __init__(self, owner: type) -> None:
        self.owner = owner

    def __get__(self, instance: object, owner: type) -> tuple[str, ...]:
        names = tuple(field.name for field in fields(self.owner) if field.init and not field.kw_only)
        setattr(self.owner, _MATCHED, names)
        return names


class _WrittenLater:
    """Stands for a method of a dataclass until somebody looks it up, and then is replaced by what Python's own writes."""

    def __init__(self, owner: type, name: str, **wanted: bool) -> None:
        self.owner = owner
        self.name = name
        self.wanted = {"init": False, "repr": False, "eq": False, **wanted}

    def __get__(self, instance: object, owner: type) -> "Any":
        method = self._write()
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)

    def _write(self) -> "Any":
        """Take the method from a class with the same fields, whose other methods nobody asks for."""
        # The text saves it from looking the signature up, which imports `inspect`.
        body = {"__doc__": self.owner.__doc__, "__qualname__": self.owner.__qualname__}
        if (after := getattr(self.owner, "__post_init__", None)) is not None:
            body["__post_init__"] = after
        declared = [(field.name, field.type, field) for field in fields(self.owner)]
        stand_in = make_dataclass(self.owner.__name__, declared, namespace=body, **self.wanted)  # type: ignore[arg-type]
        return stand_in.__dict__[self.name]


# So many of a class are made without its method, which takes as long to write as some hundreds take to make.
_FIRST = 100


class _MadeLater(_WrittenLater):
    """Stands for the method that makes a frozen one: fills the first ones by the names of their fields."""

    left = _FIRST
    _places: "list[tuple[str, Any, Any]] | None" = None

    def __get__(self, instance: object, owner: type) -> "Any":
        # Who describes the class, as Python 3.13 does, asks for the method as if the class itself were one of them.
        if not isinstance(instance, self.owner):
            return super().__get__(instance, owner)
        if self.left <= 0:
            method = _filling(self.owner, fields(self.owner)) if self._plain() else self._write()
            setattr(self.owner, self.name, method)
            return method.__get__(instance, owner)
        self.left -= 1
        return lambda *values, **named: self._fill(instance, owner, values, named)

    def _fill(self, instance: object, owner: type, values: "tuple[Any, ...]", named: "dict[str, Any]") -> None:
        if self._places is None:
            self._places = self._plain()
        filled: dict[str, Any] = {}
        for name, default, factory in self._places:
            if name in named:
                filled[name] = named[name]
            elif default is not MISSING:
                filled[name] = default
            elif factory is not MISSING:
                filled[name] = factory()
        if values or not self._places or len(filled) != len(self._places) or not named.keys() <= filled.keys():
            # Values by their places, one too few or one too many: the method knows what to do, or to say.
            self.left = 0
            super().__get__(instance, owner)(*values, **named)
            return
        # In the order of the fields, which some are shown in.
        instance.__dict__.update(filled)
        if (after := getattr(instance, "__post_init__", None)) is not None:
            after()

    def _plain(self) -> "list[tuple[str, Any, Any]]":
        """Give each field with its default and what makes one; nothing where a field is not one of those that are given."""
        found = fields(self.owner)
        noted: dict[str, Any] = self.owner.__dict__["__dataclass_fields__"]
        if len(found) != len(noted) or not all(field.init for field in found):
            return []
        return [(field.name, field.default, field.default_factory) for field in found]


def _filling(owner: type, found: "tuple[Field[Any], ...]") -> "Any":
    """Write the method that makes a frozen one, as Python's own but that a field is set without a call, in half the time."""
    known: dict[str, Any] = {"_UNGIVEN": MISSING}
    places: dict[bool, list[str]] = {False: [], True: []}
    lines = ["_there = self.__dict__"]
    for field in found:
        name, value = field.name, field.name
        if field.default is not MISSING:
            known[f"_default_{name}"], given = field.default, f"{name}=_default_{name}"
        elif field.default_factory is not MISSING:
            known[f"_make_{name}"], given = field.default_factory, f"{name}=_UNGIVEN"
            value = f"_make_{name}() if {name} is _UNGIVEN else {name}"
        else:
            given = name
        places[bool(field.kw_only)].append(given)
        lines.append(f"_there[{name!r}] = {value}")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    words = ["self", *places[False], *(["*", *places[True]] if places[True] else [])]
    exec(f"def __init__({', '.join(words)}):\n " + "\n ".join(lines), known)
    method = known["__init__"]
    method.__qualname__ = f"{owner.__qualname__}.__init__"
    return method


def _refuse_to_set(_self: object, name: str, _value: object) -> "NoReturn":
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> "NoReturn":
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _has_hash_of_its_own(cls: type) -> bool:
    """Tell whether the body says how it is hashed; Python itself adds None where it says only how it is compared."""
    return "__hash__" in cls.__dict__ and not (cls.__dict__["__hash__"] is None and "__eq__" in cls.__dict__)


def _declared(cls: type, *, frozen: bool, kw_only: bool) -> type:
    hashed_by_itself = _has_hash_of_its_own(cls)
    cls.__doc__ = cls.__doc__ or cls.__name__
    for name in _NOTED:
        setattr(cls, name, _FoundLater(cls, name, kw_only))
    if _MATCHED not in cls.__dict__:
        setattr(cls, _MATCHED, _MatchedLater(cls))
    later = {"__init__": (_MadeLater if frozen else _WrittenLater)(cls, "__init__", init=True, frozen=frozen)}
    if "__repr__" not in cls.__dict__:
        later["__repr__"] = _WrittenLater(cls, "__repr__", repr=True)
    if "__eq__" not in cls.__dict__:
        later["__eq__"] = _WrittenLater(cls, "__eq__", eq=True)
    if not hashed_by_itself:
        later["__hash__"] = _WrittenLater(cls, "__hash__", eq=True, unsafe_hash=True) if frozen else None  # type: ignore[assignment]
    if frozen:
        later |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}  # type: ignore[dict-item]
    for name, method in later.items():
        setattr(cls, name, method)
    return cls


if not TYPE_CHECKING:  # to a reader of types it is Python's own

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, kw_only: bool = False, slots: bool = False
    ) -> "type | Callable[[type], type]":
        """Make a dataclass of a class; as Python's own does, but for when its methods are written."""
        if slots:
            # It is another class than the one that was declared, and is made whole at once.
            return _declare(cls, frozen=frozen, kw_only=kw_only, slots=True)
        if cls is not None:
            return _declared(cls, frozen=frozen, kw_only=kw_only)
        return lambda cls: _declared(cls, frozen=frozen, kw_only=kw_only)
