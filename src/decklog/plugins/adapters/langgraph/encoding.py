"""Values as LangGraph's serializer writes them, without secrets.

The bytes are kept as they are unless a text in them is one: then the secret is replaced as in every other value, and they are
written anew. A graph saves the same messages step after step, so what was found clean once is not looked through again.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from decklog import redaction
from decklog.plugins.langgraph_values import pack, unpack
from decklog.stores.artifacts.graphs import Encoded

_CHANNELS = "channel_values"
# LangGraph makes these itself: ids, times, and the numbers of versions.
_OF_LANGGRAPH = frozenset({"v", "id", "ts", "channel_versions", "versions_seen", "updated_channels"})
# What is longer is remembered by its digest; so much is remembered in all.
_LONGEST_WHOLE = 1024
_NOTHING: frozenset[bytes] = frozenset()
_MOST_REMEMBERED_BYTES = 16 * 1024 * 1024


class Encoder:
    """Writes the values of one saver."""

    def __init__(self) -> None:
        # What holds no secret, by the name of its channel.
        self._clean: dict[str, set[bytes]] = {}
        self._room = _MOST_REMEMBERED_BYTES

    def encoded(self, serde: Any, value: Any) -> Encoded:
        """Write a value by a graph's serializer, and take the secrets out."""
        kind, content = serde.dumps_typed(value)
        if kind != "msgpack":
            # Null, bytes as they are, or what the serializer has encrypted.
            return Encoded(kind, content, False)
        opened = unpack(content)
        if all(self._are_clean(name, pieces) for name, pieces in _pieces(opened)):
            return Encoded(kind, content, False)
        clean, changed = redaction.scan_json(opened)
        return Encoded(kind, pack(clean) if changed else content, changed)

    def _are_clean(self, name: str, pieces: list[Any]) -> bool:
        """Return whether no piece of a value holds a secret; most of them have been here before."""
        known = self._clean.get(name, _NOTHING)
        packed = [pack(piece) for piece in pieces]
        return all(self._is_clean(name, piece) for piece, one in zip(pieces, packed, strict=True) if one not in known)

    def _is_clean(self, name: str, piece: Any) -> bool:
        if piece is None or isinstance(piece, (bool, int, float)):
            return True
        packed = pack(piece)
        if len(packed) > _LONGEST_WHOLE:
            packed = sha256(packed).digest()
        known = self._clean.get(name)
        if known is not None and packed in known:
            return True
        if redaction.scan_json({name: piece})[1]:
            return False
        self._remember(name, packed)
        return True

    def _remember(self, name: str, packed: bytes) -> None:
        self._room -= len(packed)
        if self._room < 0:
            self._clean, self._room = {}, _MOST_REMEMBERED_BYTES - len(packed)
        self._clean.setdefault(name, set()).add(packed)


def _pieces(opened: Any) -> Iterator[tuple[str, list[Any]]]:
    """Take a value apart as far as it grows from step to step: the channels of a checkpoint, and the items of lists."""
    if isinstance(opened, dict) and _CHANNELS in opened:
        rest = {name: item for name, item in opened.items() if name not in _OF_LANGGRAPH and name != _CHANNELS}
        if rest:
            yield "", [rest]
        for name, channel in opened[_CHANNELS].items():
            yield str(name), _items(channel)
    else:
        yield "", _items(opened)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
