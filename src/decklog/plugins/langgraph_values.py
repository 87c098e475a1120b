"""LangGraph's MessagePack values, unpacked and packed again without creating any object of a program's classes."""

from typing import Any

import ormsgpack

from decklog.core.errors import Invalid

# An object of a program's class is unpacked as a dictionary with its code under this key, and its content under "of";
# content that is no MessagePack is kept under "bytes".
_OBJECT = "decklog.object"
_KEYS = ormsgpack.OPT_NON_STR_KEYS


def unpack(data: bytes) -> Any:
    """Unpack a value, objects as dictionaries; raise Invalid for what is no MessagePack."""
    try:
        return ormsgpack.unpackb(data, ext_hook=_object, option=_KEYS)
    except (ormsgpack.MsgpackDecodeError, RecursionError) as problem:
        raise Invalid(f"it is no MessagePack: {problem}") from None


def _object(code: int, content: bytes) -> Any:
    try:
        return {_OBJECT: code, "of": unpack(content)}
    except Invalid:
        return {_OBJECT: code, "bytes": content}


def pack(value: Any) -> bytes:
    """Pack a value that `unpack` returned."""
    try:
        return bytes(ormsgpack.packb(_with_objects(value), option=_KEYS))
    except (ormsgpack.MsgpackEncodeError, RecursionError) as problem:
        raise Invalid(f"it can't be written as MessagePack: {problem}") from None


def _with_objects(value: Any) -> Any:
    if isinstance(value, dict):
        if _OBJECT in value:
            return ormsgpack.Ext(value[_OBJECT], value["bytes"] if "bytes" in value else pack(value["of"]))
        return {name: _with_objects(item) for name, item in value.items()}
    return [_with_objects(item) for item in value] if isinstance(value, list) else value


def readable(value: Any) -> Any:
    """Return an unpacked value as people read it: an object by its class name and its argument."""
    if isinstance(value, list):
        return [readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _OBJECT not in value:
        return {str(name): readable(item) for name, item in value.items()}
    made_of = value.get("of")
    if not isinstance(made_of, list) or len(made_of) < 2:
        return {"kind": value[_OBJECT], "bytes": value["bytes"] if "bytes" in value else pack(made_of)}
    return {"type": f"{made_of[0]}.{made_of[1]}", "value": readable(made_of[2]) if len(made_of) > 2 else None}
