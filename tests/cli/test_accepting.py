"""Whose log a call uses: one that was found in a folder only if this user made it there, or said yes to it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import Program

OTHER_USER = 65534
only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@pytest.fixture
def shipped(decklog: Program, tmp_path: Path) -> Path:
    """A repository that brings a log along, made on another machine by somebody else."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    elsewhere = {"XDG_CONFIG_HOME": str(tmp_path / "other-settings")}
    assert decklog("init", cwd=origin, **elsewhere).code == 0
    assert decklog("runs", "start", "theirs", "--run", "theirs", cwd=origin, **elsewhere).code == 0

    def git(*words: str, cwd: Path = origin) -> None:
        settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *settings, *words], cwd=cwd, check=True, capture_output=True)

    git("init")
    git("add", "--force", ".decklog/decklog.db")
    git("commit", "-m", "x")
    git("clone", str(origin), str(clone), cwd=tmp_path)
    return clone


def refusal(decklog: Program, folder: Path, *words: str, **variables: str) -> str:
    said = decklog(*(words or ("runs", "find")), "--json", cwd=folder, **variables)
    assert (said.code, said.envelope["error"]["code"]) == (4, "not_accepted"), said
    assert "decklog accept" in said.envelope["error"]["hint"]
    message: str = said.envelope["error"]["message"]
    return message


@pytest.mark.slow
def test_a_log_that_came_with_a_clone_is_not_used_without_a_yes(decklog: Program, shipped: Path) -> None:
    (shipped / "deep").mkdir()
    before = (shipped / ".decklog" / "decklog.db").read_bytes()
    for words in (
        ("runs", "find"),
        ("runs", "start", "mine"),
        ("trust", "show"),
        ("verify",),
        ("doctor",),
        ("migrate",),
        ("init",),
        ("init", "--outside"),
        ("backup", "copy.db"),
        ("export", "jsonl", "out"),
        ("restore", str(shipped / ".decklog" / "decklog.db")),
    ):
        folder = shipped if words[0] == "init" else shipped / "deep"
        assert "was not created by you" in refusal(decklog, folder, *words)
    assert (shipped / ".decklog" / "decklog.db").read_bytes() == before
    assert sorted(os.listdir(shipped / ".decklog")) == ["decklog.db"]
    said = decklog("bazinga", "list-sessions", cwd=shipped / "deep")
    assert (said.code, "was not created by you" in said.err) == (1, True)


@pytest.mark.slow
def test_where_tells_of_a_log_that_is_not_used(decklog: Program, shipped: Path) -> None:
    said = decklog("where", "--json", cwd=shipped).data
    assert said["target"] == str(shipped / ".decklog" / "decklog.db")
    assert "was not created by you" in said["problem"]
    assert decklog("accept", cwd=shipped).code == 0
    assert "problem" not in decklog("where", "--json", cwd=shipped).data


@pytest.mark.slow
def test_after_a_yes_it_is_used_and_the_yes_lies_outside_of_the_repository(
    decklog: Program, shipped: Path, tmp_path: Path
) -> None:
    said = decklog("accept", str(shipped), "--json")
    assert said.data["accepted"] is True
    assert [run["id"] for run in decklog("runs", "find", "--json", cwd=shipped).data] == ["theirs"]
    kept = tmp_path / "home" / ".config" / "decklog" / "accepted"
    assert kept.stat().st_mode & 0o777 == 0o600
    # It is this user's yes, of this place, and no other's.
    refusal(decklog, shipped, XDG_CONFIG_HOME=str(tmp_path / "third-settings"))
    moved = shipped.rename(tmp_path / "moved")
    refusal(decklog, moved)


@pytest.mark.slow
def test_what_was_named_needs_no_other_yes(decklog: Program, shipped: Path) -> None:
    target = str(shipped / ".decklog" / "decklog.db")
    assert decklog("runs", "find", "--db", target, cwd=shipped).code == 0
    assert decklog("runs", "find", cwd=shipped, DECKLOG_DB=target).code == 0


@pytest.mark.slow
def test_an_address_that_came_along_is_not_used_without_a_yes(decklog: Program, shipped: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    Decklog.open(elsewhere).close()
    shutil.rmtree(shipped / ".decklog")
    (shipped / ".decklog").mkdir()
    (shipped / ".decklog" / "address").write_text(f"{elsewhere}\n")
    refusal(decklog, shipped)
    assert decklog("accept", cwd=shipped).code == 0
    assert decklog("runs", "find", cwd=shipped).code == 0
    (shipped / ".decklog" / "address").write_text("postgresql://nobody@127.0.0.1:1/x\n")
    assert "leads to another log" in refusal(decklog, shipped)


@pytest.mark.slow
def test_a_log_that_a_pull_put_in_the_place_of_the_own_one_is_not_used(decklog: Program, shipped: Path, log_folder: Path) -> None:
    own = log_folder / ".decklog" / "decklog.db"
    # As git does it with a file that is ignored here and tracked there.
    shutil.copy(shipped / ".decklog" / "decklog.db", own)
    for beside in ("decklog.db-wal", "decklog.db-shm"):
        (log_folder / ".decklog" / beside).unlink(missing_ok=True)
    assert "created at another time" in refusal(decklog, log_folder)


def test_a_log_that_an_agent_put_into_a_folder_of_the_project_is_not_used(decklog: Program, log_folder: Path) -> None:
    (log_folder / "sub").mkdir()
    shutil.copytree(log_folder / ".decklog", log_folder / "sub" / ".decklog")
    refusal(decklog, log_folder / "sub")
    (log_folder / "linked").mkdir()
    (log_folder / "linked" / ".decklog").symlink_to(log_folder / "sub" / ".decklog")
    refusal(decklog, log_folder / "linked")
    assert decklog("runs", "find").code == 0


@pytest.mark.slow
def test_a_log_that_was_restored_from_its_backup_is_still_the_own_one(decklog: Program, log_folder: Path) -> None:
    assert decklog("backup", "copy.db").code == 0
    assert decklog("restore", "copy.db").code == 0
    assert decklog("runs", "find").code == 0
    Decklog.open(log_folder / "other.db").close()
    assert decklog("restore", "other.db").code == 0
    assert decklog("runs", "find", "--json").data == []


@pytest.mark.slow
def test_what_was_imported_after_a_backup_is_imported_again_after_a_restore(decklog: Program, log_folder: Path) -> None:
    said = {"role": "user", "content": "Fix it"}
    line = {"type": "user", "sessionId": "s1", "uuid": "u1", "timestamp": "2026-11-15T12:00:00Z", "cwd": "/repo", "message": said}
    (log_folder / "s1.jsonl").write_text(json.dumps(line) + "\n")
    assert decklog("backup", "copy.db").code == 0
    assert decklog("import", "claude", "s1.jsonl").code == 0
    assert decklog("restore", "copy.db").code == 0

    assert decklog("import", "claude", "s1.jsonl", "--json").data["new"] > 0

    assert "claude-s1" in {run["id"] for run in decklog("runs", "find", "--json").data}


@pytest.mark.slow
def test_below_a_log_that_is_not_used_a_folder_can_have_its_own(decklog: Program, shipped: Path) -> None:
    (shipped / "mine").mkdir()
    said = decklog("init", cwd=shipped / "mine")
    assert (said.code, "decklog init ." in said.err) == (4, True)
    assert decklog("init", ".", cwd=shipped / "mine").code == 0
    assert decklog("runs", "find", cwd=shipped / "mine").code == 0


@pytest.mark.slow
@only_root
def test_another_users_log_above_is_not_used(decklog: Program, log_folder: Path) -> None:
    (log_folder / "below").mkdir()
    for path in (log_folder / ".decklog", log_folder / ".decklog" / "decklog.db"):
        os.chown(path, OTHER_USER, -1)
    assert "belongs to another user" in refusal(decklog, log_folder / "below")
    kept = log_folder / "home" / ".config" / "decklog" / "accepted"
    kept.unlink()
    assert "belongs to the user nobody, not to you" in refusal(decklog, log_folder / "below")
    assert decklog("accept", cwd=log_folder / "below").code == 0
    assert decklog("runs", "find", cwd=log_folder / "below").code == 0


@only_root
def test_a_file_that_another_user_put_into_the_own_folder_is_not_used(decklog: Program, log_folder: Path) -> None:
    os.chown(log_folder / ".decklog" / "decklog.db", OTHER_USER, -1)
    assert "belongs to another user" in refusal(decklog, log_folder)


@pytest.mark.slow
@only_root
def test_a_list_of_yeses_that_another_user_could_write_counts_for_nothing(decklog: Program, log_folder: Path) -> None:
    kept = log_folder / "home" / ".config" / "decklog" / "accepted"
    kept.chmod(0o666)
    refusal(decklog, log_folder)
    kept.chmod(0o600)
    assert decklog("runs", "find").code == 0
    os.chown(kept, OTHER_USER, -1)
    refusal(decklog, log_folder)
    # Whoever became root by sudo goes on with what is theirs.
    assert decklog("runs", "find", SUDO_UID=str(OTHER_USER)).code == 0


@pytest.mark.slow
def test_a_name_with_odd_signs_is_remembered(decklog: Program, tmp_path: Path) -> None:
    for name in ("tab\tand\nline", "back\\slash", "Ümläut"):
        folder = tmp_path / name
        folder.mkdir()
        assert decklog("init", cwd=folder).code == 0
        assert decklog("runs", "find", cwd=folder).code == 0, name


@pytest.mark.slow
def test_a_log_laid_outside_leaves_only_its_address(decklog: Program, tmp_path: Path) -> None:
    said = decklog("init", "--outside", "--json")
    target = Path(said.data["target"])
    assert target.is_relative_to(tmp_path / "data" / "decklog")
    assert sorted(os.listdir(tmp_path / ".decklog")) == [".gitignore", "address"]
    assert decklog("runs", "start", "a goal", "--run", "run_1").code == 0
    assert decklog("where", "--json").data["target"] == str(target)
    again = decklog("init", "--outside", "--json").data
    assert (again["target"], again["already"]) == (str(target), True)
    # An agent that writes another address gains nothing by it.
    (tmp_path / ".decklog" / "address").write_text(str(tmp_path / "forged.db"))
    refusal(decklog, tmp_path)


@pytest.mark.slow
def test_a_log_with_runs_is_taken_along_outside(decklog: Program, log_folder: Path) -> None:
    said = decklog("init", "--outside", "--json")
    assert "stays as it is" in said.envelope["warnings"][0]
    assert decklog("where", "--json").data["target"] == said.data["target"]
    assert [run["id"] for run in decklog("runs", "find", "--json").data] == ["run_1"]
    assert decklog("verify").code == 0


def test_outside_and_a_named_place_exclude_each_other(decklog: Program) -> None:
    assert decklog("init", "--outside", "--db", "x.db").code == 2
