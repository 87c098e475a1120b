"""What opening accepts, what it refuses, and that a refused file is left as it was."""

import os
import random
import stat
from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

import decklog
from decklog import Decklog, Denied, Invalid, NotFound, SchemaTooNew
from decklog.core.errors import (
    Closed,
    Damaged,
    EngineTooOld,
    NetworkFilesystem,
    NotADatabase,
    ReadOnly,
    SchemaTooOld,
    Unavailable,
)
from decklog.db import schema
from decklog.db.sqlite import file
from tests.db.processes import alone, read_line, start
from tests.every import every

LATEST = schema.latest("sqlite")


def make(path: Path, entries: int = 3) -> Path:
    with Decklog.open(path) as log:
        log.runs.start("as it was", run_id="run_1")
        log.journal.append_many([{"stream": "run_1", "body": f"{number} " + "x" * 500} for number in range(entries)])
    return path


def foreign(path: Path, *statements: str) -> Path:
    """Make a SQLite database of another program."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


# What is accepted


def test_path_and_url_name_the_same_file(tmp_path: Path) -> None:
    make(tmp_path / "decklog.db")
    for target in (tmp_path / "decklog.db", str(tmp_path / "decklog.db"), f"sqlite:///{tmp_path}/decklog.db"):
        with Decklog.open(target) as log:
            assert log.runs.get("run_1").goal == "as it was"
    with decklog.open(tmp_path / "decklog.db") as log:
        assert log.runs.get("run_1").goal == "as it was"


@pytest.mark.parametrize("name", ["with blank.db", "100%.db", "what?.db", "a#b.db", "ünï.db", "it's.db", "file:x.db"])
def test_any_file_name_is_accepted(tmp_path: Path, name: str) -> None:
    make(tmp_path / name)
    assert (tmp_path / name).stat().st_size > 0
    with Decklog.open(tmp_path / name) as log:
        assert log.journal.verify().ok


def test_home_and_relative_paths_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Decklog.open("~/a.db").close()
    Decklog.open("sub/b.db").close()
    assert (tmp_path / "a.db").exists()
    assert (tmp_path / "sub" / "b.db").exists()


def test_an_empty_file_becomes_a_log(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    make(tmp_path / "empty.db")


def test_only_the_owner_can_read_a_log_and_its_folder(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with Decklog.open(tmp_path / "folder" / "decklog.db") as log:
            log.runs.start("x")
            for file in (tmp_path / "folder").iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700


def test_new_log_leaves_no_other_files(tmp_path: Path) -> None:
    make(tmp_path / "decklog.db")
    assert sorted(os.listdir(tmp_path)) == ["decklog.db", "decklog.db-lock"]


def test_a_postgres_address_is_opened(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        assert log.db.facts()["engine"] == "postgres"
        # To compile a statement takes longer than to run it.
        assert log.db.read(lambda: log.db.rows("show jit", {})) == (("jit",), [("off",)])
    with Decklog.open(postgres_url.replace("postgresql://", "postgres://")) as log:
        assert log.journal.heads() == []


# What is refused


@pytest.mark.parametrize("target", ["", "  ", "mysql://host/db", "sqlite:///", "a\x00b"])
def test_invalid_target_is_refused(target: str) -> None:
    with pytest.raises(Invalid):
        Decklog.open(target)


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="durability"):
        Decklog.open(tmp_path / "x.db", durability="some")
    assert not (tmp_path / "x.db").exists()


def test_closed_log_raises_closed(target: str) -> None:
    log = Decklog.open(target)
    log.runs.start("x", run_id="run_1")
    log.close()
    log.close()
    for act in (
        lambda: log.runs.get("run_1"),
        lambda: log.runs.start("y"),
        lambda: log.journal.find(),
        lambda: list(log.journal.tail(follow=False)),
        lambda: log.submit(log.runs.start, "z"),
        lambda: log.transaction().__enter__(),
        lambda: log.journal.verify(),
    ):
        with pytest.raises(Closed):
            act()


def test_submitted_writes_are_finished_before_closing(target: str) -> None:
    log = Decklog.open(target)
    log.runs.start("x", run_id="run_1")
    futures = [log.submit(log.journal.append, "run_1", str(number)) for number in range(50)]
    log.close()
    # All is committed by now; threads may still be setting results.
    assert sorted(future.result(30).seq for future in futures) == list(range(2, 52))


def test_a_log_can_be_opened_for_reading_only(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("x", run_id="run_1")
    with Decklog.open(target, read_only=True) as log:
        assert log.runs.get("run_1").goal == "x"
        assert log.journal.find("run_1", text="x") is not None
        assert log.journal.verify().ok
        for act in (
            lambda: log.journal.append("run_1", "y"),
            lambda: log.submit(log.journal.append, "run_1", "y"),
            lambda: log.transaction().__enter__(),
        ):
            with pytest.raises(ReadOnly):
                act()


def test_read_only_open_creates_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Decklog.open(tmp_path / "none.db", read_only=True)
    assert os.listdir(tmp_path) == []


def test_a_folder_a_pipe_and_a_file_as_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "file" / "decklog.db"):
        with pytest.raises(Invalid):
            Decklog.open(path)


def test_path_without_utf8_is_refused(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    with pytest.raises(Invalid, match="no UTF-8"):
        Decklog.open(os.path.join(folder, "log.db"))
    assert not os.path.exists(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_path_without_permission_is_denied(tmp_path: Path) -> None:
    make(tmp_path / "secret.db").chmod(0)
    with pytest.raises(Denied):
        Decklog.open(tmp_path / "secret.db")
    tmp_path.chmod(0o500)
    with pytest.raises(Denied):
        Decklog.open(tmp_path / "new.db")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("content", [b"x", b"hello, this is a text file\n" * 100, b"\x00" * 5000, b"SQLite format 2\x00" * 300])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(NotADatabase, match="left as it is"):
        Decklog.open(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize(
    "statements",
    [
        ["create table theirs (x)"],
        ["create table theirs (x)", f"pragma user_version = {LATEST}"],
        ["create table theirs (x)", f"pragma user_version = {LATEST + 5}"],
        ["pragma user_version = 3"],
        ["pragma application_id = 77"],
    ],
)
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, statements: list[str]) -> None:
    path = foreign(tmp_path / "theirs.db", *statements)
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(NotADatabase, match="another program"):
            Decklog.open(path, read_only=read_only)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["theirs.db"]


def test_the_write_ahead_log_of_another_program_stays_where_it_is(tmp_path: Path) -> None:
    theirs = foreign(tmp_path / "theirs.db", "pragma journal_mode = wal", "create table theirs (x)")
    alone("die_with_open_wal", str(theirs))
    before = theirs.read_bytes(), (tmp_path / "theirs.db-wal").read_bytes()
    assert before[1]
    with pytest.raises(NotADatabase):
        Decklog.open(theirs)
    assert (theirs.read_bytes(), (tmp_path / "theirs.db-wal").read_bytes()) == before


def test_a_truncated_log_is_called_damaged_and_left_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "decklog.db", 200)
    whole = path.read_bytes()
    for size in (len(whole) // 2, 8192, 4096 * 3 + 17):
        path.write_bytes(whole[:size])
        with pytest.raises(Damaged):
            Decklog.open(path)
        assert path.read_bytes() == whole[:size]


def test_damaged_pages_are_found(tmp_path: Path) -> None:
    path = make(tmp_path / "decklog.db", 300)
    whole = path.read_bytes()
    luck = random.Random(4)
    for _ in range(12):
        pages = bytearray(whole)
        for page in luck.sample(range(1, len(whole) // 4096), 12):
            pages[page * 4096 : (page + 1) * 4096] = luck.randbytes(4096)
        path.write_bytes(pages)
        with pytest.raises((Damaged, NotADatabase, AssertionError)), Decklog.open(path, read_only=True) as log:
            assert log.journal.verify().ok
        assert path.read_bytes() == pages


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "decklog.db")
    foreign(path, f"pragma user_version = {LATEST + 1}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(SchemaTooNew) as refusal:
            Decklog.open(path, read_only=read_only)
        assert refusal.value.details == {"found": LATEST + 1, "supported": LATEST}
    assert path.read_bytes() == before


def test_a_newer_or_older_postgres_schema_is_refused(postgres_url: str, empty_postgres_url: str) -> None:
    import psycopg

    with pytest.raises(SchemaTooOld, match="schema 0"):
        Decklog.open(empty_postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("insert into schema_steps values (9999, 'later', 'x', 'x', 'x')")
    with pytest.raises(SchemaTooNew, match="9999"):
        Decklog.open(postgres_url)


def test_a_process_that_has_the_file_open_stops_writing_when_the_schema_grows(tmp_path: Path) -> None:
    path = make(tmp_path / "decklog.db")
    process = start("hold_open", str(path))
    try:
        assert read_line(process) == "ready"
        foreign(path, f"pragma user_version = {LATEST + 1}")
    finally:
        output, _ = process.communicate("go on\n", timeout=30)
    assert output == '"schema_too_new"\n'


def test_a_server_that_does_not_answer_is_unavailable_at_once() -> None:
    with pytest.raises(Unavailable, match="reached"):
        Decklog.open("postgresql://nobody@127.0.0.1:1/nothing")


def test_an_engine_that_corrupts_shared_files_is_refused() -> None:
    for version in ("3.45.0", "3.51.2", "3.7.17"):
        with pytest.raises(EngineTooOld, match=version):
            file.check_engine(version)
    for version in ("3.51.3", "3.52.0", "4.0.0"):
        file.check_engine(version)
    file.check_engine()


def test_a_network_file_system_is_refused_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda1 / ext4 rw 0 0\nserver:/x {tmp_path}/net nfs4 rw 0 0\n/dev/sdb {tmp_path}/net/local ext4 rw 0 0\n"
    )
    with pytest.raises(NetworkFilesystem, match="nfs4"):
        file.check_place(f"{tmp_path}/net/decklog.db", allow_network=False, mounts=str(mounts))
    file.check_place(f"{tmp_path}/net/decklog.db", allow_network=True, mounts=str(mounts))
    file.check_place(f"{tmp_path}/net/local/decklog.db", allow_network=False, mounts=str(mounts))
    file.check_place(f"{tmp_path}/network.db", allow_network=False, mounts=str(mounts))
    file.check_place(f"{tmp_path}/net/decklog.db", allow_network=False, mounts=str(tmp_path / "none"))


NETWORK = "fuse.s3fs fuse.gcsfuse fuse.rclone fuse.glusterfs fuse.sshfs beegfs vboxsf drvfs 9p cifs fuse.juicefs smb3 davfs"
LOCAL = "ext4 xfs btrfs tmpfs overlay fuse.fuse-overlayfs fuseblk zfs apfs"


@every("kind", [*NETWORK.split(), *LOCAL.split()])
def test_network_file_systems_are_refused_and_local_ones_used(tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nremote {tmp_path} {kind} rw 0 0\n")
    with pytest.raises(NetworkFilesystem, match=kind) if kind in NETWORK.split() else nullcontext():
        file.check_place(f"{tmp_path}/decklog.db", allow_network=False, mounts=str(mounts))


def test_unusable_lock_file_is_named(tmp_path: Path) -> None:
    path = make(tmp_path / "decklog.db")
    lock = tmp_path / "decklog.db-lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    with Decklog.open(path) as log, pytest.raises(Invalid, match=r"decklog\.db-lock can't be used"):
        log.journal.append("run_1", "x")


def test_a_full_disk_loses_nothing_and_leaves_the_log_usable(tmp_path: Path) -> None:
    path = make(tmp_path / "decklog.db")
    result = alone("disk_full", str(path), 60)
    assert result["problems"] == ["disk_full"]
    assert result["mixed"] == "conflict, nothing kept"
    assert result["ok"], result["what"]
    assert result["after"] == result["kept"] + 1
