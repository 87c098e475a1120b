"""What holds for every importer and every export."""

import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from decklog import Conflict, Decklog, Invalid, NotFound
from decklog.core.errors import DiskFull
from decklog.plugins.importers.bazinga.export import BazingaExport
from decklog.plugins.importers.bazinga.importer import BazingaImport
from decklog.plugins.importers.beads import BeadsExport, BeadsImport
from decklog.plugins.importers.gaia.export import GaiaExport
from decklog.plugins.importers.gaia.importer import GaiaImport
from decklog.plugins.importers.github import GithubImport
from decklog.plugins.importers.hermes import HermesImport
from decklog.plugins.importers.langgraph import LangGraphImport
from decklog.plugins.importers.markdown import MarkdownExport
from decklog.plugins.importers.runstore.export import RunStoreExport
from decklog.plugins.importers.runstore.importer import RunStoreImport
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from decklog.plugins.importers.taskmaster.sync import TaskMasterExport
from decklog.plugins.importers.vibekanban import VibeKanbanImport
from tests.plugins.importers import claims, other_files
from tests.plugins.importers.bazinga import bazinga_files
from tests.plugins.importers.beads import beads_files
from tests.plugins.importers.github import github_files
from tests.plugins.importers.hermes import hermes_files
from tests.plugins.importers.langgraph import langgraph_files
from tests.plugins.importers.taskmaster import taskmaster_files
from tests.plugins.importers.vibekanban import vibekanban_files

Importer = tuple[type[Any], dict[str, str], Callable[..., Path]]


def _beads(path: Path, *, is_shuffled: bool) -> Path:
    found = [line for line in beads_files.lines() if line and line[0] not in "<=>"]
    return beads_files.write(path, [*(random.Random(7).sample(found, len(found)) if is_shuffled else found), ""])


def _github(path: Path, *, is_shuffled: bool) -> Path:
    found = github_files.issues()
    return github_files.write(path, random.Random(2).sample(found, len(found)) if is_shuffled else found)


def _taskmaster(path: Path, *, is_shuffled: bool) -> Path:
    found = taskmaster_files.document()
    chance = random.Random(3)
    for tag in ("master", "feature: lists") if is_shuffled else ():
        chance.shuffle(found[tag]["tasks"])
    return taskmaster_files.write(path, {tag: found[tag] for tag in reversed(found)} if is_shuffled else found)


def _rows(build: Callable[..., Path]) -> Callable[..., Path]:
    return lambda path, *, is_shuffled: build(path, reverse=is_shuffled)


IMPORTERS: dict[str, Importer] = {
    "beads": (BeadsImport, {"run_id": "beads"}, _beads),
    "github": (GithubImport, {"run_id": "github"}, _github),
    "taskmaster": (TaskMasterImport, {"run_id": "taskmaster"}, _taskmaster),
    "hermes": (HermesImport, {"run_id": "hermes"}, _rows(hermes_files.build)),
    "vibekanban": (VibeKanbanImport, {"run_id": "vibe-kanban"}, _rows(vibekanban_files.build)),
    "langgraph": (LangGraphImport, {}, _rows(langgraph_files.build)),
}


def _taker(name: str, folder: Path, *, is_shuffled: bool = False) -> claims.Take:
    kind, named, build = IMPORTERS[name]
    path = build(folder / f"source-{is_shuffled}", is_shuffled=is_shuffled)
    return lambda log, **settings: kind(log, str(path), **named, **settings).run()


@pytest.mark.parametrize("name", IMPORTERS)
def test_rows_in_another_order_give_the_same_log(tmp_path: Path, name: str) -> None:
    claims.check_same_log(tmp_path, _taker(name, tmp_path), _taker(name, tmp_path, is_shuffled=True))


@pytest.mark.parametrize("name", IMPORTERS)
def test_an_import_killed_between_batches_continues_to_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    claims.check_kills(tmp_path, _taker(name, tmp_path), monkeypatch, moments=2)


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_dry_run_reports_the_same_and_changes_nothing(log: Decklog, tmp_path: Path, name: str) -> None:
    claims.check_dry_run(log, _taker(name, tmp_path))


@pytest.mark.parametrize(
    ("kind", "build"),
    [
        (BazingaImport, lambda path: bazinga_files.build(path, 19)),
        (RunStoreImport, other_files.build_runstore),
        (GaiaImport, other_files.build_gaia),
    ],
)
def test_a_dry_run_of_an_older_system_changes_nothing(log: Decklog, tmp_path: Path, kind: Any, build: Any) -> None:
    build(tmp_path / "source")
    claims.check_dry_run(log, lambda log, **settings: kind(log, str(tmp_path / "source"), **settings).run())


@pytest.mark.parametrize(
    ("kind", "named", "message"),
    [
        (BazingaImport, {}, "no bazinga database"),
        (RunStoreImport, {}, "no RunStore"),
        (HermesImport, {"run_id": "hermes"}, "no board"),
        (VibeKanbanImport, {"run_id": "vibe-kanban"}, "no database of Vibe Kanban"),
        (LangGraphImport, {}, "no checkpoints of LangGraph"),
    ],
)
def test_another_database_is_refused(log: Decklog, tmp_path: Path, kind: Any, named: dict[str, str], message: str) -> None:
    db = apsw.Connection(str(tmp_path / "x.db"))
    db.execute("create table tasks (id)")
    db.close()

    with pytest.raises(Invalid, match=message):
        kind(log, str(tmp_path / "x.db"), **named).run()


Export = Callable[..., dict[str, Any]]
EXPORTS: dict[str, Export] = {
    "bazinga": lambda log, path: BazingaExport(log, str(path)).run(),
    "runstore": lambda log, path: RunStoreExport(log, str(path)).run(),
    "gaia": lambda log, path: GaiaExport(log, str(path)).run(),
    "beads": lambda log, path, **settings: BeadsExport(log, str(path), run_id="r", **settings).run(),
    "taskmaster": lambda log, path, **settings: TaskMasterExport(log, str(path), run_id="r", **settings).run(),
    "markdown": lambda log, path, **settings: MarkdownExport(log, str(path), run_id="r", **settings).run(),
}


@pytest.fixture
def filled(log: Decklog) -> Decklog:
    log.runs.start("Parse", run_id="r")
    log.tasks.add("r", "One", objective="x" * 200_000)
    return log


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_an_existing_file_is_not_overwritten(filled: Decklog, tmp_path: Path, export: Export) -> None:
    (tmp_path / "out").write_text("mine")

    with pytest.raises(Conflict, match="is there already"):
        export(filled, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_a_missing_folder_is_named(filled: Decklog, tmp_path: Path, export: Export) -> None:
    with pytest.raises(NotFound, match="no folder"):
        export(filled, tmp_path / "nowhere" / "out")


@pytest.mark.parametrize("name", ["beads", "taskmaster", "markdown"])
def test_a_full_disk_is_named_and_leaves_nothing_behind(filled: Decklog, tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(DiskFull, match="no room"):
            EXPORTS[name](filled, target / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert list(target.iterdir()) == []


@pytest.mark.parametrize(("name", "export"), [("beads", BeadsExport), ("taskmaster", TaskMasterExport)])
def test_an_export_imported_again_gives_the_same_log_and_the_same_file(tmp_path: Path, name: str, export: Any) -> None:
    written = [tmp_path / "first", tmp_path / "second"]
    kind, named, _ = IMPORTERS[name]
    with claims.fresh(tmp_path, "one") as log:
        _taker(name, tmp_path)(log)
        export(log, str(written[0]), **named).run()
        records, _ = claims.told_by(log)
    with claims.fresh(tmp_path, "two") as log:
        kind(log, str(written[0]), **named).run()
        export(log, str(written[1]), **named).run()
        assert claims.told_by(log)[0] == records
    assert written[0].read_bytes() == written[1].read_bytes()


@pytest.mark.parametrize("name", ["beads", "taskmaster", "markdown"])
def test_a_replaced_file_keeps_its_permissions(filled: Decklog, tmp_path: Path, name: str) -> None:
    path = tmp_path / "out"
    path.write_text("")
    path.chmod(0o664)

    EXPORTS[name](filled, path, replace=True)

    assert path.stat().st_mode & 0o777 == 0o664
    assert "One" in path.read_text()
