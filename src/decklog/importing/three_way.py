"""Two versions of an item, and the last one that both sides had: which of them moved on, field by field.

Of the last common version only digests are needed, since all that is asked of it is whether a side still says the same.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from decklog.importing.row import kept_value
from decklog.records.values import to_json
from decklog.redaction import scan_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Item = dict[str, Any]
    # By field: the digest of a value, or those of the members of a set.
    Base = dict[str, Any]

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that both sides changed, each in its own way; what each of them says now."""

    item: str
    field: str
    here: "Any"
    there: "Any"


@dataclass(slots=True)
class MergedItem:
    """What is to become of an item on either side; None where it stays as it is."""

    here: "Item | None" = None
    there: "Item | None" = None
    differences: list[FieldConflict] = field(default_factory=list)


class ThreeWay:
    """Merges items by their fields. A field that is a set is merged member by member, so that it is never in dispute."""

    def __init__(
        self,
        fields: "tuple[str, ...]",
        sets: "dict[str, Callable[[Any], Any]]",
        meanings: "Mapping[str, Callable[[Any], Any]] | None" = None,
    ) -> None:
        self._fields = fields
        # What a field says, where it can be spelled in several ways.
        self._meanings = meanings or {}
        # By name, with what tells members of a set apart; None for what is no member.
        self._sets = sets

    def merge(self, name: str, base: "Base", ours: "Item", theirs: "Item") -> MergedItem:
        """Return what becomes of an item that both sides have."""
        merged = MergedItem()
        here, there = dict(theirs), dict(theirs)
        is_taken = is_given = False
        for one in self._fields:
            mine, other = self._said(one, ours), self._said(one, theirs)
            if mine == other:
                continue
            was = base.get(one)
            if was == _digest(other):
                _put(here, one, ours.get(one))
                _put(there, one, ours.get(one))
                is_given = True
            elif was == _digest(mine):
                is_taken = True
            else:
                merged.differences.append(FieldConflict(name, one, mine, other))
                _put(here, one, ours.get(one))
        for one in self._sets:
            members, mine_differs, other_differs = self._members(one, base, ours, theirs)
            if mine_differs or other_differs:
                _put(here, one, members)
                _put(there, one, [*members, *self._unknown(one, theirs)])
            is_taken, is_given = is_taken or mine_differs, is_given or other_differs
        merged.here = here if is_taken else None
        merged.there = there if is_given else None
        return merged

    def _said(self, one: str, item: "Item") -> "Any":
        meaning = self._meanings.get(one)
        return _plain(meaning(item.get(one)) if meaning else item.get(one))

    def _members(self, one: str, base: "Base", ours: "Item", theirs: "Item") -> "tuple[list[Any], bool, bool]":
        mine, other = self._by_key(one, ours), self._by_key(one, theirs)
        if not isinstance(theirs.get(one, []), list | None):
            # It is no set there, and stays what it is.
            return [], False, False
        was = set(base.get(one) or ())
        gone = {key for key in was if key not in mine or key not in other}
        members = {key: member for key, member in {**mine, **other}.items() if key not in gone}
        return list(members.values()), members.keys() != mine.keys(), members.keys() != other.keys()

    def _by_key(self, one: str, item: "Item") -> "dict[str, Any]":
        listed = item.get(one)
        keys = ((self._sets[one](member), member) for member in (listed if isinstance(listed, list) else ()))
        return {_digest(_plain(key)): member for key, member in keys if key is not None}

    def _unknown(self, one: str, item: "Item") -> "list[Any]":
        """Return the members that are none: nobody can tell them apart, and so nobody takes them away."""
        return [member for member in item.get(one) or () if self._sets[one](member) is None]

    def agreed(self, base: "Base", ours: "Item", theirs: "Item") -> "Base":
        """Return the last common version: of each field in which both sides are the same, that; of the others what was."""
        now = dict(base)
        for one in self._fields:
            if (mine := self._said(one, ours)) == self._said(one, theirs):
                now[one] = _digest(mine)
        for one in self._sets:
            mine_keys, other_keys = self._by_key(one, ours).keys(), self._by_key(one, theirs).keys()
            was = set(base.get(one) or ())
            now[one] = sorted((mine_keys & other_keys) | (was & (mine_keys | other_keys)))
        return now


def _put(item: "Item", one: str, value: "Any") -> None:
    if value in (None, "", [], {}):
        item.pop(one, None)
    else:
        item[one] = value


def _plain(value: "Any") -> "Any":
    """Return a value as the log would hold it: a secret there is a marker here, and what says nothing is nothing."""
    return None if value in (None, "", [], {}) else scan_json(kept_value(value))[0]


def _digest(value: "Any") -> str:
    return sha256(to_json([value]).encode()).hexdigest()[:_DIGITS]
