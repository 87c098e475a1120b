import sys
from pathlib import Path

import pytest

from decklog.cli.commands.demo import _program_name
from tests.cli.conftest import Program, decklog

__all__ = ["decklog"]


@pytest.mark.slow
def test_demonstration_of_origins_is_the_same_after_a_rebase(decklog: Program) -> None:
    answer = decklog("demo", "--provenance")
    assert answer.code == 0, answer.err
    blamed = [line for line in answer.out.splitlines() if ("def with_tax" in line and ") def" in line) or "def label" in line]
    assert [("claude tax" in line, "codex euros" in line) for line in blamed] == [(True, False), (False, True)] * 2
    assert "prompt    Prices need tax. Refuse negative amounts." in answer.out
    assert "Origins unchanged by the rebase." in answer.out


def test_commands_to_try_next_work_in_every_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/decklog").touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/decklog", "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert _program_name() == str(tmp_path / "bin/decklog")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert _program_name() == "decklog"
