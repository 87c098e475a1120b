"""The commands: reports for programs and for people."""

import json
from pathlib import Path

import pytest

from decklog.cli.call import Call
from decklog.cli.commands.exporting import export_bazinga
from decklog.cli.commands.importing import import_bazinga, import_gaia, import_runstore
from tests.importers.bazinga.bazinga_files import build
from tests.importers.other_files import build_gaia, build_runstore


def _call(tmp_path: Path, *words: str) -> Call:
    return Call(["--db", str(tmp_path / "log.db"), *words])


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
