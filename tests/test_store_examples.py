"""The examples of the Python reference run and print what they show."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.log import STORES
from tests.store_examples import EXAMPLES


def test_every_store_has_an_example() -> None:
    assert list(EXAMPLES) == list(STORES)


@pytest.mark.parametrize("store", EXAMPLES)
def test_example_prints_what_the_reference_shows(store: str, tmp_path: Path) -> None:
    printed = io.StringIO()
    with Decklog.open(tmp_path / "log.db") as log, contextlib.redirect_stdout(printed):
        log.runs.start("Tidy up", run_id="tidy")
        log.tasks.add("tidy", "Room 1", task_id="room-1")
        exec(EXAMPLES[store], {"log": log})
    remarks = re.findall(r"^\s*print\(.*\)\s+# (.+)$", EXAMPLES[store], re.MULTILINE)
    assert remarks
    assert [remark.partition(": ")[0] for remark in remarks] == printed.getvalue().splitlines()
