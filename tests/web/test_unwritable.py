"""A log whose file or folder is not writable: every screen is shown and marked, and decides nothing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.location.locate import LogLocation
from tests.db.processes import ROOT
from tests.pictures import sample_log, sample_parts
from tests.waiting import wait_until
from tests.web.client import PASSWORD, logged_in
from tests.web.test_states import addresses, forms
from tests.web.test_tending import verify

IS_ROOT = os.geteuid() == 0
# Root is let past a file's mode; without these rights it is not.
OBEYING = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all") if IS_ROOT else ()
pytestmark = pytest.mark.skipif(IS_ROOT and shutil.which("setpriv") is None, reason="root is let past a file's mode")
LAST = "the last word before the end"
END = "exit code "


def walk(target: str) -> None:
    """Look at every screen, as a process that may not write the log; it is opened as the command opens it."""
    place = LogLocation(target, "by a test", is_named=True)
    assert place.is_read_only
    with place.open(read_only=place.is_read_only) as log, logged_in(log) as browser:
        for url in addresses(log):
            answer = browser.get(url)
            assert (answer.status, ">read-only<" in answer.text, forms(answer.text)) == (200, True, []), url
        (approval, *_) = log.approvals.find(state="open")
        assert "or no write permission" in browser.get(f"/inbox/approval/{approval.id}").text
        assert browser.post(f"/inbox/approval/{approval.id}/decide", {"token": "x"}).status == 405
        assert verify(browser) == 303
        wait_until(lambda: browser.site.verifying.status.began_at is None)
        assert browser.get("/system.json").data["data"]["verification"]["last"]["word"] == "verified"
        print(log.journal.find("commas", limit=1)[0].body)


def walk_each() -> None:
    """Walk through each log of stdin in a forked process; its output ends with the exit code."""
    import anyio._backends._asyncio  # noqa: F401

    import tests.preloaded  # noqa: F401
    from decklog.web.rendering import environment

    # To compile the templates takes most of a walk's time, and they are the same in all of them.
    for name in environment().list_templates():
        environment().get_template(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os.dup2(1, 2)
            walk(line.strip())
            sys.exit()
        _, status = os.waitpid(child, 0)
        print(f"{END}{os.waitstatus_to_exitcode(status)}", flush=True)


class Walker:
    """A process with the rights of one that may not write, and everything imported."""

    def __init__(self) -> None:
        words = [*OBEYING, sys.executable, "-c", "from tests.web.test_unwritable import walk_each; walk_each()"]
        self._process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def walk(self, path: Path) -> str:
        """Return the output of a walk."""
        assert self._process.stdin
        assert self._process.stdout
        print(path, file=self._process.stdin, flush=True)
        output = ""
        for line in self._process.stdout:
            if line.startswith(END):
                assert line.strip() == f"{END}0", output[-3000:]
                return output
            output += line
        raise AssertionError(f"it ended with {self._process.wait(10)}: {output[-3000:]}")

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def walker() -> Iterator[Walker]:
    walker = Walker()
    yield walker
    walker.close()


def find_runs(path: Path) -> str:
    words = [*OBEYING, sys.executable, "-m", "decklog", "--db", str(path), "runs", "find", "--json"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:] + ran.stdout[-1000:]
    return ran.stdout


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the files of the log; its lock file may change."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(("-shm", "-lock"))}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a log that every case has a copy of."""
    folder = tmp_path_factory.mktemp("sample")
    path, clock = sample_log.made(folder, datetime(2026, 3, 2, 9, tzinfo=UTC))
    with Decklog.open(path, clock=clock) as log:
        sample_parts.write(log, clock)
        log.trust.bind("ana", "cli", password=PASSWORD)
    return Path(path)


def leave_write_ahead_log(path: Path) -> None:
    """Have a writer die, which leaves its write-ahead log."""
    code = f"import os; from decklog import Decklog; Decklog.open({str(path)!r}).journal.append('commas', {LAST!r}); os._exit(0)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    assert Path(f"{path}-wal").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["the file", "the folder", "the folder, which has no lock", "what a dead writer left"])
def test_every_screen_of_an_unwritable_log_answers_and_decides_nothing(
    sample: Path, walker: Walker, tmp_path: Path, what: str
) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(sample.parent, folder)
    path = folder / sample.name
    if what == "what a dead writer left":
        leave_write_ahead_log(path)
    if what == "the folder, which has no lock":
        Path(f"{path}-lock").unlink()
    for file in folder.iterdir():
        file.chmod(0o644 if "folder" in what else 0o444)
    before = read_files(folder)
    folder.chmod(0o555)
    try:
        assert (LAST in walker.walk(path)) == (what == "what a dead writer left")
        # The command line, where nobody asked for read-only mode.
        assert "commas" in find_runs(path)
    finally:
        folder.chmod(0o755)
    assert read_files(folder) == before
