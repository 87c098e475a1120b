"""What a process that works on a log comes to import and to build, done once: those that are forked from here begin with it."""

import psycopg_pool  # noqa: F401

import decklog.db.postgres.database
import decklog.db.sqlite.database
import decklog.db.sqlite.migrate
import decklog.stores.journal.tail
import decklog.stores.journal.verify  # noqa: F401
import tests.passwords  # noqa: F401
from decklog.app import STORES, store_class
from decklog.redact import scan

for _store in STORES:
    store_class(_store)
# Texts that may hold a secret: the matcher builds its tables for them, which takes longer than most jobs.
for _value in ("=" + "x1y2z3", " = two words"):
    scan("password" + _value)
