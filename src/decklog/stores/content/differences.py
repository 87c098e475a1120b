"""How two JSON documents differ: always the same list for the same two documents."""

from decklog.records import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_GONE = object()


def differences(before: object, after: object) -> "list[dict[str, Any]]":
    """List what was added, removed or changed, by JSON pointer; objects key by key in order, lists place by place."""
    return list(_walk("", before, after))


def _walk(path: str, before: "Any", after: "Any") -> "Iterator[dict[str, Any]]":
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from _walk(f"{path}/{_escaped(name)}", before.get(name, _GONE), after.get(name, _GONE))
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            yield from _walk(f"{path}/{place}", _item(before, place), _item(after, place))
    elif before is _GONE:
        yield {"path": path, "change": "added", "before": None, "after": after}
    elif after is _GONE:
        yield {"path": path, "change": "removed", "before": before, "after": None}
    elif to_json(before) != to_json(after):  # Python takes True for 1; JSON does not
        yield {"path": path, "change": "changed", "before": before, "after": after}


def _item(items: "list[Any]", place: int) -> "Any":
    return items[place] if place < len(items) else _GONE


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
