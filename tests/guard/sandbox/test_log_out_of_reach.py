"""Claims about the log that an agent works under: no command in a sandbox changes it, wherever its file lies."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.core.errors import Denied
from decklog.guard import Sandbox, Toolbox, Unrestricted
from decklog.guard.sandbox import landlock, mounts, sandbox
from decklog.guard.sandbox.sandbox import CommandContext, SandboxKind

# Each tries to change, replace, move, link or bring back the log; what it says is of no account.
ATTEMPTS = {
    "append to the file": "echo x >> .decklog/decklog.db",
    "overwrite the file": "printf junk > .decklog/decklog.db",
    "truncate the file": "truncate -s 0 .decklog/decklog.db",
    "change a byte in place": "printf X | dd of=.decklog/decklog.db bs=1 seek=5000 conv=notrunc",
    "write the write-ahead log": "printf junk > .decklog/decklog.db-wal",
    "truncate the write-ahead log": "truncate -s 0 .decklog/decklog.db-wal",
    "write the shared index": "printf junk > .decklog/decklog.db-shm",
    "remove the write-ahead log": "rm -f .decklog/decklog.db-wal .decklog/decklog.db-shm",
    "remove the file": "rm -f .decklog/decklog.db",
    "remove the folder": "rm -rf .decklog",
    "move the folder": "mv .decklog moved && echo x >> moved/decklog.db",
    "move the folder and put another there": "mv .decklog moved; mkdir -p .decklog; printf junk > .decklog/decklog.db",
    "exchange the folder": "mkdir other; mv --exchange .decklog other; printf junk >> other/decklog.db",
    "move the file out": "mv .decklog/decklog.db here.db",
    "move a file in": "printf junk > junk.db; mv -f junk.db .decklog/decklog.db",
    "a hard link to the file": "ln .decklog/decklog.db hard.db && echo x >> hard.db",
    "a hard link by way of a link": "ln -s .decklog soft; ln -L soft/decklog.db hard.db && echo x >> hard.db",
    "a link to the file": "ln -s .decklog/decklog.db soft.db; echo x >> soft.db",
    "a link to the folder": "ln -s .decklog soft; echo x >> soft/decklog.db; printf junk > soft/decklog.db-wal",
    "a link to an absolute path": 'ln -s "$PWD/.decklog/decklog.db" soft.db; printf junk > soft.db',
    "through the folder and back": "echo x >> .decklog/../.decklog/decklog.db",
    "through another folder": "mkdir -p a/b; echo x >> a/b/../../.decklog/./decklog.db",
    "from inside the folder": "cd .decklog && echo x >> decklog.db; cd .decklog/.. && echo x >> .decklog/decklog.db",
    "by the name of the current folder": 'echo x >> "$(pwd -P)/.decklog/decklog.db"',
    "by the root of another process": 'for p in $PPID $(ls /proc | grep -E "^[0-9]+$"); do'
    ' echo x >> "/proc/$p/root$PWD/.decklog/decklog.db"; done 2>/dev/null',
    "by the working directory of another process": 'for p in $(ls /proc | grep -E "^[0-9]+$"); do'
    ' test "$p" = "$$" || echo x >> "/proc/$p/cwd/.decklog/decklog.db"; done 2>/dev/null',
    "by an inherited handle": "for n in $(ls /proc/self/fd); do"
    ' echo x >> "/proc/self/fd/$n/.decklog/decklog.db"; done 2>/dev/null',
    "uncover it": "umount .decklog; umount -l .decklog; echo x >> .decklog/decklog.db",
    "uncover it in a namespace of its own": 'unshare -Ur sh -c "umount .decklog; echo x >> .decklog/decklog.db"',
    "bind the folder elsewhere": 'mkdir -p b; unshare -Urm sh -c "mount --bind . b; echo x >> b/.decklog/decklog.db"',
    "enter another namespace": 'nsenter -t $PPID -m sh -c "cd $PWD; echo x >> .decklog/decklog.db"',
    "change its mode": "chmod 777 .decklog .decklog/decklog.db; chmod 000 .decklog; echo x >> .decklog/decklog.db",
    "sqlite of Python": "python3 -c \"import sqlite3; c = sqlite3.connect('.decklog/decklog.db');"
    " c.execute('create table forged (x)'); c.execute('delete from entries'); c.commit()\"",
}


@pytest.fixture(params=[SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
def kind(request: pytest.FixtureRequest) -> SandboxKind:
    if request.param is SandboxKind.BUBBLEWRAP and not sandbox.has_bubblewrap():
        pytest.skip("bubblewrap is not installed or can't make namespaces here")
    if request.param is SandboxKind.LANDLOCK and landlock.abi_version() == 0:
        pytest.skip("this kernel offers no Landlock")
    return request.param


@pytest.fixture
def mounted(kind: SandboxKind) -> SandboxKind:
    if kind is SandboxKind.LANDLOCK and not mounts.can_cover():
        pytest.skip("no mount namespace can be had here")
    return kind


@pytest.fixture
def inner(place: Path) -> Iterator[Decklog]:
    """A log in the folder that the agent works in, where `decklog init` puts it."""
    (place / ".decklog").mkdir(mode=0o700)
    with Decklog.open(place / ".decklog" / "decklog.db") as log:
        log.runs.start("a goal", run_id="run_1")
        yield log


@pytest.fixture
def make(inner: Decklog, place: Path, tmp_path: Path) -> Iterator[Callable[..., Toolbox]]:
    from contextlib import ExitStack

    with ExitStack() as opened:

        def toolbox(**settings: object) -> Toolbox:
            given = {"root": place, "trust": Unrestricted(), "state": tmp_path / "state", **settings}
            return opened.enter_context(Toolbox(given.pop("log", inner), "run_1", **given))  # type: ignore[arg-type]

        yield toolbox


def run(box: Toolbox, text: str) -> str:
    (Path(box.root.path) / "script.sh").write_text(text + "\n")
    output: str = box.run(["bash", "script.sh"]).output
    return output


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_command_in_a_sandbox_changes_the_log(
    make: Callable[..., Toolbox], inner: Decklog, place: Path, mounted: SandboxKind, attempt: str
) -> None:
    before = (place / ".decklog").stat()
    box = make(sandbox=Sandbox(kind=mounted))
    run(box, ATTEMPTS[attempt])
    run(box, f"cd .. 2>/dev/null; cd {place}; {ATTEMPTS[attempt]}")
    inner.journal.append("run_1", "still written to")
    assert inner.journal.verify().ok
    after = (place / ".decklog").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    with Decklog.open(place / ".decklog" / "decklog.db", read_only=True) as again:
        assert again.journal.find("run_1")[0].body == "still written to"
        assert again.journal.verify().ok


def test_the_log_is_not_even_seen_from_inside(make: Callable[..., Toolbox], mounted: SandboxKind) -> None:
    box = make(sandbox=Sandbox(kind=mounted))
    assert run(box, "ls -A .decklog; cat .decklog/decklog.db 2>/dev/null; echo end") == "end\n"


def test_beside_the_log_everything_in_the_root_can_be_written(
    make: Callable[..., Toolbox], place: Path, mounted: SandboxKind
) -> None:
    box = make(sandbox=Sandbox(kind=mounted))
    said = run(box, "echo new > top && mkdir -p a/b && mv top a/b/moved && ln a/b/moved hard && ln -s a soft && cat soft/b/moved")
    assert (said, (place / "hard").read_text()) == ("new\n", "new\n")


def test_what_is_covered_is_on_record(make: Callable[..., Toolbox], inner: Decklog, place: Path, mounted: SandboxKind) -> None:
    make(sandbox=Sandbox(kind=mounted)).run(["true"])
    assert inner.journal.find("run_1", subtype="run")[0].payload["sandbox"]["covered"] == [str(place / ".decklog")]


def test_a_command_runs_as_the_same_user_behind_a_cover(make: Callable[..., Toolbox], mounted: SandboxKind) -> None:
    assert run(make(sandbox=Sandbox(kind=mounted)), "id -u") == f"{os.getuid()}\n"


@pytest.mark.parametrize("leads_to", ["place/data", "outside"])
def test_a_log_behind_a_link_that_a_command_could_lead_elsewhere_is_refused(
    place: Path, tmp_path: Path, kind: SandboxKind, leads_to: str
) -> None:
    (tmp_path / leads_to).mkdir()
    (place / ".decklog").symlink_to(tmp_path / leads_to)
    with Decklog.open(place / ".decklog" / "decklog.db") as log:
        log.runs.start("a goal", run_id="run_1")
        given = {"root": place, "trust": Unrestricted(), "sandbox": Sandbox(kind=kind), "state": tmp_path / "s"}
        with Toolbox(log, "run_1", **given) as box, pytest.raises(Denied, match="through the link"):  # type: ignore[arg-type]
            box.run(["true"])


@pytest.mark.parametrize("where", ["decklog.db", "deep/er/decklog.db"])
def test_a_log_that_no_cover_can_hold_is_refused_in_plain_words(
    place: Path, tmp_path: Path, kind: SandboxKind, where: str
) -> None:
    (place / where).parent.mkdir(parents=True, exist_ok=True)
    with Decklog.open(place / where) as log:
        log.runs.start("a goal", run_id="run_1")
        with Toolbox(log, "run_1", root=place, trust=Unrestricted(), sandbox=Sandbox(kind=kind), state=tmp_path / "s") as box:
            with pytest.raises(Denied, match="The command could write to the log") as refused:
                box.run(["true"])
            assert "decklog init --outside" in str(refused.value.hint)
            assert refused.value.details["log"] == str(place / where)


def test_a_log_outside_of_the_root_needs_no_cover(
    make_box: Callable[..., Toolbox], log: Decklog, run_id: str, kind: SandboxKind
) -> None:
    make_box(sandbox=Sandbox(kind=kind)).run(["true"])
    assert "covered" not in log.journal.find(run_id, subtype="run")[0].payload["sandbox"]


def test_bubblewrap_is_told_to_cover_the_log_after_everything_else_was_opened(place: Path, tmp_path: Path) -> None:
    (place / ".decklog").mkdir()
    context = CommandContext(str(place), tmp_path / "scratch", {}, str(place / ".decklog" / "decklog.db"))
    words = sandbox.build_bubblewrap_command(
        ["true"], sandbox.find_allowed_paths(Sandbox(kind=SandboxKind.BUBBLEWRAP), context), context, str(place)
    )
    folder = str(place / ".decklog")
    assert words[words.index("--tmpfs", words.index(str(place))) :][:4] == ["--tmpfs", folder, "--remount-ro", folder]
    assert "--bind-try" not in words[words.index(folder) :]


class TestWithoutMountNamespaces:
    """Where only Landlock is to be had, which can't take one folder out of a tree."""

    @pytest.fixture(autouse=True)
    def without(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if landlock.abi_version() == 0:
            pytest.skip("this kernel offers no Landlock")
        monkeypatch.setattr(mounts, "can_cover", lambda: False)
        monkeypatch.setattr(sandbox, "has_bubblewrap", lambda: False)

    def test_a_log_in_the_root_is_refused_with_the_way_out(self, make: Callable[..., Toolbox], place: Path) -> None:
        with pytest.raises(Denied, match="mount namespaces are not available here") as refused:
            make(sandbox=Sandbox(kind=SandboxKind.LANDLOCK)).run(["touch", "made"])
        assert "decklog init --outside" in str(refused.value.hint)
        assert not (place / "made").exists()

    def test_a_log_outside_with_its_address_in_the_root_is_served(
        self, make_box: Callable[..., Toolbox], log: Decklog, run_id: str, place: Path
    ) -> None:
        (place / ".decklog").mkdir()
        (place / ".decklog" / "address").write_text(f"{log.db.target}\n")
        make_box(sandbox=Sandbox(kind=SandboxKind.LANDLOCK)).run(["true"])
        uncovered = log.journal.find(run_id, subtype="run")[0].payload["sandbox"]["uncovered"]
        assert f"{place}/.decklog, which names the log" in uncovered
