"""After a project was taken over, everyone who asked its file or its scripts is answered as before."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest

from decklog.cli import run
from decklog.plugins.importers.bazinga.take_over import TakeOver
from tests.plugins.importers.bazinga.bazinga_files import build
from tests.plugins.importers.bazinga.recorded_calls import DASHBOARD, MORE, POLLED, PROMPT_BUILDER, SCRIPTS, VALUES

BY_SQL = {"dashboard": DASHBOARD, "prompt builder": PROMPT_BUILDER}
# Readers are programs of their own, with a SQLite of their own, that open the file for reading alone.
READER = """
import json, sqlite3, sys
file, asked = sys.argv[1], json.load(sys.stdin)
db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
def answer(sql, parameters):
    found = db.execute(sql, parameters)
    return [[column[0] for column in found.description], found.fetchall()]
json.dump([answer(sql, parameters) for sql, parameters in asked], sys.stdout)
"""


def asked(path: Path, questions: Iterable[tuple[str, list[object]]]) -> list[Any]:
    """Ask a file as another program does; give the columns and rows of each answer."""
    words = [sys.executable, "-c", READER, str(path)]
    done = subprocess.run(words, input=json.dumps(list(questions)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def answers(path: Path, questions: dict[str, str]) -> dict[str, Any]:
    return dict(zip(questions, asked(path, [(sql, []) for sql in questions.values()]), strict=True))


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The file as the older system left it, and the one that readers open after the project was taken over."""
    root = tmp_path_factory.mktemp("recorded")
    old, new = root / "old.db", root / "project/bazinga/bazinga.db"
    new.parent.mkdir(parents=True)
    build(old, 19, more=MORE)
    db = apsw.Connection(str(old))
    db.execute("update task_groups set context_references = '[1]' where context_references is not null")
    db.close()
    new.write_bytes(old.read_bytes())
    TakeOver(str(root / "project")).run()
    return old, new


@pytest.mark.parametrize("reader", BY_SQL)
def test_a_reader_by_sql_gets_the_answers_that_it_got_before(projects: tuple[Path, Path], reader: str) -> None:
    old, new = projects
    before, after = answers(old, BY_SQL[reader]), answers(new, BY_SQL[reader])
    assert [name for name in before if _same(before[name]) != _same(after[name])] == []
    assert [name for name, (_, rows) in before.items() if not rows] == []


def _script(project: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    code = run(["bazinga", "--db", str(project), "--quiet", *words])
    out, err = capsys.readouterr()
    assert code == 0, (words, err)
    return json.loads(out) if out else None


@pytest.mark.parametrize("call", SCRIPTS)
def test_an_agents_call_is_answered_with_the_rows_of_the_old_file(
    projects: tuple[Path, Path], capsys: pytest.CaptureFixture[str], call: str
) -> None:
    old, new = projects
    names, rows = answers(old, {call: SCRIPTS[call]})[call]
    found = _script(new, capsys, *call.split())
    given = found if isinstance(found, list) else [found]

    assert len(given) == len(rows) > 0
    for row, answer in zip(rows, given, strict=True):
        for name, value in zip(names, row, strict=True):
            assert _says(_read(answer[name]), _read(value)), (name, value, answer[name])


def _says(found: object, told: object) -> bool:
    """Say whether an answer says what was told; a phase of a plan may say more of itself."""
    if isinstance(told, list) and isinstance(found, list) and len(found) == len(told):
        return all(map(_says, found, told))
    if isinstance(told, dict) and isinstance(found, dict):
        return all(name in found and _says(found[name], value) for name, value in told.items())
    return found == told


@pytest.mark.parametrize("call", VALUES)
def test_an_agents_call_is_answered_with_the_value_of_the_old_file(
    projects: tuple[Path, Path], capsys: pytest.CaptureFixture[str], call: str
) -> None:
    old, new = projects
    ((value,),) = answers(old, {call: VALUES[call]})[call][1]
    assert _script(new, capsys, *call.split()) == json.loads(value)


def _same(answer: Any) -> Any:
    names, rows = answer
    return names, [[_read(value) for value in row] for row in rows]


def _read(value: object) -> object:
    """Read JSON as what it says: an answer may have it as text or as itself, and its spelling is nobody's.

    The older system wrote the end of a session in another way than all its other times; there is one way now.
    """
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return value.replace("T", " ") if isinstance(value, str) and value[4:5] == "-" and value[10:11] == "T" else value


def test_who_polls_sees_what_agents_write_in_every_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bazinga/bazinga.db"
    file.parent.mkdir()
    build(file, 19, more=MORE)
    (_, [[last_log]]), (_, [[last_tokens]]) = asked(
        file, [("select max(id) from orchestration_logs", []), ("select max(id) from token_usage", [])]
    )
    TakeOver(str(tmp_path)).run()

    _script(file, capsys, "create-session", "bazinga_9", "simple", "Something new")
    written = [_script(file, capsys, "log-interaction", session, "pm", f"to {session}") for session in ("bazinga_9", "bazinga_2")]
    _script(file, capsys, "log-tokens", "bazinga_9", "pm", "77")
    _script(file, capsys, "update-task-group", "G1", "bazinga_2", "--status", "in_progress")

    seen = asked(
        file,
        [
            (POLLED["sessions"], []),
            (POLLED["logs"], [last_log]),
            (POLLED["groups"], ["2025-12-31 00:00:00"]),
            (POLLED["tokens"], [last_tokens]),
        ],
    )
    sessions, logs, groups, tokens = (rows for _, rows in seen)
    assert sessions[0] == ["bazinga_9", "active"]
    assert [row[:2] for row in logs] == [[last_log + 1, "bazinga_9"], [last_log + 2, "bazinga_2"]]
    assert [answer["log_id"] for answer in written] == [last_log + 1, last_log + 2]
    assert groups == [["bazinga_2", "G1", "in_progress"]]
    assert tokens == [[last_tokens + 1, "bazinga_9", 77]]
