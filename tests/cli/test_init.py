"""Making a log: in every combination of what is named and what is there, one log, and the one that calls then mean."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from decklog.cli import run
from tests.cli.conftest import Program

Here = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Run a command in this process, in a folder of its own and with an environment that says nothing of logs."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("DECKLOG_DB", raising=False)

    def call(*words: str, cwd: Path, env: str | None = None) -> tuple[int, dict[str, Any]]:
        cwd.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(cwd)
        with pytest.MonkeyPatch.context() as patch:
            if env is not None:
                patch.setenv("DECKLOG_DB", env)
            out = io.StringIO()
            with redirect_stdout(out), redirect_stderr(io.StringIO()):
                code = run([*words, "--json"])
        return code, json.loads(out.getvalue())

    return call


def _logs(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*.db") if b"SQLite" in path.read_bytes()[:16]}


_NAMED = (None, "named.db")
_ENVIRONMENT = (None, "env.db")
_HAS = ("nothing", "its own", "an address")
_WHERE = ("root", "below")


@pytest.mark.slow
@pytest.mark.parametrize("is_repository", [True, False], ids=["repository", "plain"])
def test_init_makes_or_adopts_exactly_one_log_and_later_calls_mean_it(tmp_path: Path, here: Here, is_repository: bool) -> None:
    for number, (named, env, has, where) in enumerate(product(_NAMED, _ENVIRONMENT, _HAS, _WHERE)):
        case = f"--db {named}, DECKLOG_DB {env}, the folder has {has}, called from {where}"
        root = tmp_path / str(number) / "project"
        cwd = root / "deep" if where == "below" else root
        cwd.mkdir(parents=True)
        if is_repository:
            (root / ".git").mkdir()
        elsewhere = root.parent / "elsewhere.db"
        if has == "its own":
            assert here("init", cwd=root)[0] == 0
        elif has == "an address":
            assert here("init", "--db", str(elsewhere), cwd=root)[0] == 0
        before = _logs(root.parent)
        words = ["--db", str(root.parent / named)] if named else []
        variable = str(root.parent / env) if env else None
        code, said = here("init", *words, cwd=cwd, env=variable)
        made = _logs(root.parent) - before
        if named is not None and has != "nothing":
            assert (code, made) == (5, set()), case
            assert said["error"]["details"]["has"] in str(before), case
            continue
        assert code == 0, (case, said)
        target = said["data"]["target"]
        assert made <= {target}, case
        assert target in _logs(root.parent), case
        assert here("runs", "start", "x", *words, cwd=cwd, env=variable)[0] == 0, case
        if not (env and named):
            assert here("where", cwd=cwd, env=variable)[1]["data"]["target"] == target, case
        if has == "nothing":
            assert here("where", cwd=cwd)[1]["data"]["target"] == target, f"{case}: remembered for whoever names nothing"
        elif env:
            assert said["warnings"], f"{case}: two logs, and nobody is told"
        again = here("init", *words, cwd=cwd, env=variable)[1]
        assert again["data"]["already"] is True, case
        assert again["data"]["target"] == target, case


def test_a_folder_of_its_own_inside_of_a_project_is_named(tmp_path: Path, here: Here) -> None:
    (tmp_path / "p" / ".git").mkdir(parents=True)
    here("init", cwd=tmp_path / "p" / "a")
    assert (tmp_path / "p" / ".decklog" / "decklog.db").exists(), "a repository's log is at its root"
    assert here("init", ".", cwd=tmp_path / "p" / "a")[1]["data"]["already"] is False
    assert here("where", cwd=tmp_path / "p" / "a")[1]["data"]["target"] == str(tmp_path / "p" / "a" / ".decklog" / "decklog.db")


def test_switching_keeps_the_old_log_and_says_where_it_is(tmp_path: Path, here: Here) -> None:
    folder, other = tmp_path / "p", str(tmp_path / "other.db")
    here("init", cwd=folder)
    here("runs", "start", "kept", "--run", "r", cwd=folder)
    code, said = here("init", "--db", other, cwd=folder)
    assert (code, said["error"]["code"]) == (5, "conflict")
    assert here("move", other, cwd=folder)[0] == 0
    code, said = here("init", "--db", other, "--switch", cwd=folder)
    assert code == 0
    assert str(folder / ".decklog" / "decklog.db") in said["warnings"][0]
    assert here("runs", "show", "r", cwd=folder)[1]["data"]["run"]["goal"] == "kept"
    assert here("where", cwd=folder)[1]["data"]["target"] == other
    own = str(folder / ".decklog" / "decklog.db")
    assert here("init", "--db", own, "--switch", cwd=folder)[0] == 0
    assert here("where", cwd=folder)[1]["data"]["target"] == own


def test_init_beside_the_address_of_a_server_makes_no_second_log(tmp_path: Path, here: Here, empty_postgres_url: str) -> None:
    assert here("init", "--db", empty_postgres_url, cwd=tmp_path / "p")[0] == 0
    assert here("init", cwd=tmp_path / "p")[0] == 0
    assert here("init", ".", cwd=tmp_path / "p")[0] == 0
    assert _logs(tmp_path) == set()


def test_a_repository_without_a_log_never_writes_to_the_users_own(tmp_path: Path, here: Here) -> None:
    assert here("init", "--user", cwd=tmp_path / "home")[0] == 0
    assert here("runs", "start", "of nobody's repository", cwd=tmp_path / "plain")[0] == 0
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    for words in (["runs", "start", "x"], ["runs", "find"], ["import", "jsonl", "x.jsonl"]):
        code, said = here(*words, cwd=tmp_path / "repository" / "src")
        assert code == 3, words
        assert "decklog init" in said["error"]["hint"], words
    assert here("init", cwd=tmp_path / "repository" / "src")[0] == 0
    assert here("runs", "find", cwd=tmp_path / "repository" / "src")[1]["data"] == []


def test_migrate_makes_no_log_at_a_mistyped_path(tmp_path: Path, here: Here) -> None:
    assert here("migrate", "--db", "mistyped.db", cwd=tmp_path)[0] == 3
    assert _logs(tmp_path) == set()


def test_a_relative_path_is_remembered_from_where_it_was_named(tmp_path: Path, here: Here) -> None:
    here("init", "--db", "x/log.db", cwd=tmp_path / "p")
    (tmp_path / "p" / "deep").mkdir()
    assert here("where", cwd=tmp_path / "p" / "deep")[1]["data"]["target"] == str(tmp_path / "p" / "x" / "log.db")


def test_init_tells_a_person_what_was_made_and_what_comes_next(decklog: Program, tmp_path: Path) -> None:
    said = decklog("init")
    assert said.out.splitlines() == [
        f"Created a log: {tmp_path}/.decklog/decklog.db",
        'Next: decklog runs start "What is to be done"',
    ]
    assert decklog("init").out.startswith("Using the log: ")
