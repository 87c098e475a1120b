"""The program as a user runs it: a process of its own, in a folder of its own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture
def log_folder(tmp_path: Path, decklog: Program) -> Path:
    """A folder with a log and one run in it."""
    assert decklog("init").code == 0
    assert decklog("runs", "start", "a goal", "--run", "run_1").code == 0
    return tmp_path
