"""Claims about what holds a command in, made of each mechanism that works on this machine."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog import Decklog, Invalid
from decklog.core.errors import TimedOut, Unavailable
from decklog.guard import Sandbox, Toolbox
from decklog.guard.sandbox import landlock, sandbox, seccomp
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.guard.shell.process_tree import find_marked_processes
from tests.guard.shell.test_shell import STUBBORN, is_running
from tests.waiting import wait_until


@pytest.fixture(params=[SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
def kind(request: pytest.FixtureRequest) -> SandboxKind:
    if request.param is SandboxKind.BUBBLEWRAP and not sandbox.has_bubblewrap():
        pytest.skip("bubblewrap is not installed or can't make namespaces here")
    if request.param is SandboxKind.LANDLOCK and landlock.abi_version() == 0:
        pytest.skip("this kernel offers no Landlock")
    return request.param


@pytest.fixture
def held(make_box: Callable[..., Toolbox], kind: SandboxKind) -> Toolbox:
    return make_box(sandbox=Sandbox(kind=kind))


def script(place: Path, text: str) -> list[str]:
    (place / "script.sh").write_text(text + "\n")
    return ["bash", "script.sh"]


def test_a_command_works_within_its_root(held: Toolbox, place: Path) -> None:
    ran = held.run(script(place, "mkdir -p a/b && echo x > a/b/c && mv a/b/c d && cat d && rm -r a && : > e && echo y >> e"))
    assert (ran.exit_code, ran.output) == (0, "x\n")
    assert (place / "d").read_text() == "x\n"
    assert (place / "e").read_text() == "y\n"


def test_a_command_can_neither_write_nor_read_outside(held: Toolbox, place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("canary\n")
    ran = held.run(script(place, f"cat {outside}; echo changed >> {outside}; rm -f {outside}; ls {tmp_path}/state"))
    assert "canary" not in ran.output
    assert outside.read_text() == "canary\n"


def test_a_link_out_of_the_root_leads_nowhere(held: Toolbox, place: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("canary\n")
    (place / "link").symlink_to(tmp_path / "outside.txt")
    assert "canary" not in held.run(script(place, "cat link; echo x > link")).output
    assert (tmp_path / "outside.txt").read_text() == "canary\n"


def test_the_users_home_is_out_of_reach(
    make_box: Callable[..., Toolbox], kind: SandboxKind, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("canary\n")
    monkeypatch.setenv("HOME", str(home))
    box = make_box(sandbox=Sandbox(kind=kind))
    ran = box.run(script(place, f"cat {home}/.netrc; echo home=$HOME; echo x > $HOME/made && cat $HOME/made; mktemp"))
    assert "canary" not in ran.output
    assert f"home={home}" not in ran.output
    assert "\nx\n" in ran.output
    assert ran.exit_code == 0
    assert list(home.iterdir()) == [home / ".netrc"]


def test_further_paths_can_be_opened(make_box: Callable[..., Toolbox], kind: SandboxKind, place: Path, tmp_path: Path) -> None:
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"{name}\n")
    given = Sandbox(kind=kind, readable=(str(tmp_path / "read"),), writable=(str(tmp_path / "write"),))
    box = make_box(sandbox=given)
    ran = box.run(
        script(
            place,
            f"cat {tmp_path}/read/file {tmp_path}/write/file; echo new > {tmp_path}/write/file; echo x > {tmp_path}/read/file",
        )
    )
    assert ran.stdout == "read\nwrite\n"
    assert (tmp_path / "write" / "file").read_text() == "new\n"
    assert (tmp_path / "read" / "file").read_text() == "read\n"


def test_a_command_runs_where_our_own_interpreter_is_out_of_its_reach(
    make_box: Callable[..., Toolbox], kind: SandboxKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    box = make_box(sandbox=Sandbox(kind=kind))
    assert [box.run("echo on").output for _ in range(2)] == ["on\n", "on\n"]


def test_a_command_has_no_handles_but_its_own_and_ignores_no_signal(held: Toolbox) -> None:
    for _ in range(2):
        # The fourth is the folder that is being listed.
        assert held.run(["ls", "/proc/self/fd"]).output.split() == ["0", "1", "2", "3"]
        ignored = int(held.run(["grep", "SigIgn", "/proc/self/status"]).output.split()[1], 16)
        names = ("SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM", "SIGCHLD", "SIGXFSZ")
        assert [name for name in names if ignored & 1 << getattr(signal, name) - 1] == []


def test_what_was_replaced_or_has_come_since_the_last_command_is_in_reach(
    make_box: Callable[..., Toolbox], kind: SandboxKind, tmp_path: Path
) -> None:
    read, late = tmp_path / "read", tmp_path / "late"
    read.write_text("first\n")
    box = make_box(sandbox=Sandbox(kind=kind, readable=(str(read),), writable=(str(late),)))
    assert box.run(["cat", str(read)]).output == "first\n"
    late.mkdir()
    (tmp_path / "new").write_text("second\n")
    (tmp_path / "new").rename(read)
    assert box.run(["cat", str(read)]).output == "second\n"
    assert box.run(["touch", str(late / "made")]).exit_code == 0
    assert (late / "made").exists()


def test_a_folder_that_was_moved_away_is_out_of_reach_of_the_next_command(
    make_box: Callable[..., Toolbox], kind: SandboxKind, tmp_path: Path
) -> None:
    once, away = tmp_path / "once", tmp_path / "away"
    once.mkdir()
    box = make_box(sandbox=Sandbox(kind=kind, writable=(str(once),)))
    assert box.run(["touch", str(once / "made")]).exit_code == 0
    once.rename(away)
    once.mkdir()
    assert box.run(["touch", str(away / "more")]).exit_code != 0
    assert sorted(os.listdir(away)) == ["made"]


def test_the_network_can_be_taken_away(make_box: Callable[..., Toolbox], kind: SandboxKind, place: Path) -> None:
    if kind is SandboxKind.LANDLOCK and landlock.abi_version() < 4:
        pytest.skip("this Landlock has no rules for the network")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = script(place, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
        assert "reached" in make_box(sandbox=Sandbox(kind=kind)).run(connect).output
        assert "reached" not in make_box(sandbox=Sandbox(kind=kind, network=False)).run(connect).output


@pytest.mark.slow
def test_without_the_network_no_datagram_leaves_and_the_machine_still_talks_to_itself(
    make_box: Callable[..., Toolbox], kind: SandboxKind, place: Path
) -> None:
    if kind is SandboxKind.LANDLOCK and not seccomp.is_available():
        pytest.skip("this kernel takes no filter of system calls")
    (place / "send.py").write_text(
        "import socket\n"
        "left, right = socket.socketpair()\n"
        "left.send(b'x')\n"
        "print('within', right.recv(1))\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_PACKET):\n"
        "    for form in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "        try:\n"
        "            one = socket.socket(family, form)\n"
        "            one.sendto(b'x', ('127.0.0.1', PORT))\n"
        "        except OSError:\n"
        "            pass\n"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.settimeout(0.3)
        text = (place / "send.py").read_text().replace("PORT", str(ear.getsockname()[1]))
        (place / "send.py").write_text(text)
        ran = make_box(sandbox=Sandbox(kind=kind, network=False)).run(["python3", "send.py"])
        assert "within b'x'" in ran.output, ran.output
        with pytest.raises(TimeoutError):
            ear.recv(1)


@pytest.mark.skipif(os.getuid() != 0, reason="only root is let past a file's mode")
def test_what_is_for_root_alone_is_out_of_reach_of_an_agent_that_runs_as_root(held: Toolbox, place: Path) -> None:
    assert Path("/etc/shadow").read_bytes()
    ran = held.run(
        script(place, "cat /etc/shadow; ls /etc/ssl/private; cat /etc/passwd > seen && ls /etc > /dev/null && echo fine")
    )
    assert ran.stdout == "fine\n"
    assert (place / "seen").read_text().startswith("root:")


def test_a_process_outside_gets_no_signal(held: Toolbox, kind: SandboxKind, place: Path) -> None:
    if kind is SandboxKind.LANDLOCK and landlock.abi_version() < 6:
        pytest.skip("this Landlock has no rules for signals")
    ran = held.run(script(place, f"kill -0 {os.getpid()} && echo reached"))
    assert "reached" not in ran.output


def test_the_environment_of_a_process_outside_is_out_of_reach(held: Toolbox, place: Path) -> None:
    ran = held.run(script(place, f"cat /proc/{os.getpid()}/environ /proc/{os.getpid()}/maps"))
    assert ran.stdout == ""
    assert ran.exit_code != 0


@pytest.mark.slow
def test_a_stubborn_process_tree_is_gone_in_a_sandbox_too(held: Toolbox, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is on the path can be run, wherever it and the interpreter behind it lie.
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    (place / "stubborn.py").write_text(STUBBORN)
    with pytest.raises(TimedOut):
        held.run(["python", "stubborn.py", "600"], timeout_seconds=1.5)
    (place / "grandchild.pid").unlink()
    started = held.start_process(["python", "stubborn.py", "600"])
    wait_until((place / "grandchild.pid").exists)
    pids = [one.pid for one in find_marked_processes(started.process_id)]
    assert held.stop_process(started.process_id, grace_seconds=0.2).was_running
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_an_interrupt_reaches_the_command_and_not_only_its_wrapper(held: Toolbox, place: Path) -> None:
    started = held.start_process(script(place, "trap 'echo tidied; exit 5' INT; echo ready; while :; do sleep 0.05; done"))
    wait_until(lambda: "ready" in held.process_logs(started.process_id))
    stopped = held.stop_process(started.process_id)
    assert (stopped.exit_code, stopped.signals_sent) == (5, ("SIGINT",))
    assert "tidied" in held.process_logs(started.process_id)


def test_a_process_keeps_its_home_when_the_toolbox_is_closed(
    make_box: Callable[..., Toolbox], kind: SandboxKind, place: Path
) -> None:
    first, second = make_box(sandbox=Sandbox(kind=kind)), make_box(sandbox=Sandbox(kind=kind))
    started = first.start_process(script(place, "until [ -e go ]; do sleep 0.02; done; echo x > $HOME/a && mktemp && echo kept"))
    first.close()
    (place / "go").touch()
    wait_until(lambda: second.list_processes()[0].state != "running")
    assert "kept" in second.process_logs(started.process_id)


def test_which_sandbox_applied_is_on_record(log: Decklog, run_id: str, held: Toolbox, kind: SandboxKind) -> None:
    assert held.run(["true"]).sandbox == kind.value
    report = log.journal.find(run_id, subtype="run")[0].payload["sandbox"]
    assert report["kind"] == kind.value
    if kind is SandboxKind.LANDLOCK:
        assert report["abi"] == landlock.abi_version()
        assert report["uncovered"]


def test_a_kind_that_does_not_exist_is_refused() -> None:
    assert Sandbox(kind="none").kind is SandboxKind.NONE  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="not a kind of sandbox"):
        Sandbox(kind="cage")  # type: ignore[arg-type]


def test_no_sandbox_is_said_in_plain_words(log: Decklog, run_id: str, box: Toolbox) -> None:
    assert box.run(["true"]).sandbox == "none"
    assert "everything that its user can" in log.journal.find(run_id, subtype="run")[0].payload["sandbox"]["note"]


def test_the_best_that_works_is_chosen_by_itself(make_box: Callable[..., Toolbox]) -> None:
    assert make_box(sandbox=None).run(["true"]).sandbox == sandbox.best_kind().value


def test_a_sandbox_that_was_named_and_is_missing_is_refused(
    make_box: Callable[..., Toolbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "has_bubblewrap", lambda: False)
    monkeypatch.setattr(landlock, "abi_version", lambda: 0)
    for kind in (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK):
        with pytest.raises(Unavailable):
            make_box(sandbox=Sandbox(kind=kind)).run(["true"])


def test_the_record_of_a_repository_is_hidden_in_bubblewrap(make_box: Callable[..., Toolbox], place: Path) -> None:
    if not sandbox.has_bubblewrap():
        pytest.skip("bubblewrap is not installed or can't make namespaces here")
    (place / ".decklog").mkdir()
    (place / ".decklog" / "decklog.db").write_text("canary")
    box = make_box(sandbox=Sandbox(kind=SandboxKind.BUBBLEWRAP))
    box.run(script(place, "cat .decklog/decklog.db; echo x > .decklog/decklog.db"))
    assert (place / ".decklog" / "decklog.db").read_text() == "canary"


def test_git_commits_in_a_linked_worktree(make_box: Callable[..., Toolbox], kind: SandboxKind, tmp_path: Path) -> None:
    import subprocess

    main, linked = tmp_path / "main", tmp_path / "linked"
    own = ["-c", "user.name=someone", "-c", "user.email=someone@localhost"]
    for words in (
        ["git", "init", "--quiet", str(main)],
        ["git", "-C", str(main), *own, "commit", "--quiet", "--allow-empty", "-m", "start"],
        ["git", "-C", str(main), "worktree", "add", "--quiet", str(linked)],
    ):
        subprocess.run(words, check=True, capture_output=True)
    box = make_box(root=linked, sandbox=Sandbox(kind=kind))
    env = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@localhost",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@localhost",
    }
    ran = box.run(["git", "commit", "--quiet", "--allow-empty", "-m", "second"], env=env)
    assert (ran.exit_code, ran.output) == (0, "")
    assert "second" in box.run(["git", "log", "--oneline"]).output


def test_every_version_of_landlock_names_what_it_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [len(landlock.find_gaps(version, network=False)) for version in range(1, 8)]
    assert sizes == sorted(sizes, reverse=True)
    monkeypatch.setattr(seccomp, "is_available", lambda: False)
    assert "the whole network" in landlock.find_gaps(3, network=False)
    assert "UDP and raw sockets" in landlock.find_gaps(7, network=False)
    assert (
        landlock.available_rights(1) < landlock.available_rights(2) < landlock.available_rights(3) < landlock.available_rights(5)
    )
