"""Adding to a log, as CONTRIBUTING.md describes it.

A kind of record is a migration, a store file, a test file and one property in `log.py`. A field is a migration and a line of the
dataclass. Everything else follows from these.
"""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from tests.project.altered import Altered

# One column is called as a type is.
MIGRATION = """\
create table remarks (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  text       {text} not null,
  weight     {integer} not null default 1,
  labels     {text} not null,
  created_at {text} not null
){strict};

create index remarks_by_run on remarks (run_id, created_at, id);
"""
STORE = '''\
"""Remarks: what somebody said about a run."""

from dataclasses import field
from datetime import datetime

from dataclasses import dataclass
from decklog.db.where import Where
from decklog.records.fork_rules import ForkRule
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store


@dataclass(frozen=True, kw_only=True)
class Remark(Record):
    table = "remarks"
    fork = ForkRule("What was said still counts.")

    id: str
    run_id: str
    text: str
    created_at: datetime
    weight: int = 1
    labels: list[str] = field(default_factory=list)


class Remarks(Store):
    """Keeps what was said about a run."""

    records = (Remark,)

    @writes
    def say(self, run_id: str, text: str, *, weight: int = 1, labels: list[str] | None = None) -> Remark:
        """Say something about a run."""
        return self._add(
            Remark,
            id=self._ids.new("remark"),
            run_id=run_id,
            text=text,
            weight=weight,
            labels=labels or [],
            created_at=self._now(),
        )

    @reads
    def find(self, run_id: str, *, limit: int = 20, after: str | None = None) -> Page[Remark]:
        """List what was said about a run, in the order it was said."""
        where = Where(Remark)
        where.equal(run_id=run_id)
        return self._page(Remark, where, order=("created_at", "id"), limit=limit, after=after)
'''
PROPERTY = """\
    remarks: Any = _store("approvals.remarks.Remarks", "Keeps what was said about a run.", "remarks")

    def record_classes(self) -> Mapping[str, type[Record]]:
"""
PROGRAM = """
import sys
from decklog import Decklog
from decklog.transfer.move import Move
target, other = sys.argv[1:]
with Decklog.open(target, migrate=True) as log:
    log.runs.start("Make the parser faster", run_id="run_1")
    remark = log.remarks.say("run_1", "password=" + "hunter" + "2x!Qz", weight=3, labels=["a"])
    assert "hunter" not in remark.text and "redacted" in remark.text, remark
    assert log.journal.at("remarks", remark.id, "2").weight == 3
    fork = log.runs.fork("run_1")
    assert [(one.text, one.weight) for one in log.remarks.find(fork.id)] == [(remark.text, 3)]
    assert log.remarks.find(fork.id)[0].id != remark.id
    assert log.runs.snapshot("run_1").records["remarks"] == [remark]
    assert log.journal.verify().ok
    with Decklog.open(other, migrate=True) as moved:
        Move(log, moved).run()
        assert moved.remarks.find("run_1") == [remark]
        assert moved.journal.verify().ok
    log.db.write(lambda: log.db.count("update remarks set weight = 4 where id = :id", {"id": remark.id}))
    assert "differs from its newest entry in weight" in log.journal.verify().first.what
print("all of it")
"""


@pytest.fixture
def altered(tmp_path: Path) -> Altered:
    """The package with one more kind of record."""
    package = Altered(tmp_path / "package")
    package.write("db/migrations/9001_remarks.sql", MIGRATION)
    package.write("stores/approvals/remarks.py", STORE)
    package.replace("log.py", "    def record_classes(self) -> Mapping[str, type[Record]]:\n", PROPERTY)
    return package


@pytest.mark.slow
def test_a_new_kind_of_record_is_known_to_everything(altered: Altered, target: str, tmp_path: Path) -> None:
    assert "all of it" in altered.run(PROGRAM, target, str(tmp_path / "other.db"))


@pytest.mark.slow
def test_a_new_kind_of_record_has_its_commands(altered: Altered, tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")
    altered.call("--db", path, "init", str(tmp_path))
    altered.call("--db", path, "runs", "start", "goal", "--run", "run_1")
    assert '"weight": 5' in altered.call("--db", path, "remarks", "say", "run_1", "well done", "--weight", "5", "--json")
    assert "well done" in altered.call("--db", path, "remarks", "find", "run_1")
    assert "Say something about a run." in altered.call("remarks", "say", "--help")
    assert "Keeps what was said about a run." in altered.call("help", "all")


@pytest.mark.slow
def test_migration_check_lists_missing_steps(altered: Altered, target: str) -> None:
    Decklog.open(target).close()
    output = altered.call("--db", target, "migrate", "--check", "--json", expected=7)
    assert json.loads(output)["data"]["missing"] == ["9001_remarks"]
    altered.call("--db", target, "migrate")
    assert json.loads(altered.call("--db", target, "migrate", "--check", "--json"))["data"]["up_to_date"]


# A field in two places: a migration and the dataclass. Old logs, and old entries of them, have the default.
FIELD_MIGRATION = "alter table runs add column budget_code {text} not null default 'none';\n"
USE_FIELD = """
import sys
from decklog import Decklog
from decklog.transfer.move import Move
target, other = sys.argv[1:]
with Decklog.open(target, migrate=True) as log:
    assert log.runs.get("old").budget_code == "none"
    assert log.journal.at("runs", "old", "1").budget_code == "none"
    assert log.runs.start("A new run", run_id="new").budget_code == "none"
    assert log.runs.get("new").as_dict()["budget_code"] == "none"
    fork = log.runs.fork("new")
    assert fork.budget_code == "none"
    assert log.journal.verify().ok
    with Decklog.open(other, migrate=True) as moved:
        Move(log, moved).run()
        assert moved.runs.get("old") == log.runs.get("old")
        assert moved.journal.verify().ok
    log.db.write(lambda: log.db.count("update runs set budget_code = 'x' where id = 'new'", {}))
    assert "differs from its newest entry in budget_code" in log.journal.verify().first.what
print("all of it")
"""


@pytest.mark.slow
def test_new_field_needs_a_migration_and_one_line(tmp_path: Path, target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("An old run", run_id="old")
    package = Altered(tmp_path / "package")
    package.write("db/migrations/9001_budget_codes.sql", FIELD_MIGRATION)
    last = "    key: str | None = None\n    ended_at: datetime | None = None\n"
    package.replace("stores/runs/run.py", last, f'{last}    budget_code: str = "none"\n')
    assert "all of it" in package.run(USE_FIELD, target, str(tmp_path / "other.db"))
    if "://" not in target:
        assert '"budget_code": "none"' in package.call("--db", target, "runs", "list", "--json")


# A field that callers set, in the same two places.
SETTABLE_MIGRATION = "alter table tasks add column budget_code {text};\n"
SET_FIELD = """
import sys
from decklog import Decklog, Invalid
with Decklog.open(sys.argv[1], migrate=True) as log:
    assert log.tasks.get("old").budget_code is None
    log.runs.start("A new run", run_id="new")
    task = log.tasks.add("new", "One", budget_code="a-1")
    assert log.tasks.get(task.id).budget_code == "a-1"
    assert log.tasks.edit(task.id, budget_code="b-2", reason="moved").budget_code == "b-2"
    assert log.tasks.edit(task.id, clear=["budget_code"], reason="gone").budget_code is None
    assert log.journal.undo("tasks", task.id, reason="a mistake").budget_code == "b-2"
    assert log.tasks.add_many("new", [{"title": "Two", "budget_code": "c-3"}])[0].budget_code == "c-3"
    try:
        log.tasks.add("new", "Three", budget_code=7)
    except Invalid as refused:
        assert "budget_code" in str(refused)
    else:
        raise AssertionError
    assert log.journal.verify().ok
print("all of it")
"""


@pytest.mark.slow
def test_settable_task_field_needs_a_migration_and_one_line(tmp_path: Path, target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("An old run", run_id="run_1")
        log.tasks.add("run_1", "An old task", task_id="old")
    package = Altered(tmp_path / "package")
    package.write("db/migrations/9001_budget_codes.sql", SETTABLE_MIGRATION)
    last = "    assigned_to: str | None = None\n"
    package.replace("stores/tasks/task.py", last, f"{last}    budget_code: str | None = field(default=None, metadata=SETTABLE)\n")
    assert "all of it" in package.run(SET_FIELD, target)
    if "://" not in target:
        added = package.call("--db", target, "tasks", "add", "run_1", "Another", "--budget-code", "d-4", "--json")
        assert '"budget_code": "d-4"' in added
        assert "--budget-code" in package.call("tasks", "edit", "--help")
