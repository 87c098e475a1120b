import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.cli import run
from decklog.transfer.doctor import find_problems, find_writers
from tests.transfer.conftest import fill


def about(log: Decklog, *, deep: bool = False) -> list[str]:
    return [finding["about"] for finding in find_problems(log, log.db.facts(), deep=deep)]


def doctor(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run(["--db", str(path), "--json", "doctor", *words])
    data: dict[str, Any] = json.loads(capsys.readouterr().out)["data"]
    return code, data


def test_a_healthy_log_has_no_findings(log: Decklog, clock: ManualClock) -> None:
    fill(log, clock)
    assert find_problems(log, log.db.facts(), deep=True) == []


def test_a_lease_that_ended_long_ago_is_found_with_what_mends_it(log: Decklog, clock: ManualClock) -> None:
    fill(log, clock)
    assert log.tasks.claim("run_1", worker="gone", lease_seconds=60) is not None
    clock.advance(minutes=30)
    assert about(log) == []
    clock.advance(hours=1)
    [finding] = find_problems(log, log.db.facts())
    assert "gone" in finding["what"]
    assert "decklog tasks claim run_1" in finding["mend"]
    log.tasks.claim("run_1", worker="next")
    assert about(log) == []


def test_an_unreadable_page_is_found(tmp_path: Path, clock: ManualClock, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path, clock=clock) as log:
        fill(log, clock)
    page = path.read_bytes().index(b"entry 150 of the lexer") // 4096
    with open(path, "r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xa5" * 4096)
    code, data = doctor(path, capsys)
    assert code == 1
    assert data["findings"][0]["about"] == "page"
    assert "decklog recover" in data["findings"][0]["mend"]
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 3000)
    code, data = doctor(path, capsys)
    assert (code, data["findings"][0]["about"]) == (1, "page")


def test_only_a_deep_look_finds_a_chain_that_does_not_verify(
    tmp_path: Path, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path, clock=clock) as log:
        fill(log, clock)
    path.write_bytes(path.read_bytes().replace(b"entry 17 of the lexer", b"entry 17 of the Lexer"))
    assert doctor(path, capsys)[0] == 0
    code, data = doctor(path, capsys, "--deep")
    assert code == 1
    assert data["findings"][0]["about"] == "chain"


def test_files_that_others_can_read_are_found(tmp_path: Path, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock)
        os.chmod(tmp_path / "log.db", 0o644)
        [finding] = find_problems(log, log.db.facts())
        assert finding["mend"] == f"chmod 600 {tmp_path / 'log.db'}"


def test_who_holds_the_write_lock_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    program = (
        "import sys; from decklog import Decklog; log = Decklog.open(sys.argv[1])\n"
        "with log.transaction():\n    print('held', flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"held\n"
    with Decklog.open(path, read_only=True) as log:
        found = find_writers(log)
        writer.stdin.close()
        writer.wait()
        writer.stdout.close()
        assert find_writers(log) == []
    if os.path.exists("/proc/locks"):
        assert [holder["pid"] for holder in found] == [writer.pid]


def test_a_budget_whose_sums_are_not_its_charges_is_found(log: Decklog, clock: ManualClock) -> None:
    fill(log, clock)
    budget = log.budgets.set("run", scope_id="run_1", limit_microdollars=1000)
    log.ledger.charge("m", input_tokens=5, cost_microdollars=100, run_id="run_1")
    assert about(log) == []
    log.db.write(lambda: log.db.count("update budget_days set microdollars = 1", {}))
    [finding] = find_problems(log, log.db.facts())
    assert budget.id in finding["what"]
    assert finding["mend"] == "decklog budgets rebuild"
    log.budgets.rebuild()
    assert about(log) == []


def test_what_doctor_says_mends_a_file_that_is_not_in_wal_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import apsw

    path = tmp_path / "log.db"
    Decklog.open(path).close()
    apsw.Connection(str(path)).execute("pragma journal_mode = delete")
    code, data = doctor(path, capsys)
    assert (code, data["findings"][0]["mend"]) == (1, "decklog migrate")
    assert run(["--db", str(path), "--json", "migrate"]) == 0
    capsys.readouterr()
    code, data = doctor(path, capsys)
    assert (code, data["journal_mode"]) == (0, "wal")
