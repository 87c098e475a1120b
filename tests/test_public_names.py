"""Nobody needs a deep import: what a program meets of a log has a name in `decklog`."""

import ast
import re
import traceback
from enum import Enum
from pathlib import Path

import decklog
from decklog.cli.parameters import list_parameters
from decklog.core import errors
from decklog.log import STORES
from tests.every import every
from tests.registry import operations, records


def test_every_record_is_exported() -> None:
    assert [record for record in records() if getattr(decklog, record.__name__, None) is not record] == []


def test_every_error_is_exported() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DecklogError)]
    assert [kind for kind in kinds if getattr(decklog, kind.__name__, None) is not kind] == []


def test_every_error_has_a_description() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DecklogError)]
    assert [kind.__name__ for kind in kinds if not vars(kind).get("__doc__")] == []
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_a_traceback_shows_what_to_do_next() -> None:
    try:
        raise errors.Busy("the log is busy", hint="Try again.")
    except errors.Busy as problem:
        shown = "".join(traceback.format_exception(problem))
    assert shown.rstrip().endswith("the log is busy\nTry again.")


def test_a_log_lists_its_stores(log: decklog.Decklog) -> None:
    assert set(STORES) <= set(dir(log))


def test_every_enumeration_that_a_verb_takes_is_exported() -> None:
    taken = {parameter.type for _, operation in operations() for parameter in list_parameters(operation)}
    kinds = [kind for kind in taken if isinstance(kind, type) and issubclass(kind, Enum)]
    assert kinds
    assert [kind for kind in kinds if getattr(decklog, kind.__name__, None) is not kind] == []


@every("name", decklog.__all__)
def test_an_exported_name_is_there(name: str) -> None:
    assert getattr(decklog, name) is not None


def test_exports_equal_what_a_type_checker_sees() -> None:
    tree = ast.parse(Path(decklog.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("decklog.")]
    seen = {f"{node.module}.{alias.name}" for node in imports if node.col_offset == 4 for alias in node.names}
    homes = {f"decklog.{module}.{name}" for name, module in decklog._HOMES.items()}
    assert seen - {"decklog.log.Decklog"} == homes - {"decklog.log.Decklog"}


# A stored column that counts calendar days, and a window that the older system's command line gives in minutes.
OTHER_UNITS = {"patterns.record ttl_days", "patterns.adopt ttl_days", "outputs.check_evidence since_minutes"}


def test_a_duration_is_a_number_of_seconds_and_its_name_ends_so() -> None:
    named = re.compile(r"(^|_)(minutes|hours|ttl|timeout|duration|ms|millis)$|_days$")
    found = {
        f"{store}.{operation.name} {parameter.name}"
        for store, operation in operations()
        for parameter in list_parameters(operation)
        if named.search(parameter.name) or "timedelta" in str(parameter.type)
    }
    assert found == OTHER_UNITS


def test_digest_of_a_subject_is_named_like_its_column() -> None:
    named = [
        parameter.name for store, operation in operations() if store == "approvals" for parameter in list_parameters(operation)
    ]
    assert "subject_digest" in named
    assert "digest" not in named
