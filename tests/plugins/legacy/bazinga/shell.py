"""Calls the program as a user does, and says what is expected of a call."""

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decklog.cli import run
from decklog.plugins.bazinga_project import log_path_for

ANY = object()


@dataclass(frozen=True)
class Answer:
    """What one call gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """A project folder with a database, and calls to it."""

    def __init__(self, root: Path, db: str | None = None) -> None:
        self.root = root
        self.db = db or str(root / "bazinga" / "bazinga.db")

    @property
    def log(self) -> str:
        """The log, which lies beside the file that readers open."""
        return log_path_for(self.db)

    @property
    def files(self) -> Path:
        return self.root / "files"

    def call(self, *words: str, quiet: bool = True) -> Answer:
        """Run one command in this process; FILES stands for the folder of prepared files."""
        spelled = [word.replace("FILES", str(self.files)) for word in words]
        return self.run("--db", self.db, *(["--quiet"] if quiet else []), *spelled)

    def run(self, *arguments: str) -> Answer:
        """Run the program with exactly these arguments."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["bazinga", *arguments])
        return Answer(code, out.getvalue(), err.getvalue())

    def ok(self, *words: str) -> Any:
        """Run a command that must succeed; give its JSON, or None when it printed nothing."""
        answer = self.call(*words)
        assert answer.code == 0, (words, answer)
        return answer.json if answer.out else None


@dataclass(frozen=True)
class Case:
    """One call and what must come of it."""

    words: tuple[str, ...]
    code: int
    check: Callable[[Answer], None]

    @property
    def name(self) -> str:
        return " ".join(self.words)[:90]


def gives(*words: str, **expected: Any) -> Case:
    """A call that prints an object with at least these values."""

    def check(answer: Answer) -> None:
        assert matches(answer.json, expected), (expected, answer.json)
        assert answer.err == ""

    return Case(words, 0, check)


def prints(*words: str, value: Any, code: int = 0) -> Case:
    """A call that prints exactly this JSON value, where dictionaries need only have the values named."""

    def check(answer: Answer) -> None:
        assert matches(answer.json, value), (value, answer.json)

    return Case(words, code, check)


def shows(*words: str, text: str) -> Case:
    """A call that prints a text."""

    def check(answer: Answer) -> None:
        assert text in answer.out

    return Case(words, 0, check)


def silent(*words: str) -> Case:
    """A call that succeeds and prints nothing."""

    def check(answer: Answer) -> None:
        assert (answer.out, answer.err) == ("", "")

    return Case(words, 0, check)


def refused(*words: str, because: str) -> Case:
    """A call that is refused on standard error and prints nothing else."""

    def check(answer: Answer) -> None:
        assert answer.out == ""
        assert because in answer.err, answer.err
        assert "Traceback" not in answer.err

    return Case(words, 1, check)


def refused_as_json(*words: str, because: str) -> Case:
    """A call that is refused with JSON on standard error."""

    def check(answer: Answer) -> None:
        assert answer.out == ""
        told = json.loads(answer.err)
        assert told["success"] is False
        assert because in told["error"], told

    return Case(words, 1, check)


def fails(*words: str, because: str, **more: Any) -> Case:
    """A call that prints `success: false` and exits with 1."""

    def check(answer: Answer) -> None:
        assert answer.json["success"] is False
        assert because in answer.json["error"], answer.json
        assert matches(answer.json, more)

    return Case(words, 1, check)


def matches(found: Any, expected: Any) -> bool:
    """Compare JSON values; an object may have more keys than are expected of it."""
    if expected is ANY:
        return True
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(key in found and matches(found[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(matches, found, expected))
    return type(found) is type(expected) and found == expected


def try_case(shell: Shell, case: Case) -> None:
    answer = shell.call(*case.words)
    assert answer.code == case.code, (case.words, answer)
    case.check(answer)


def python(*arguments: str) -> list[str]:
    """The command line of the program in a process of its own."""
    return [sys.executable, "-m", "decklog", "bazinga", *arguments]
