"""Tables whose values are made when they are first asked for: a command needs a few of a policy's thousands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

Entry = TypeVar("Entry")
Made = TypeVar("Made")


class MadeOnUse(Mapping[str, Made], Generic[Entry, Made]):
    """A table of entries, each turned into its value once, however many names it has."""

    def __init__(self, entries: Mapping[str, Entry], make: Callable[[Entry], Made]) -> None:
        self._entries = entries
        self._make = make
        self._made: dict[int, Made] = {}

    def __getitem__(self, name: str) -> Made:
        entry = self._entries[name]
        made = self._made.get(id(entry))
        if made is None:
            made = self._made[id(entry)] = self._make(entry)
        return made

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
