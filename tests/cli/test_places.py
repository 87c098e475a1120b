"""How a call finds its log."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from decklog.location.locate import without_password
from tests.cli.conftest import Program


def test_init_makes_a_log_and_can_be_repeated(decklog: Program, tmp_path: Path) -> None:
    first, second = decklog("init", "--json"), decklog("init", "--json")
    made = str(tmp_path / ".decklog" / "decklog.db")
    assert (first.data["target"], first.data["already"]) == (made, False)
    assert second.data["already"] is True
    assert stat.S_IMODE((tmp_path / ".decklog").stat().st_mode) == 0o700
    assert (tmp_path / ".decklog" / ".gitignore").read_text() == "*\n"
    assert decklog("init", "elsewhere").code == 0
    assert (tmp_path / "elsewhere" / ".decklog" / "decklog.db").exists()


def test_without_a_log_a_call_says_how_to_make_one(decklog: Program, tmp_path: Path) -> None:
    said = decklog("runs", "find")
    assert said.code == 3
    assert "decklog init" in said.err
    assert not (tmp_path / "data").exists(), "looking makes nothing"


@pytest.mark.slow
def test_db_may_stand_anywhere(decklog: Program, tmp_path: Path) -> None:
    assert decklog("init", "--db", "mine.db").code == 0
    for words in (
        ["--db", "mine.db", "runs", "find"],
        ["runs", "--db", "mine.db", "find"],
        ["runs", "find", "--db", "mine.db"],
        ["runs", "find", "--db=mine.db"],
        ["runs", "find", f"--db=sqlite:///{tmp_path}/mine.db"],
    ):
        assert decklog(*words).code == 0, words


@pytest.mark.slow
def test_named_beats_environment_beats_folder_beats_home(decklog: Program, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    decklog("init")
    decklog("init", "--db", "env.db")
    env = str(tmp_path / "env.db")

    def where(*words: str, **variables: str) -> tuple[str, str]:
        said = decklog("where", *words, "--json", cwd=tmp_path / "a" / "b", **variables)
        return said.data["target"], said.data["because"]

    assert where("--db", "x.db", DECKLOG_DB=env) == ("x.db", "named with --db")
    assert where(DECKLOG_DB=env) == (env, "from the environment variable DECKLOG_DB")
    assert where() == (str(tmp_path / ".decklog" / "decklog.db"), f"found in {tmp_path / '.decklog'}")
    (tmp_path / ".decklog" / "decklog.db").unlink()
    target, because = where()
    assert target == str(tmp_path / "data" / "decklog" / "decklog.db")
    assert "no folder above" in because


@pytest.mark.slow
def test_a_linked_worktree_shares_the_log_of_the_main_one(decklog: Program, tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "elsewhere" / "linked"
    main.mkdir()

    def git(*words: str) -> None:
        settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *settings, *words], cwd=main, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "x")
    git("worktree", "add", str(linked))
    decklog("init", cwd=main)
    (linked / "deep").mkdir()
    said = decklog("where", "--json", cwd=linked / "deep")
    assert os.path.samefile(said.data["target"], main / ".decklog" / "decklog.db")
    assert "main worktree" in said.data["because"]
    decklog("init", ".", cwd=linked)
    assert decklog("where", "--json", cwd=linked).data["target"] == str(linked / ".decklog" / "decklog.db")


def test_git_file_that_names_anothers_worktree_does_not_borrow_its_log(decklog: Program, tmp_path: Path) -> None:
    main, linked, hostile = tmp_path / "main", tmp_path / "linked", tmp_path / "hostile"
    main.mkdir()
    hostile.mkdir()
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init"], ["commit", "--allow-empty", "-m", "x"], ["worktree", "add", str(linked)]):
        subprocess.run(["git", *settings, *words], cwd=main, check=True, capture_output=True)
    decklog("init", cwd=main)
    (hostile / ".git").write_text((linked / ".git").read_text())
    assert decklog("where", "--json", cwd=hostile).data["target"] == str(hostile / ".decklog" / "decklog.db")


@pytest.mark.slow
def test_init_in_a_new_repository_does_not_use_a_log_above_its_root(decklog: Program, tmp_path: Path) -> None:
    parent, repo = tmp_path / "parent", tmp_path / "parent" / "repo"
    (repo / "deep").mkdir(parents=True)
    decklog("init", cwd=parent)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    said = decklog("init", "--json", cwd=repo / "deep")
    assert (said.data["target"], said.data["already"]) == (str(repo / ".decklog" / "decklog.db"), False)
    assert decklog("where", "--json", cwd=repo / "deep").data["target"] == str(repo / ".decklog" / "decklog.db")


def test_init_below_a_folder_with_an_address_does_not_make_that_log(decklog: Program, tmp_path: Path) -> None:
    parent, repo = tmp_path / "parent", tmp_path / "parent" / "repo"
    repo.mkdir(parents=True)
    decklog("init", "--db", str(tmp_path / "elsewhere.db"), cwd=parent)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    assert decklog("init", "--json", cwd=repo).data["target"] == str(repo / ".decklog" / "decklog.db")


@pytest.mark.slow
def test_a_folder_remembers_a_server(decklog: Program, tmp_path: Path, empty_postgres_url: str) -> None:
    assert decklog("init", "--db", empty_postgres_url).code == 0
    assert stat.S_IMODE((tmp_path / ".decklog" / "address").stat().st_mode) == 0o600
    assert decklog("runs", "start", "on a server", "--run", "run_1", "--json").data["goal"] == "on a server"
    assert decklog("doctor", "--json").data["engine"] == "postgres"
    assert decklog("verify").code == 0


@pytest.mark.slow
def test_a_server_without_tables_is_migrated_only_when_asked(decklog: Program, empty_postgres_url: str) -> None:
    refused = decklog("runs", "find", "--db", empty_postgres_url, "--json")
    assert (refused.code, refused.envelope["error"]["code"]) == (1, "schema_too_old")
    assert "decklog migrate" in refused.envelope["error"]["hint"]
    assert decklog("migrate", "--db", empty_postgres_url).code == 0
    assert decklog("runs", "find", "--db", empty_postgres_url).code == 0


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ana@host/db", "postgresql://ana@host/db"),
        ("postgresql://ana:{secret}@host:5432/db", "postgresql://ana:***@host:5432/db"),
        ("postgres://ana:{secret}@/db?host=/run/pg", "postgres://ana:***@/db?host=/run/pg"),
        (
            "postgresql://host/db?user=ana&password={secret}&sslpassword={secret}",
            "postgresql://host/db?user=ana&password=***&sslpassword=***",
        ),
        ("postgresql:///db", "postgresql:///db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    for secret in ("hunter" + "2", "p@ss/w:rd", "a:b@c"):
        assert without_password(address.format(secret=secret)) == shown


@pytest.mark.slow
def test_the_password_of_an_address_is_never_shown(decklog: Program) -> None:
    word = "open" + "Sesame9"
    for address, shown in (
        (f"postgresql://ana:{word}@127.0.0.1:9/log", "postgresql://ana:***@127.0.0.1:9/log"),
        (f"postgresql://ana:p@{word}@127.0.0.1:9/log?sslmode=disable", "postgresql://ana:***@127.0.0.1:9/log?sslmode=disable"),
        (f"postgres://127.0.0.1:9/log?user=ana&password={word}", "postgres://127.0.0.1:9/log?user=ana&password=***"),
    ):
        assert decklog("where", "--json", DECKLOG_DB=address).data["target"] == shown
        for words in (["where"], ["init", "--db", address], ["runs", "find"], ["migrate"], ["doctor"], ["restore", "file"]):
            said = decklog(*words, DECKLOG_DB=address)
            assert word not in said.out + said.err, words
    said = decklog("runs", "find", "--db", f"mysql://ana:{word}@127.0.0.1/log")
    assert (said.code, word in said.err) == (1, False)
