"""Parse command-line arguments by the signature of a verb."""

import os
import sys
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_origin

from decklog.cli.call import WrongUsage
from decklog.records.operations import Operation, keyword_fields

_VALUE_DESCRIPTIONS = {
    "N": "a whole number",
    "X": "a number",
    "DOLLARS": "a dollar amount such as 0.42",
    "TIME": "a time such as 2026-11-18T09:00:00Z",
    "A,B": "a list such as a,b",
}
# An integer in Python and JSON; on the command line the name has no suffix and the value is in dollars.
_MONEY_SUFFIX = "_microdollars"
# The price of a million tokens, also in dollars on the command line; it keeps its name.
_PRICE_SUFFIX = "_price"


def _one_of(words: str) -> str:
    return f"one of {words}" if "|" in words else words


class Parameter:
    """A parameter of a verb: a positional argument, an option, or both."""

    def __init__(
        self, name: str, annotation: Any, *, positional: bool, required: bool, default: Any, keeps_id: bool = False
    ) -> None:
        self.name = name
        self._keeps_id = keeps_id
        self.required = required
        self.default = default
        self.positional = positional
        self.type = _strip_optional(annotation)
        # Any content: the bytes of a file, a text, or JSON.
        self.is_content = isinstance(annotation, UnionType) and {bytes, object} <= set(annotation.__args__)
        self.is_flag = self.type is bool
        self.is_money = name.endswith((_MONEY_SUFFIX, _PRICE_SUFFIX))
        # Takes all remaining words.
        self.takes_rest = positional and getattr(self.type, "__origin__", None) is tuple

    @property
    def cli_name(self) -> str:
        """The name on the command line: `task_id` is `--task`, `run_ids` is `--runs`, `cost_microdollars` is `--cost`."""
        # Names that Python reserves end in an underscore.
        name = self.name.rstrip("_").removesuffix(_MONEY_SUFFIX)
        if name.endswith("_ids"):
            return f"{name.removesuffix('_ids')}s"
        return name if self._keeps_id else name.removesuffix("_id")

    @property
    def flag(self) -> str:
        return "--" + self.cli_name.replace("_", "-")

    @property
    def metavar(self) -> str:
        """The placeholder for the value in help."""
        if isinstance(self.type, type) and issubclass(self.type, Enum):
            return "|".join(member.value for member in self.type)
        if self.is_content:
            return "FILE|TEXT|JSON"
        if self.is_money:
            return "DOLLARS"
        words: dict[Any, str] = {int: "N", float: "X", datetime: "TIME", list: "A,B", dict: "JSON", object: "JSON"}
        origin = getattr(self.type, "__origin__", self.type)
        if self.positional or self.cli_name == "run":
            return self.cli_name.upper()
        return words.get(origin, "JSON" if isinstance(origin, str) else "TEXT")

    def convert(self, text: str) -> Any:
        """Parse the parameter's value; raise WrongUsage for an invalid one."""
        origin = getattr(self.type, "__origin__", self.type)
        read: Callable[[str], Any] = _READERS.get(origin, _read_json if isinstance(origin, str) else self._read_text)
        if isinstance(origin, type) and issubclass(origin, Enum):
            read = origin
        if self.is_content:
            read = _read_content
        if self.is_money:
            read = read_dollars
        try:
            value = read(text)
        except ValueError:
            expected = "JSON" if read is _read_json else self.metavar
            if read is _read_object:
                expected = "a JSON object or a file that holds one"
            expected = _VALUE_DESCRIPTIONS.get(expected) or _one_of(expected)
            raise WrongUsage(f"{self.flag} must be {expected} (got {text!r})", hint=self._suggest(text)) from None
        self._check_type(value)
        return value

    def _suggest(self, text: str) -> str | None:
        if "|" not in self.metavar or self.is_content:
            return None
        from decklog.cli.suggestions import suggest

        near = suggest(text.lower(), self.metavar.split("|"))
        return near and f"Did you mean {near}?"

    def _check_type(self, value: Any) -> None:
        """Raise WrongUsage for JSON of another type than the signature has."""
        outer, inner = _json_types(self.type)
        if not isinstance(value, outer):
            raise WrongUsage(f"{self.flag} must be a JSON {_TYPE_NAMES[outer]}")
        if isinstance(value, list) and not all(isinstance(item, inner) for item in value):
            raise WrongUsage(f"{self.flag} must be a list of {_TYPE_NAMES[inner]}s; an item has another type")

    def _read_text(self, text: str) -> str:
        # A single dash reads stdin, as for every other type.
        return sys.stdin.read() if text == "-" else text


_TYPE_NAMES: dict[type, str] = {dict: "object", list: "list", str: "text"}


def _json_types(annotation: Any) -> tuple[type, type]:
    """Return the type of a JSON value and of the items of a list, by annotation; `object` allows any type."""
    if isinstance(annotation, str):
        outer = next((kind for kind in (dict, list) if annotation.startswith(kind.__name__)), object)
        return outer, next((kind for kind in (dict, str) if annotation.startswith(f"list[{kind.__name__}")), object)
    outer = getattr(annotation, "__origin__", annotation)
    if outer not in (dict, list):
        return object, object
    inner = annotation.__args__[0] if outer is list else object
    plain = getattr(inner, "__origin__", inner)
    return outer, plain if plain in (dict, str) else object


def _strip_optional(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        # Drop the Literal of an enumeration's values, which is for type checkers only.
        inner = [part for part in annotation.__args__ if part is not type(None) and get_origin(part) is not Literal]
        return inner[0] if len(inner) == 1 else object
    return annotation


def _read_json(text: str) -> Any:
    """Parse JSON from the argument itself, from `@FILE`, or from stdin for `-`."""
    import json

    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        text = read_file(text).decode()
    return json.loads(text)


def read_file(word: str) -> bytes:
    """Read the file that the argument `@FILE` names; raise WrongUsage if that fails."""
    try:
        with open(word[1:], "rb") as file:
            return file.read()
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "this is not a valid file name"
        raise WrongUsage(
            f"the file {word[1:]!r} can't be read: {why}",
            hint="@ is followed by the path of a file. Pass a text that begins with @ in a file or on stdin (-).",
        ) from None


def _read_object(text: str) -> Any:
    """Parse a JSON object from the argument itself, from stdin for `-`, or from a file, named with or without `@`."""
    is_path = text != "-" and not text.startswith(("{", "@")) and os.path.isfile(text)
    return _read_json(f"@{text}" if is_path else text)


def _read_list(text: str) -> Any:
    """Parse a list as JSON, or as words separated by commas; a sentence with commas is one item."""
    if text == "-" or text.startswith(("[", "@")):
        return _read_json(text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [text.strip()] if any(len(part.split()) > 1 for part in parts) else parts


def read_time(text: str) -> datetime:
    """Parse a time in ISO-8601, or an age such as `90s`, `15m`, `2h` or `3d`."""
    from datetime import UTC, timedelta

    from decklog.core.clock import from_text

    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    if text[-1:] in units and text[:-1].isdigit():
        return datetime.now(UTC) - timedelta(**{units[text[-1]]: int(text[:-1])})
    return from_text(text)


def _read_bytes(text: str) -> bytes:
    """Read bytes from `@FILE`, from stdin for `-`, or from the argument itself."""
    if text == "-":
        return sys.stdin.buffer.read()
    return read_file(text) if text.startswith("@") else os.fsencode(text)


def _read_content(text: str) -> Any:
    """Read the bytes of an existing file or of stdin (`-`), otherwise parse JSON, otherwise return the text."""
    if text == "-" or text.startswith("@"):
        return _read_bytes(text)
    if text and "\x00" not in text and os.path.isfile(text):
        return read_file(f"@{text}")
    try:
        return _read_json(text)
    except ValueError:
        return text


def read_dollars(text: str) -> int:
    """Parse a dollar amount such as `0.42` or `$5` as microdollars. Refuse commas: they may mean thousands or decimals."""
    whole, _, decimals = text.strip().removeprefix("$").partition(".")
    digits = whole + decimals
    if not (digits.isascii() and digits.isdecimal()) or len(decimals) > _DECIMALS or len(whole) > _LONGEST_AMOUNT:
        raise ValueError(text)
    return int((whole or "0") + decimals.ljust(_DECIMALS, "0"))


_DECIMALS = 6
_LONGEST_AMOUNT = 15


def _read_number(text: str) -> float:
    number = float(text)
    if not abs(number) < float("inf"):
        raise ValueError(text)
    return number


_READERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: _read_number,
    bytes: _read_bytes,
    datetime: read_time,
    dict: _read_object,
    object: _read_json,
    list: _read_list,
}


def list_parameters(operation: Operation) -> list[Parameter]:
    """List the parameters of a verb in the order of its signature."""
    return list_function_parameters(operation.function)


def list_function_parameters(function: Any) -> list[Parameter]:
    """List the parameters of a function except the first, in the order of its signature."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    names, places = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_argcount
    defaults = dict(zip(names[places - len(function.__defaults__ or ()) : places], function.__defaults__ or (), strict=True))
    defaults |= function.__kwdefaults__ or {}
    fields = keyword_fields(function) or {}
    types = {**function.__annotations__, **fields}
    return [
        Parameter(
            name,
            types[name],
            positional=place < places,
            required=name not in defaults and name not in fields,
            default=defaults.get(name),
            # `--agent` is an option of every command, and another parameter may have the shorter name.
            keeps_id=name == "agent_id" or name.removesuffix("_id") in names,
        )
        for place, name in enumerate([*names, *fields])
        if place > 0
    ]


def parse_arguments(parameters: list[Parameter], words: list[str]) -> dict[str, Any]:
    """Read a verb's arguments from its words."""
    by_flag = {parameter.flag: parameter for parameter in parameters}
    places = [parameter for parameter in parameters if parameter.positional]
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            for plain in rest:
                _parse_positional(places, given, plain)
        elif word.startswith("--"):
            _parse_option(by_flag, given, word, rest)
        else:
            _parse_positional(places, given, word)
    missing = [parameter for parameter in parameters if parameter.required and parameter.name not in given]
    if missing:
        names = ", ".join(p.cli_name.upper() if p.positional else p.flag for p in missing)
        raise WrongUsage(f"missing: {names}")
    return given


def _parse_positional(places: list[Parameter], given: dict[str, Any], word: str) -> None:
    parameter = next((place for place in places if place.takes_rest or place.name not in given), None)
    if parameter is not None and parameter.takes_rest:
        given[parameter.name] = (*given.get(parameter.name, ()), word)
        return
    if parameter is None:
        raise WrongUsage(f"unexpected argument: {word!r}", hint="Put text with blanks in quotes.")
    given[parameter.name] = parameter.convert(word)


def _parse_option(by_flag: dict[str, Parameter], given: dict[str, Any], word: str, rest: Any) -> None:
    flag, equals, value = word.partition("=")
    flag = "--" + flag[2:].replace("_", "-")
    parameter = by_flag.get(flag)
    positive = by_flag.get("--" + flag[5:]) if flag.startswith("--no-") else None
    if parameter is None and positive is not None and positive.is_flag:
        given[positive.name] = False
        return
    if parameter is None:
        from decklog.cli.suggestions import suggestion_hint

        raise WrongUsage(
            f"unknown option: {flag}",
            hint=suggestion_hint(flag, by_flag, f"There are: {', '.join(by_flag)}"),
            known=list(by_flag),
        )
    if parameter.is_flag:
        given[parameter.name] = _parse_bool(value) if equals else True
        return
    text = value if equals else next(rest, None)
    if text is None:
        raise WrongUsage(f"{flag} needs a value")
    value = parameter.convert(text)
    if parameter.name not in given:
        given[parameter.name] = value
    elif isinstance(value, list):
        given[parameter.name] = [*given[parameter.name], *value]
    else:
        raise WrongUsage(f"{flag} is given twice")


def _parse_bool(text: str) -> bool:
    if text.lower() in ("true", "1", "yes"):
        return True
    if text.lower() in ("false", "0", "no"):
        return False
    raise WrongUsage(f"{text!r} is neither true nor false")
