"""Claims about running a command: its output, its time, its environment, and that nothing of it is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog import Decklog, Denied, Invalid, NotFound
from decklog.core.errors import TimedOut
from decklog.guard import Toolbox
from decklog.guard.shell.process_tree import find_marked_processes
from tests.waiting import wait_until

# Not that of a virtual environment, which may be in a scratch folder: a program from there is asked about.
PYTHON = os.path.realpath(sys.executable)

# Ignores both polite signals, leaves its group and its parent, and says who it is.
STUBBORN = textwrap.dedent(
    """
    import os, signal, sys, time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("grandchild.pid", "w").write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists("grandchild.pid"):
        time.sleep(0.01)
    time.sleep(float(sys.argv[1]))
    """
)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.fixture
def stubborn(place: Path) -> list[str]:
    (place / "stubborn.py").write_text(STUBBORN)
    return [PYTHON, "stubborn.py"]


def test_an_argument_list_runs_without_a_shell(box: Toolbox) -> None:
    ran = box.run(["printf", "%s", "$HOME; *"])
    assert (ran.exit_code, ran.output) == (0, "$HOME; *")


def test_a_shell_string_runs_in_bash(box: Toolbox) -> None:
    ran = box.run("for i in 1 2; do echo $i; done | tail -1; [[ a == a ]] && echo yes")
    assert ran.stdout == "2\nyes\n"


@pytest.mark.slow
def test_an_exit_code_other_than_0_is_a_normal_result(box: Toolbox, place: Path) -> None:
    assert box.run("exit 3").exit_code == 3
    (place / "fall.sh").write_text("kill -USR1 $$; sleep 5\n")
    killed = box.run(["bash", "fall.sh"])
    assert (killed.exit_code, killed.signal) == (None, "SIGUSR1")


def test_both_streams_are_kept_apart_and_in_order(box: Toolbox) -> None:
    ran = box.run("for i in 1 2 3; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done")
    assert ran.output == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    assert ran.stdout == "out1\nout2\nout3\n"
    assert ran.stderr == "err1\nerr2\nerr3\n"


def test_output_that_is_no_text_is_decoded_tolerantly(log: Decklog, run_id: str, box: Toolbox) -> None:
    ran = box.run(r"printf 'a\000b\377c\303\244'")
    assert ran.output == "a\ufffdb\ufffdcä"
    assert log.journal.find(run_id, subtype="run")[0].payload["result"]["chunks"][0]["text"] == ran.output


def test_long_output_keeps_its_beginning_and_its_end(make_box: Callable[..., Toolbox]) -> None:
    box = make_box(cap_bytes=10_000)
    ran = box.run("seq 1 200000; echo the end; seq 1 5 >&2")
    total = len("".join(f"{number}\n" for number in range(1, 200_001)) + "the end\n")
    assert ran.stdout.startswith("1\n2\n3\n")
    assert ran.stdout.endswith("200000\nthe end\n")
    assert ran.stderr == "1\n2\n3\n4\n5\n"
    assert f"[… {ran.cut_bytes} bytes left out …]" in ran.stdout
    assert total - 10_000 <= ran.cut_bytes <= total - 7_000


def test_a_character_split_between_two_reads_stays_whole(box: Toolbox) -> None:
    assert box.run(r"printf '\303'; sleep 0.1; printf '\244'").output == "ä"


def test_standard_input_is_empty(box: Toolbox) -> None:
    assert box.run(["cat"]).output == ""


def test_a_command_runs_in_the_directory_it_names(box: Toolbox, place: Path) -> None:
    (place / "sub").mkdir()
    assert box.run(["pwd"]).output == f"{place}\n"
    assert box.run(["pwd"], cwd="sub").output == f"{place}/sub\n"
    with pytest.raises(Denied):
        box.run(["pwd"], cwd="..")
    with pytest.raises(Invalid, match="not a directory"):
        box.run(["pwd"], cwd="missing")


def test_an_empty_command_is_refused(box: Toolbox) -> None:
    for command in ([], "", "  ", [""]):
        with pytest.raises(Invalid, match="empty"):
            box.run(command)
    with pytest.raises(Invalid, match="NUL"):
        box.run(["echo", "a\0b"])
    for seconds in (0.0, -1.0, 1e9):
        with pytest.raises(Invalid, match="timeout_seconds"):
            box.run(["true"], timeout_seconds=seconds)


def test_a_program_that_is_not_there_is_not_found(box: Toolbox, place: Path) -> None:
    with pytest.raises(NotFound, match=r"no program './missing\.sh'"):
        box.run(["./missing.sh"])
    (place / "plain.txt").write_text("text")
    with pytest.raises(Denied, match="can't be run"):
        box.run(["./plain.txt"])


def test_the_environment_is_an_allow_list_without_secrets(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "ghp_" + "R4nd0mC4n4ryV4lu3F0rT3st1ng" + "Zx9Qw8Er7"
    monkeypatch.setenv("SOME_SETTING", "visible")
    monkeypatch.setenv("OTHER_SETTING", "hidden")
    monkeypatch.setenv("GITHUB_TOKEN", token)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("LC_DEPLOY_TARGET", "hidden")
    box = make_box(environment=["SOME_SETTING", "GITHUB_TOKEN"])
    script = "import os; print(sorted(os.environ), os.environ['SOME_SETTING'], os.environ['EXTRA'])"
    (place / "show.py").write_text(script)
    ran = box.run([PYTHON, "show.py"], env={"EXTRA": "given"})
    assert "visible given" in ran.output
    assert "'LC_ALL'" in ran.output
    assert "OTHER_SETTING" not in ran.output
    assert "LC_DEPLOY_TARGET" not in ran.output
    assert "GITHUB_TOKEN" not in ran.output
    assert log.journal.find(run_id, subtype="run")[0].payload["withheld"] == ["GITHUB_TOKEN"]
    with pytest.raises(Invalid, match="reserved for Decklog"):
        box.run(["true"], env={"DECKLOG_PROCESS": "x"})


def test_a_variable_that_changes_what_runs_is_judged(box: Toolbox) -> None:
    with pytest.raises(Denied):
        box.run(["ls"], env={"LD_PRELOAD": "/tmp/evil.so"})


def test_a_command_has_a_session_of_its_own(box: Toolbox, place: Path) -> None:
    (place / "show.py").write_text("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))")
    assert box.run([PYTHON, "show.py"]).output == "True\n"


@pytest.mark.slow
def test_a_grandchild_that_ignores_signals_is_gone_after_a_time_out(box: Toolbox, place: Path, stubborn: list[str]) -> None:
    started = time.monotonic()
    with pytest.raises(TimedOut, match="ended after 1 seconds") as caught:
        box.run([*stubborn, "600"], timeout_seconds=1.0)
    assert time.monotonic() - started < 30
    assert caught.value.details["signals_sent"] == ["SIGTERM", "SIGKILL"]
    assert not is_running(int((place / "grandchild.pid").read_text()))


@pytest.mark.slow
def test_nothing_outlives_a_command(box: Toolbox, place: Path, stubborn: list[str]) -> None:
    ran = box.run([*stubborn, "0"])
    assert (ran.exit_code, ran.leftovers) == (0, 1)
    assert not is_running(int((place / "grandchild.pid").read_text()))


@pytest.mark.slow
def test_output_before_a_time_out_is_in_the_error(box: Toolbox) -> None:
    with pytest.raises(TimedOut) as caught:
        box.run("echo so far; sleep 60", timeout_seconds=1.0)
    assert caught.value.details["output"] == "so far\n"


@pytest.mark.slow
def test_a_command_ends_with_the_program_that_ran_it(target: str, run_id: str, place: Path, tmp_path: Path) -> None:
    script = f"""
import os
from decklog import Decklog
from decklog.guard import Sandbox, Toolbox, Unrestricted
with Decklog.open({target!r}) as log, Toolbox(log, {run_id!r}, root={str(place)!r}, trust=Unrestricted(),
        sandbox=Sandbox(kind="none"), state={str(tmp_path / "state")!r}) as box:
    box.run("echo $$ > pid; trap '' INT TERM; sleep 600 & sleep 600")
"""
    agent = subprocess.Popen([sys.executable, "-c", script])
    try:
        wait_until(lambda: (place / "pid").exists() and (place / "pid").read_text().strip())
        pid = int((place / "pid").read_text())
        assert is_running(pid)
    finally:
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    mark = next((tmp_path / "state").iterdir()).name
    wait_until(lambda: not is_running(pid) and not find_marked_processes(mark))


@pytest.mark.slow
def test_a_long_command_is_on_record_while_it_runs(
    log: Decklog, run_id: str, box: Toolbox, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decklog.guard.shell.shell.STREAM_SECONDS", 0.0)
    block, body = "-----BEGIN RSA " + "PRIVATE KEY-----", "MIIEpAIB" + "AAKCAQEA7bqZx0QwErTyUiOpAsDfGhJkLzXcVbNm"
    (place / "talk.sh").write_text(f"echo first; sleep 1.2; echo '{block}'; sleep 1.2; echo {body}; sleep 1.2\n")
    box.run(["bash", "talk.sh"])
    begun = log.journal.find(run_id, subtype="run.begun")[0]
    streamed = log.journal.find(run_id, subtype="run.output", oldest_first=True)
    final = log.journal.find(run_id, subtype="run")[0]
    assert [entry.payload["call"] for entry in streamed] == [begun.payload["call"]] * len(streamed)
    assert streamed[0].payload["text"] == "first\n"
    assert begun.seq < streamed[0].seq < final.seq
    assert "MIIEpAIB" not in "".join(str(entry.payload) for entry in (*streamed, final))


def test_no_folder_is_left_behind(box: Toolbox, tmp_path: Path) -> None:
    box.run(["true"])
    box.run(["true"], step="s1")
    with pytest.raises(NotFound):
        box.run(["./missing.sh"])
    assert os.listdir(tmp_path / "state") == []


def test_a_signal_without_a_name_is_told_by_its_number(box: Toolbox, place: Path) -> None:
    (place / "end.sh").write_text("kill -$1 $$\n")
    names = [box.run(["bash", "end.sh", number]).signal for number in ("6", "15", "40")]
    assert names == ["SIGABRT", "SIGTERM", "SIG40"]
