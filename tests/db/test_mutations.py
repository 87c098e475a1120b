"""Whatever single value of a log is changed, in any table, verify finds it and names the table."""

from collections.abc import Iterator

import pytest

from decklog import Decklog
from tests.conftest import ENGINES
from tests.db.mutations import Mutable, outcomes, postgres_log, sqlite_log
from tests.searches import FULL

# A part of the columns, the same ones every time; `python -m tests.db.mutations --times 2000` changes each of them.
TIMES = {"sqlite": 40, "postgres": 15} if FULL else {"sqlite": 14, "postgres": 5}


@pytest.fixture(scope="module", params=ENGINES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mutable]:
    folder = tmp_path_factory.mktemp("mutations")
    if request.param == "sqlite":
        with sqlite_log(folder) as log:
            yield log
    else:
        with postgres_log(request.getfixturevalue("postgres_template"), folder) as log:
            yield log


@pytest.mark.slow
def test_a_changed_value_is_found_and_named_by_its_table(whole: Mutable, request: pytest.FixtureRequest) -> None:
    times = TIMES[request.node.callspec.params["whole"]]
    tried = list(outcomes(whole, seed=7, times=times))
    assert len(tried) == times
    assert [one for one in tried if not one.is_found] == []
    assert [one for one in tried if not one.is_named] == []


def test_every_table_is_of_a_record_or_derived(log: Decklog) -> None:
    """A new table needs a check in `verify`."""
    from decklog.log import STORES, store_class

    derived = {table for name in STORES for table in getattr(store_class(name), "derived", ())}
    journal = {
        "entries",
        "streams",
        "blobs",
        "schema_steps",
        "entry_terms",
        "entry_text",
        "entry_text_marks",
        "listeners",
        "entry_ranges",
    }
    sql = {
        "sqlite": "select name from sqlite_schema where type = 'table'",
        "postgres": """
            select relname from pg_class
             where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace
        """,
    }
    tables = {row[0] for row in log.db.read(lambda: log.db.rows(sql[log.db.engine], {}))[1]}
    shadows = {f"{name}_{part}" for name in ("entry_text", "lesson_text") for part in ("data", "idx", "docsize", "config")}
    assert tables - shadows <= {*log.record_classes(), *derived, *journal}
