"""The program as a user runs it: a process of its own, in a folder of its own."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.location.locate import accept
from tests.programs import call


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        lines = self.out.splitlines()
        assert len(lines) == 1, self
        parsed: dict[str, Any] = json.loads(lines[0])
        return parsed

    @property
    def data(self) -> Any:
        return self.envelope["data"]


Program = Callable[..., Said]


@pytest.fixture
def decklog(tmp_path: Path) -> Program:
    """Run `decklog` with these words in the test's folder. No answer may ever be a traceback."""

    def run(*words: str, stdin: str | bytes = b"", cwd: Path | None = None, **variables: str) -> Said:
        own = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "100", **variables}
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = call(list(words), cwd=cwd or tmp_path, variables=own, stdin=given)
        said = Said(done.code, done.out.decode(errors="surrogateescape"), done.err.decode(errors="replace"))
        assert "Traceback" not in said.err + said.out, said.err + said.out
        return said

    return run


@pytest.fixture(scope="session")
def started_log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with one run in it that each test copies: making one takes longer than most commands."""
    path = tmp_path_factory.mktemp("started") / "decklog.db"
    with Decklog.open(path) as log:
        log.runs.start("a goal", run_id="run_1")
    return path


@pytest.fixture
def log_folder(tmp_path: Path, started_log_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log and one run in it, to which the user has said yes."""
    inside = tmp_path / ".decklog"
    inside.mkdir(mode=0o700)
    shutil.copy(started_log_file, inside / "decklog.db")
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(tmp_path / "home"))
        accept(str(inside), None, _made_at(started_log_file))
    return tmp_path


@cache
def _made_at(path: Path) -> str:
    with Decklog.open(path) as log:
        return log.db.made_at()
