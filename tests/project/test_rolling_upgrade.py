"""Old and new programs write to one log at once, over a migration that is marked as compatible."""

import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Decklog, SchemaTooNew
from tests.project.altered import Altered

pytestmark = pytest.mark.slow

LAST_FIELD = "    key: str | None = None\n    ended_at: datetime | None = None\n"
MIGRATION = "alter table runs add column budget_code {text} not null default 'none';\n"
# An old program: it appends and changes records, and goes on for a while after the log was migrated.
OLD = """
import sys
from pathlib import Path
from decklog import Decklog
target, migrated = sys.argv[1], Path(sys.argv[2])
left = 20
with Decklog.open(target) as log:
    log.runs.start("Old", run_id="old")
    print("begun", flush=True)
    while left:
        left -= migrated.exists()
        task = log.tasks.add("old", "A task")
        with log.tasks.claim("old", worker="old"):
            log.journal.append("old", "at work")
with Decklog.open(target) as log:
    log.runs.finish("changed", status="completed", force=True, reason="by the old program")
    log.runs.start("Later", run_id="later")
print("done")
"""
MIGRATE_AND_WRITE = """
import sys
from decklog import Decklog
from decklog.stores.runs.run import Run
with Decklog.open(sys.argv[1], migrate=True) as log:
    assert log.db.facts()["schema"] == 9001
    log.runs.start("Changed by both", run_id="changed")
    with log.transaction():
        log.runs._update(Run, "changed", {"budget_code": "b-7"})
"""
CHECK = """
import sys
from decklog import Decklog
with Decklog.open(sys.argv[1]) as log:
    assert log.runs.get("changed").budget_code == "b-7", log.runs.get("changed")
    assert log.runs.get("changed").status == "completed"
    assert log.runs.get("later").budget_code == "none"
    result = log.journal.verify()
    assert result.ok and not result.unchecked, result
"""


def newer(tmp_path: Path, name: str) -> Altered:
    """The package with one more field of a run, and a migration of this name for it."""
    package = Altered(tmp_path / name)
    package.write(f"db/migrations/{name}.sql", MIGRATION)
    package.replace("stores/runs/run.py", LAST_FIELD, f'{LAST_FIELD}    budget_code: str = "none"\n')
    return package


def test_an_old_program_writes_on_after_a_compatible_migration(tmp_path: Path, target: str) -> None:
    package = newer(tmp_path, "9001_budget_code_compatible")
    migrated = tmp_path / "migrated"
    old = subprocess.Popen([sys.executable, "-c", OLD, target, str(migrated)], stdout=subprocess.PIPE, text=True)
    assert old.stdout is not None
    assert old.stdout.readline() == "begun\n"
    try:
        package.run(MIGRATE_AND_WRITE, target)
    finally:
        migrated.touch()
    assert old.communicate(timeout=300)[0] == "done\n"
    assert old.returncode == 0
    with Decklog.open(target) as log:
        result = log.journal.verify()
        assert result.ok
        assert any("newer Decklog" in left for left in result.unchecked)
        assert log.runs.get("changed").goal == "Changed by both"
    package.run(CHECK, target)


def test_an_old_program_is_refused_after_any_other_migration(tmp_path: Path, target: str) -> None:
    package = newer(tmp_path, "9001_budget_code")
    with Decklog.open(target) as log:
        log.runs.start("Old", run_id="old")
        package.run(MIGRATE_AND_WRITE, target)
        with pytest.raises(SchemaTooNew, match="9001"):
            log.journal.append("old", "too late")
    with pytest.raises(SchemaTooNew, match="9001"):
        Decklog.open(target)


def test_a_step_after_a_compatible_one_may_be_required(tmp_path: Path, target: str) -> None:
    package = newer(tmp_path, "9001_budget_code_compatible")
    with Decklog.open(target) as log:
        log.runs.start("Old", run_id="old")
        package.run(MIGRATE_AND_WRITE, target)
        log.journal.append("old", "still here")
        package.write("db/migrations/9002_more.sql", "alter table runs add column other {text};\n")
        package.run("import sys, decklog\ndecklog.Decklog.open(sys.argv[1], migrate=True).close()", target)
        with pytest.raises(SchemaTooNew, match="9002"):
            log.journal.append("old", "too late")
