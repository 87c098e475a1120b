"""A log whose file or folder may not be written: every screen answers, says so, and decides nothing."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.place.locate import Place
from tests.db.processes import ROOT
from tests.pictures import sample_log, sample_parts
from tests.waiting import wait_until
from tests.web.asking import PASSWORD, made
from tests.web.test_states import addresses, forms
from tests.web.test_tending import verify

IS_ROOT = os.geteuid() == 0
# Root is let past a file's mode; without these rights it is not.
OBEYING = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all") if IS_ROOT else ()
pytestmark = pytest.mark.skipif(IS_ROOT and shutil.which("setpriv") is None, reason="root is let past a file's mode")
LAST = "the last word before the end"


def walk(target: str) -> None:
    """Look at every screen, as a process that may not write the log; it is opened as the command opens it."""
    place = Place(target, "by a test", is_named=True)
    assert place.is_read_only
    with place.open(read_only=place.is_read_only) as log:
        browser = made(log)
        with browser.runner:
            browser.log_in()
            for url in addresses(log):
                answer = browser.get(url)
                assert (answer.status, ">read-only<" in answer.text, forms(answer.text)) == (200, True, []), url
            (asked, *_) = log.approvals.find(state="open")  # type: ignore[arg-type]
            assert "since it may not be written here: nothing is decided" in browser.get(f"/inbox/approval/{asked.id}").text
            assert browser.post(f"/inbox/approval/{asked.id}/decide", {"token": "x"}).status == 405
            assert verify(browser) == 303
            wait_until(lambda: browser.site.verifying.standing.began_at is None)
            assert browser.get("/system.json").data["data"]["verification"]["last"]["word"] == "whole"
            print(log.journal.find("commas", limit=1)[0].body)


def run(*words: str) -> str:
    ran = subprocess.run([*OBEYING, sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:] + ran.stdout[-1000:]
    return ran.stdout


def kept(folder: Path) -> dict[str, bytes]:
    """Read what the log is made of; whoever waits may note something in its lock."""
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


def left_behind(path: Path) -> None:
    """Have a writer die, which leaves its write-ahead log."""
    code = f"import os; from decklog import Decklog; Decklog.open({str(path)!r}).journal.append('commas', {LAST!r}); os._exit(0)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    assert Path(f"{path}-wal").stat().st_size > 0


@pytest.mark.parametrize("what", ["the file", "the folder", "the folder, which has no lock", "what a dead writer left"])
def test_every_screen_of_a_log_that_may_not_be_written_answers_and_decides_nothing(
    sample: Path, tmp_path: Path, what: str
) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(sample.parent, folder)
    path = folder / sample.name
    if what == "what a dead writer left":
        left_behind(path)
    if what == "the folder, which has no lock":
        Path(f"{path}-lock").unlink()
    for file in folder.iterdir():
        file.chmod(0o644 if "folder" in what else 0o444)
    before = kept(folder)
    folder.chmod(0o555)
    try:
        said = run("-c", f"from tests.web.test_unwritable import walk; walk({str(path)!r})")
        assert (LAST in said) == (what == "what a dead writer left")
        # At the terminal too, where nobody said that it is for reading only.
        assert "commas" in run("-m", "decklog", "--db", str(path), "runs", "find", "--json")
    finally:
        folder.chmod(0o755)
    assert kept(folder) == before
