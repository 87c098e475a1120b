"""Every record can be read as of each entry that changed it, whichever store wrote it."""

from pathlib import Path

import pytest

from decklog import Decklog, NotFound
from tests.db import whole_log
from tests.stores.approvals.trust.trust_desk import make_keys

CHANGED = "select distinct record_table, record_id from entries where record_table is not null"


@pytest.mark.slow
def test_every_record_can_be_read_as_of_each_of_its_entries(target: str, tmp_path: Path) -> None:
    whole_log.fill(target, make_keys(tmp_path))
    with Decklog.open(target) as log:
        log.plans.record("run_1", "two", "phases", ["Design", "Build"])
        log.plans.record("run_1", "one", "phase", ["Design"])
        changed = log.db.read(lambda: log.db.rows(CHANGED, {}))[1]
        classes = log.record_classes()
        assert set(classes) - {table for table, _ in changed} == {"proposals"}  # tests/stores/memory/test_proposals.py
        removed = 0
        for table, record_id in changed:
            for entry in log.journal.history(table, record_id, limit=200):
                if entry.subtype == "removed":
                    removed += 1
                    with pytest.raises(NotFound):
                        log.journal.at(table, record_id, entry.id)
                    continue
                assert type(log.journal.at(table, record_id, entry.id)) is classes[table], (table, entry.id)
        assert removed
        assert log.journal.verify().ok
