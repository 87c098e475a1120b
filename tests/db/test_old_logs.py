"""Old logs stay whole: what a former schema left is opened, verified, forked, moved, restored and exported."""

import gzip
from pathlib import Path

import pytest

from decklog import Decklog
from tests.conftest import ENGINES
from tests.db.saved_logs import fill, load, saved, unpack
from tests.project.altered import Altered

# What is done with an old log, whichever Decklog does it.
PROGRAM = """
from decklog import Decklog
from decklog.transfer.restore import back_up
from decklog.transfer.jsonl import JsonlExport
from decklog.transfer.jsonl import JsonlImport
from decklog.transfer.move import Move
from decklog.transfer.restore import restore

def whole(log):
    found = log.journal.verify()
    assert found.ok, found.as_dict()


with Decklog.open(target, migrate=True) as log:
    if log.db.engine == "postgres":
        log.rebuild(words=True)  # what an engine makes of records for itself did not come with them
    whole(log)
    before = log.runs.snapshot("run_1").as_dict()
    assert log.journal.at("tasks", "lexer", "5").state == "pending"
    fork = log.runs.fork("run_1")
    assert len(log.tasks.find(fork.id)) == 2
    log.tasks.claim(fork.id, worker="w").finish()
    whole(log)
    with Decklog.open(f"{folder}/moved.db") as moved:
        Move(log, moved).run()
        whole(moved)
        assert moved.runs.snapshot("run_1").as_dict() == before
    JsonlExport(log, f"{folder}/lines").run()
    with Decklog.open(f"{folder}/taken.db") as taken:
        JsonlImport(taken, f"{folder}/lines").run()
        whole(taken)
        assert taken.runs.snapshot("run_1").as_dict() == before
    made = back_up(log, f"{folder}/backup.db")
restore(f"{folder}/backup.db", f"{folder}/restored.db")
with Decklog.open(f"{folder}/restored.db") as log:
    whole(log)
    assert log.runs.snapshot("run_1").as_dict() == before
"""
MORE = """
with Decklog.open(target) as log:
    task = log.tasks.get("lexer")
    assert task.effort == 1, task
    assert (task.trace_folder, task.trace_name) == ("traces", "lexer.log"), task
    assert log.tasks.get("parser").trace_folder is None
    then = log.journal.at("tasks", "lexer", "5")
    assert (then.effort, then.trace_folder, then.trace_name) == (1, "traces", "lexer.log"), then
    [old] = [task for task in log.runs.snapshot("run_1", at="5").records["tasks"] if task.id == "lexer"]
    assert old.effort == 1
"""


UPCAST = """
    @classmethod
    def upcast(cls, image):
        if image.get("trace_file"):
            folder, _, name = image["trace_file"].rpartition("/")
            image = {**image, "trace_folder": folder or None, "trace_name": name}
        return super().upcast(image)

"""


def _add_a_column(package: Altered) -> None:
    """Add a column that may not be null."""
    package.write("db/migrations/9001_effort.sql", "alter table tasks add column effort {integer} not null default 1;\n")
    package.replace(
        "stores/tasks/task.py", "    blocker_repeats: int = 0\n", "    blocker_repeats: int = 0\n    effort: int = 1\n"
    )


def _split_a_column(package: Altered) -> None:
    """Rename a column, and split it in two."""
    package.write(
        "db/migrations/9002_traces.sql",
        """
        alter table tasks rename column trace_file to trace_name;
        alter table tasks add column trace_folder {text};
        update tasks
           set trace_folder = substr(trace_name, 1, length('traces')), trace_name = substr(trace_name, length('traces/') + 1)
         where substr(trace_name, 1, length('traces/')) = 'traces/';
        """,
    )
    for name in ("task", "tasks"):
        package.rename(f"stores/tasks/{name}.py", "trace_file", "trace_name")
    field = "    trace_name: str | None = field(default=None, metadata=SETTABLE)\n    loop_version"
    package.replace("stores/tasks/task.py", field, f"    trace_folder: str | None = None\n{UPCAST}{field}")


@pytest.fixture(scope="module")
def package_to_come(tmp_path_factory: pytest.TempPathFactory) -> Altered:
    """The package after two more migrations, each of which a record meets. No program changes a file of it."""
    package = Altered(tmp_path_factory.mktemp("to come"))
    _add_a_column(package)
    _split_a_column(package)
    return package


LOGS = ["filled now", *saved()]
FORMER = [(one, engine) for one in LOGS for engine in ENGINES]


def _name(param: object) -> str:
    return param.name if isinstance(param, Path) else str(param)


@pytest.fixture(params=LOGS, ids=_name)
def old_log(request: pytest.FixtureRequest, target: str, tmp_path: Path) -> str:
    """A log of a former schema, on each engine."""
    if isinstance(request.param, str):
        with Decklog.open(target) as log:
            fill(log)
    elif "://" not in target:
        unpack(request.param, Path(target))
    else:
        unpack(request.param, tmp_path / request.param.stem)
        target = request.getfixturevalue("empty_postgres_url")
        load(tmp_path / request.param.stem, target)
    return target


@pytest.mark.slow
@pytest.mark.parametrize(("old_log", "target"), FORMER, ids=_name, indirect=True)
def test_old_log_is_usable_in_every_way(old_log: str, tmp_path: Path) -> None:
    exec(compile(PROGRAM, "what is done with an old log", "exec"), {"target": old_log, "folder": str(tmp_path)})


@pytest.mark.slow
@pytest.mark.parametrize(("old_log", "target"), FORMER, ids=_name, indirect=True)
def test_old_log_is_usable_in_every_way_with_future_schemas(package_to_come: Altered, old_log: str, tmp_path: Path) -> None:
    package_to_come.run(f"import sys\ntarget, folder = sys.argv[1:]\n{PROGRAM}{MORE}", old_log, str(tmp_path))


def test_a_saved_log_is_small_and_packed() -> None:
    for path in saved():
        assert path.stat().st_size < 200_000
        with gzip.open(path) as packed:
            assert packed.read(16) == b"SQLite format 3\x00"
