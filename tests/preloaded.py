"""Import and build once what every process that uses a log needs. Forked processes inherit it."""

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
# Scan texts that may hold a secret: building the matcher's tables takes longer than most jobs.
for _value in ("=" + "x1y2z3", " = two words"):
    scan("password" + _value)
# Build the expected schema, which every process that verifies a log needs.
_expected()
