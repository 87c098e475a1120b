"""What a process that works on a log comes to import and to build, done once: those that are forked from here begin with it."""

from importlib import import_module
from pkgutil import walk_packages

import psycopg_pool  # noqa: F401

import decklog.db
import decklog.stores
import tests.passwords  # noqa: F401
from decklog.db.sqlite.upkeep import _expected
from decklog.redaction import scan

for _folder in (decklog.db, decklog.stores):
    for _module in walk_packages(_folder.__path__, f"{_folder.__name__}."):
        import_module(_module.name)
# Texts that may hold a secret: the matcher builds its tables for them, which takes longer than most jobs.
for _value in ("=" + "x1y2z3", " = two words"):
    scan("password" + _value)
# What each process that verifies a log would make of all steps.
_expected()
