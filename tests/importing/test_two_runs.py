"""One source taken into two runs: what belongs to the first stays there whole, and the log stays provable."""

import json
from pathlib import Path
from typing import Any

from decklog import Decklog
from decklog.importing.report import Outcome, Report
from decklog.plugins.importers.beads import BeadsImport
from tests.conftest import on_both
from tests.plugins.importers.beads.beads_files import issue, needs


def _take(log: Decklog, path: Path, run_id: str, *issues: dict[str, Any]) -> Report:
    path.write_text("".join(json.dumps(one) + "\n" for one in issues))
    return BeadsImport(log, str(path), run_id=run_id).run()


def _said(number: int) -> dict[str, Any]:
    return {"id": number, "author": "ana", "text": f"Remark {number}", "created_at": "2026-01-01T00:00:00Z"}


@on_both
def test_what_belongs_to_another_run_stays_there_with_its_links_and_comments(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    first = [issue("bd-1"), issue("bd-2", dependencies=[needs("bd-2", "bd-1")], comments=[_said(1)]), issue("bd-3")]
    _take(log, path, "first", *first)
    linked = [*first[:2], issue("bd-3", dependencies=[needs("bd-3", "bd-1")], comments=[_said(2)])]

    report = _take(log, path, "second", *linked, issue("bd-4", dependencies=[needs("bd-4", "bd-1")]))

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED), report.total(Outcome.REFUSED)) == (1, 0, 0)
    assert "comments bd-3#2 is kept as it was: task bd-3 belongs to another run here" in report.notes
    assert [task.id for task in log.tasks.find("second")] == ["bd-4"]
    assert (log.tasks.dependencies("bd-2"), log.tasks.dependencies("bd-3"), log.tasks.dependencies("bd-4")) == (["bd-1"], [], [])
    assert [comment.run_id for name in ("bd-2", "bd-3") for comment in log.tasks.comments(name)] == ["first"]
    assert log.journal.verify().ok
