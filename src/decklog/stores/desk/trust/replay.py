"""Replaying trust: whether each step of the contract, from the binding on, is one that the manager signed or that needs none."""

import json
from dataclasses import field

from decklog.dataclass import dataclass
from decklog.errors import Damaged
from decklog.stores.desk.trust.records import TrustContract
from decklog.stores.desk.trust.signatures import fingerprint, is_signed
from decklog.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from decklog.db.base import Database

    Image = dict[str, Any]

_ENTRIES = """
    select seq, at, payload
      from entries
     where record_table = :table
     order by record_table, record_id, seq
"""
# What every change moves, and what one without a signature may lower besides.
_MOVES = {"revision", "updated_at"}
_LOWERED = {"tier", "is_dev_mode", "auto_merge"}
_BEGINNING = {"revision": 1, "tier": 0, "is_dev_mode": 0, "auto_merge": "[]", "reviewers": "[]"}


@dataclass
class Replay:
    """The contract as its entries tell it: one image for each revision, and what is wrong with it, if anything is."""

    images: "list[tuple[int, Image]]" = field(default_factory=list)
    problem: str | None = None
    # The number of the entry that the problem is about.
    seq: int | None = None

    def key_at(self, revision: object, seq: int) -> str | None:
        """Give the manager's key of a revision, if it was the present one when an entry was written."""
        for place, (since, image) in enumerate(self.images):
            until = self.images[place + 1][0] if place + 1 < len(self.images) else seq + 1
            if image["revision"] == revision and since < seq < until:
                return str(image["public_key"])
        return None


def replay(db: "Database") -> Replay:
    """Replay the signatures from the binding on; stop at the first step that nobody could have made."""
    found = Replay()
    signed: dict[int, list[tuple[dict[str, Any], str, str]]] | None = None
    for seq, at, payload in db.rows(_ENTRIES, {"table": TrustContract.table})[1]:
        image = json.loads(payload)
        if found.images:
            before = found.images[-1][1]
            if not _is_lower(before, image) and signed is None:
                signed = _signed(db)
            found.problem = _objection(before, image, at, signed or {})
        elif any(image.get(name) != value for name, value in _BEGINNING.items()):
            found.problem = "does not begin at tier 0"
        if found.problem is not None:
            found.problem, found.seq = f"trust_contract {image['id']} {found.problem}", seq
            break
        found.images.append((seq, image))
    return found


def _objection(before: "Image", after: "Image", at: str, signed: "dict[int, list[tuple[Image, str, str]]]") -> str | None:
    if after.get("revision") != before["revision"] + 1:
        return f"goes from revision {before['revision']} to {after.get('revision')}"
    if _is_lower(before, after):
        return None
    changed = _changed(before, after)
    for said, statement, signature in signed.get(before["revision"], ()):
        terms = _columns(said)
        fits = changed <= terms.keys() and all(after.get(name) == value for name, value in terms.items())
        meant = said["log"] == before["id"] and said["key"] == fingerprint(before["public_key"]) and said["expires_at"] > at
        if fits and meant and is_signed(statement, signature, before["public_key"]):
            return None
    return f"was changed in {', '.join(sorted(changed))} without a signature of {before['handle']}"


def _changed(before: "Image", after: "Image") -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} - _MOVES


def _is_lower(before: "Image", after: "Image") -> bool:
    """Tell whether a step only takes trust away, which needs no signature."""
    return (
        _changed(before, after) <= _LOWERED
        and after["tier"] <= before["tier"]
        and after["is_dev_mode"] <= before["is_dev_mode"]
        and after["auto_merge"] in (before["auto_merge"], "[]")
    )


def _columns(said: "dict[str, Any]") -> "Image":
    """Give the terms of a statement as the contract's columns hold them."""
    terms = {
        name: int(value) if isinstance(value, bool) else to_json(value) if isinstance(value, list) else value
        for name, value in said["terms"].items()
    }
    return {**terms, "phrase": None} if "public_key" in terms else terms


def _signed(db: "Database") -> "dict[int, list[tuple[Image, str, str]]]":
    """List the statements that were signed, by the revision they were written for."""
    from decklog.stores.desk.trust.records import TrustProposal

    found: dict[int, list[tuple[Image, str, str]]] = {}
    for _, _, payload in db.rows(_ENTRIES, {"table": TrustProposal.table})[1]:
        image = json.loads(payload)
        if image.get("signature"):
            said = json.loads(image["statement"])
            found.setdefault(said["revision"], []).append((said, image["statement"], image["signature"]))
    return found


class Contracts:
    """Reads the contract, and vouches that it is what its signatures make of it."""

    def __init__(self, db: "Database") -> None:
        self._db = db
        # What was replayed last, with the number of its newest entry: most calls find nothing new.
        self._seen: tuple[int, Replay] | None = None

    def replayed(self) -> Replay:
        """Replay the contract's entries, unless nothing was added since the last time."""
        sql = "select max(seq) from entries where record_table = :table"
        newest = (self._db.one(sql, {"table": TrustContract.table}) or (None,))[0] or 0
        if self._seen is None or self._seen[0] != newest:
            self._seen = newest, replay(self._db)
        return self._seen[1]

    def present(self, *, for_update: bool = False) -> TrustContract | None:
        """Give the contract; raise `Damaged` where it is not what was signed."""
        if for_update and self._db.locks_rows:
            self._db.lock_stream(TrustContract.home or "")
        row, problem = self.look(for_update=for_update)
        if problem is not None:
            raise Damaged(problem, hint="Nothing counts on this contract. See: decklog verify", table=TrustContract.table)
        return row

    def look(self, *, for_update: bool = False) -> tuple[TrustContract | None, str | None]:
        """Give the contract's row, and what is wrong with it."""
        while True:
            told = self.replayed()
            row, problem = self._held_against(told, for_update)
            # Who reads what is committed may read an older contract's entries and a newer one's row.
            if problem is None or self.replayed() is told:
                return row, problem

    def _held_against(self, told: Replay, for_update: bool) -> tuple[TrustContract | None, str | None]:
        names, rows = self._db.rows(f"select * from trust_contract{' for update' if for_update else ''}", {})
        if told.problem is not None:
            return None, told.problem
        if not told.images:
            return None, "trust_contract is in no entry" if rows else None
        image = TrustContract.upcast(told.images[-1][1])
        if not rows:
            return None, f"trust_contract {image['id']} is gone"
        row = dict(zip(names, rows[0], strict=True))
        if differing := [name for name in row if row[name] != image.get(name)]:
            return None, f"trust_contract {image['id']} differs from its newest entry in {', '.join(differing)}"
        return TrustContract.from_row(names, rows[0]), None
