"""What became of a run can be told from the record alone, wherever the record is."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.status import run_status
from decklog.transfer.move import Move
from tests.conductor.plans import TRIPLE, Work, work_item


@pytest.mark.slow
def test_a_run_that_was_moved_to_another_engine_tells_the_same(sqlite_target: str, checked: Path, postgres_target: str) -> None:
    with Decklog.open(sqlite_target) as here, Decklog.open(postgres_target) as there:
        context = Work(here, checked, work_item("triple", TRIPLE), work_item("nothing")).run()
        Move(here, there).run()
        assert run_status(there, context.run_id) == run_status(here, context.run_id)
        told = [
            [(one.name, one.tree, one.outcome) for one in log.verdicts.find(context.run_id)]
            + [(attempt.worker, attempt.outcome) for attempt in log.tasks.attempts(f"{context.run_id}.nothing.w1")]
            for log in (here, there)
        ]
        assert told[0] == told[1]
        assert [effect.tool for effect in there.effects.find(context.run_id, tool="conductor.advance")] == ["conductor.advance"]
        assert there.journal.verify(context.run_id).ok
        before, after = f"{context.run_id}:2", context.run_id
        assert {change["table"] for change in there.runs.diff(before, after)} >= {"tasks", "verdicts", "effects", "approvals"}
