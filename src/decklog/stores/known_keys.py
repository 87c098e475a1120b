"""Which of many entries the journal knows already, by their keys: asked in one go, where a question each costs a round trip."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from decklog.db.base import Database

    Identity = tuple[str, str, str, str]

# Two sizes of question, filled up with nulls: a text for every number of keys would be planned and kept for every number.
_FEW, _MANY = 16, 256
_PARTS = ("stream", "subtype", "group_id", "key")


def among(db: "Database", columns: "Sequence[str]", batch: "list[dict[str, Any]]") -> "dict[int, dict[str, Any]]":
    """Give the places in a batch whose key is known, in the journal or earlier in the batch, each with the first entry's columns.

    Whoever asks holds the streams' locks, so that nobody adds such a key meanwhile.
    """
    first: dict[Identity, int] = {}
    known: dict[int, dict[str, Any]] = {}
    for place, values in enumerate(batch):
        if values["key"] is not None:
            earlier = first.setdefault(_identity(values), place)
            if earlier != place:
                known[place] = batch[earlier]
    if not first:
        return {}
    written = _written(db, columns, list(first))
    known.update({first[identity]: image for identity, image in written.items()})
    # A repetition of what the journal knows means the journal's entry.
    known.update({place: written[_identity(batch[place])] for place in known if _identity(batch[place]) in written})
    return known


def _identity(values: "dict[str, Any]") -> "Identity":
    return values["stream"], values["subtype"] or "", values["group_id"] or "", values["key"]


def _written(db: "Database", columns: "Sequence[str]", asked: "list[Identity]") -> "dict[Identity, dict[str, Any]]":
    positions = [position for part in _parts(asked) for position in _positions(db, part)]
    found: dict[Identity, dict[str, Any]] = {}
    for part in _parts(positions):
        marks = ", ".join(f":pos_{place}" for place in range(_size(part)))
        bound = dict.fromkeys((f"pos_{place}" for place in range(_size(part))))
        bound.update({f"pos_{place}": position for place, position in enumerate(part)})
        _, rows = db.rows(f"select {', '.join(columns)} from entries where pos in ({marks})", bound)
        images = [dict(zip(columns, row, strict=True)) for row in rows]
        found.update({_identity(image): image for image in images})
    return found


def _positions(db: "Database", asked: "list[Identity]") -> "list[int]":
    """Look keys up. One by one inside the statement: a join may be planned to read all entries of a journal that is small yet."""
    size = _size(asked)
    bound: dict[str, Any] = dict.fromkeys(f"{part}_{place}" for place in range(size) for part in _PARTS)
    for place, identity in enumerate(asked):
        bound.update(zip((f"{part}_{place}" for part in _PARTS), identity, strict=True))
    _, rows = db.rows(_QUESTIONS[size], bound)
    return [position for (position,) in rows if position is not None]


def _parts(things: "list[Any]") -> "Iterator[list[Any]]":
    for start in range(0, len(things), _MANY):
        yield things[start : start + _MANY]


def _size(part: "Sequence[object]") -> int:
    return _FEW if len(part) <= _FEW else _MANY


def _question(size: int) -> str:
    rows = ", ".join("(" + ", ".join(f":{part}_{place}" for part in _PARTS) + ")" for place in range(size))
    return f"""
        with asked (in_stream, of_subtype, of_group, with_key) as (values {rows})
        select (
               select pos from entries
                where stream = in_stream
                  and coalesce(subtype, '') = of_subtype
                  and coalesce(group_id, '') = of_group
                  and key = with_key
               )
          from asked
        """


_QUESTIONS = {size: _question(size) for size in (_FEW, _MANY)}
