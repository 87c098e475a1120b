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
    """Return the text columns of a record and how each is stored."""
    ids = {*record.identity, *getattr(record, "references", ()), "id", "run_id", "stream"}
    kinds = {}
    for column in fields(record):
        # A union has a name since Python 3.14.
        kind = column.type.__name__ if isinstance(column.type, type) else str(column.type).strip("\"'")
        if column.name in ids or column.name.endswith(("_id", "_at", "digest", "hash", "fingerprint")):
            continue
        if kind in _TEXTS:
            kinds[column.name] = "text"
        elif kind.startswith(_DOCUMENTS):
            kinds[column.name] = kind[:4]
    return kinds


def _as_column(kind: str, text: str) -> Any:
    return text if kind == "text" else [text] if kind == "list" else {text: text}


def poison(log: Decklog, texts: list[str], turn: int) -> set[str]:
    """Write texts into every column that takes them, each another one; name those columns."""
    done: set[str] = set()
    for place, (table, record) in enumerate(sorted(log.journal.record_classes().items())):
        for number, (name, kind) in enumerate(columns(record).items()):
            replacement = _as_column(kind, texts[(place + number + turn) % len(texts)])
            value = replacement if kind == "text" else json.dumps(replacement)
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
            replacement = _as_column(known[name], texts[(pos + number + turn) % len(texts)])
            image[name] = replacement if known[name] == "text" else json.dumps(replacement)
        bound = {"pos": pos, "payload": json.dumps(image)}
        log.db.write(lambda bound=bound: log.db.count("update entries set payload = :payload where pos = :pos", bound))


def _unguard(log: Decklog) -> None:
    """Remove the trigger that forbids changes of entries."""
    if log.db.engine == "postgres":
        log.db.write(lambda: log.db.count("alter table entries disable trigger user", {}))
        return
    guards = "select name from sqlite_master where type = 'trigger' and tbl_name = 'entries'"
    for (name,) in log.db.read(lambda: log.db.rows(guards, {})[1]):
        log.db.write(lambda name=name: log.db.count(f"drop trigger {name}", {}))
