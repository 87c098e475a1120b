"""A log in which every text of every record is replaced: in its row, and in the image that entries have of it."""

import json
from dataclasses import fields
from typing import Any

from decklog import Decklog
from decklog.core.errors import DecklogError
from decklog.records.record import Record

# What is no text of anybody's: names by which records are found, and what a check of the schema allows a few words for.
_TEXTS = ("str", "str | None")
_DOCUMENTS = ("dict", "list", "object")


def columns(record: type[Record]) -> dict[str, str]:
    """Name the columns of a record that hold somebody's words, with how they are written."""
    taken = {*record.identity, *getattr(record, "references", ()), "id", "run_id", "stream"}
    found = {}
    for one in fields(record):
        # A union has a name of its own since Python 3.14.
        kind = one.type.__name__ if isinstance(one.type, type) else str(one.type).strip("\"'")
        if one.name in taken or one.name.endswith(("_id", "_at", "digest", "hash", "fingerprint")):
            continue
        if kind in _TEXTS:
            found[one.name] = "text"
        elif kind.startswith(_DOCUMENTS):
            found[one.name] = kind[:4]
    return found


def _given(kind: str, text: str) -> Any:
    return text if kind == "text" else [text] if kind == "list" else {text: text}


def poison(log: Decklog, texts: list[str], turn: int) -> set[str]:
    """Write texts into every column that takes them, each another one; name those columns."""
    done: set[str] = set()
    for place, (table, record) in enumerate(sorted(log.journal.record_classes().items())):
        for number, (name, kind) in enumerate(columns(record).items()):
            given = _given(kind, texts[(place + number + turn) % len(texts)])
            value = given if kind == "text" else json.dumps(given)
            if _is_written(log, f"update {table} set {name} = :value where {name} is not null", value):
                done.add(f"{table}.{name}")
    _rewrite(log, texts, turn)
    return done


def _is_written(log: Decklog, sql: str, value: str) -> bool:
    try:
        return bool(log.db.write(lambda: log.db.count(sql, {"value": value})))
    except DecklogError:
        # A check of the schema, or a key, has the last word.
        return False


def _rewrite(log: Decklog, texts: list[str], turn: int) -> None:
    """Replace the words in the images that entries have of records."""
    classes = log.journal.record_classes()
    _unguard(log)
    sql = "select pos, record_table, payload from entries where record_table is not null and payload is not null"
    for pos, table, payload in log.db.read(lambda: log.db.rows(sql, {})[1]):
        image, known = json.loads(payload), columns(classes[table])
        for number, name in enumerate(name for name in known if image.get(name)):
            given = _given(known[name], texts[(pos + number + turn) % len(texts)])
            image[name] = given if known[name] == "text" else json.dumps(given)
        bound = {"pos": pos, "payload": json.dumps(image)}
        log.db.write(lambda bound=bound: log.db.count("update entries set payload = :payload where pos = :pos", bound))  # type: ignore[misc]


def _unguard(log: Decklog) -> None:
    """Entries are never changed, says a trigger; here they are."""
    if log.db.engine == "postgres":
        log.db.write(lambda: log.db.count("alter table entries disable trigger user", {}))
        return
    guards = "select name from sqlite_master where type = 'trigger' and tbl_name = 'entries'"
    for (name,) in log.db.read(lambda: log.db.rows(guards, {})[1]):
        log.db.write(lambda name=name: log.db.count(f"drop trigger {name}", {}))  # type: ignore[misc]
