"""What a model answered: read as JSON of an agreed form and nothing else, or not at all."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST = 1024 * 1024
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class NotAnAnswer(ValueError):
    """What came back is not what was asked for; the text says why."""


def read(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read an answer: one JSON object of the form that was asked for, alone or in one fence.

    Words around it are refused: an answer that says one thing in its JSON and another beside it says nothing.
    """
    if len(text) > LONGEST:
        raise NotAnAnswer(f"it is longer than {LONGEST} characters")
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        found = json.loads(fenced[1] if fenced else stripped, object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        raise NotAnAnswer("it is nested too deeply") from None
    except NotAnAnswer:
        raise
    except ValueError as problem:
        raise NotAnAnswer(f"it is not JSON alone: {problem}") from None
    if not isinstance(found, dict):
        raise NotAnAnswer("it is no JSON object")
    fault = next(faults(found, schema), None)
    if fault is not None:
        raise NotAnAnswer(fault)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise NotAnAnswer("it has the same name twice in one object")
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise NotAnAnswer(f"{word} is no JSON")


def faults(value: object, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Name where a value is not of a form, given as the plain part of JSON Schema that every provider takes."""
    where = place or "it"
    wanted = schema.get("type")
    if wanted is not None and not _is_a(value, wanted):
        yield f"{where} is no {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r:.60}, and not one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where} is {value}, and goes from {schema.get('minimum')} to {schema.get('maximum')}"
    elif isinstance(value, list):
        yield from _list_faults(value, schema, where)
    elif isinstance(value, dict):
        yield from _object_faults(value, schema, place)


def _is_a(value: object, wanted: "str | list[str]") -> bool:
    words = [wanted] if isinstance(wanted, str) else wanted
    # To Python a truth is a number.
    return any(isinstance(value, _TYPES[word]) and (word == "boolean" or not isinstance(value, bool)) for word in words)


def _list_faults(value: list[Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{where} has {len(value)} items, and at most {schema['maxItems']} were asked for"
    for number, one in enumerate(value):
        yield from faults(one, schema.get("items", {}), f"{where}[{number}]")


def _object_faults(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place or 'it'} lacks {name}"
    for name, one in value.items():
        if name in properties:
            yield from faults(one, properties[name], f"{place}.{name}" if place else name)
        elif schema.get("additionalProperties") is False:
            yield f"{place or 'it'} has {name!r:.60}, which was not asked for"
