"""The commands: reports for programs and for people."""

import json
from pathlib import Path

import apsw
import pytest

from decklog import NotFound
from decklog.cli.call import Invocation
from decklog.cli.commands.exchange.exporting import export_bazinga
from decklog.cli.commands.exchange.importing import import_bazinga, import_gaia, import_runstore
from tests.plugins.importers.bazinga.bazinga_files import build
from tests.plugins.importers.other_files import build_gaia, build_runstore


def _call(tmp_path: Path, *words: str) -> Invocation:
    return Invocation(["--db", str(tmp_path / "log.db"), *words])


def test_a_report_is_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path / "in.db", 19)

    import_bazinga.main([str(tmp_path / "in.db"), "--dry-run"], obj=_call(tmp_path, "--json"), standalone_mode=False)

    report = json.loads(capsys.readouterr().out)["data"]
    assert (report["version"], report["dry_run"], report["totals"]["refused"]) == (19, True, 0)


def test_every_system_has_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path / "in.db", 19)
    build_runstore(tmp_path / "runs.db")
    build_gaia(tmp_path / "gaia")

    for command, name in ((import_bazinga, "in.db"), (import_runstore, "runs.db"), (import_gaia, "gaia")):
        command.main([str(tmp_path / name)], obj=_call(tmp_path), standalone_mode=False)
    shown = capsys.readouterr()
    assert "orchestration_logs" in shown.out
    assert "task_attempts" in shown.out
    assert "em_inbox" in shown.out
    assert "is kept as it was" in shown.err

    export_bazinga.main([str(tmp_path / "out.db")], obj=_call(tmp_path, "--json"), standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["data"]["tables"]["sessions"] >= 2


def test_rows_that_did_not_arrive_are_named_and_the_command_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.db"
    build(path, 19)
    db = apsw.Connection(str(path))
    logs = "insert into orchestration_logs (session_id, agent_type, content) values ('bazinga_1', 'developer', ?)"
    db.executemany(logs, [(f"{number} " + "x" * 900,) for number in range(120)])
    root, size = db.execute("select rootpage from sqlite_schema where name = 'orchestration_logs'").get, 4096
    db.close()
    damaged = bytearray(path.read_bytes())
    leaf = next(place for place in range(root + 8, len(damaged) // size) if b"xxxx" in damaged[place * size : (place + 1) * size])
    damaged[leaf * size : leaf * size + 200] = b"\xff" * 200
    path.write_bytes(damaged)

    code = import_bazinga.main([str(path)], obj=_call(tmp_path), standalone_mode=False)

    told = capsys.readouterr().err
    assert code == 1
    assert "orchestration_logs:" in told
    assert "is incomplete" in told


@pytest.mark.slow
def test_a_row_that_no_log_can_hold_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path / "in.db", 19)
    db = apsw.Connection(str(tmp_path / "in.db"))
    logs = "insert into orchestration_logs (session_id, agent_type, content) values ('bazinga_1', 'developer', ?)"
    db.execute(logs, ("x" * 30_000_000,))
    db.close()

    code = import_bazinga.main([str(tmp_path / "in.db")], obj=_call(tmp_path, "--json"), standalone_mode=False)

    answer = json.loads(capsys.readouterr().out)
    assert code == 1
    assert len(answer["data"]["losses"]) == len(answer["warnings"]) == 1
    assert "orchestration_logs" in answer["warnings"][0]


def test_neither_a_dry_run_nor_a_source_that_is_not_there_makes_a_log(tmp_path: Path) -> None:
    build(tmp_path / "in.db", 19)

    import_bazinga.main([str(tmp_path / "in.db"), "--dry-run"], obj=_call(tmp_path), standalone_mode=False)
    for command in (import_bazinga, import_runstore, import_gaia):
        with pytest.raises(NotFound):
            command.main([str(tmp_path / "missing")], obj=_call(tmp_path), standalone_mode=False)

    assert [path.name for path in tmp_path.iterdir()] == ["in.db"]
