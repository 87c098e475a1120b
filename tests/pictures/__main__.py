"""Takes the pictures that the documents show, of real commands on a made-up log. Run it as `make screenshots`."""

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.cli.screens import Terminal
from tests.db.processes import ROOT, environment
from tests.pictures import dashboard, recording, sample_log, sessions
from tests.pictures.terminal import picture
from tests.waiting import wait_until

PICTURES = ROOT / "docs/pictures"
_COLUMNS = 118
# What is shown, by the name of its picture. Screens that come later are one more line.
SCREENS = {
    "now": ["now"],
    "board": ["tasks", "board", "scheduler"],
    "timeline": ["runs", "timeline", sample_log.RUN],
    "burn": ["ledger", "burn"],
    "cost": ["cost"],
    "week": ["report", "week"],
}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = sample_log.made_until(Path(folder), datetime.now(UTC))
        for name, words in SCREENS.items():
            _write(name, picture(f"decklog {' '.join(words)}", screen(words, path)))
        _write("top", picture("decklog top", screen(["top"], path, until="q quit", lines=26), is_whole=True))
        take_report(path, Path(folder) / "report.html")
        take_sessions(Path(folder) / "sessions")
        (Path(folder) / "dashboard").mkdir()
        dashboard.take(Path(folder) / "dashboard", PICTURES)
    _write("start", recording.recorded(PICTURES / "dashboard-now-light.png"))


def take_sessions(folder: Path) -> None:
    """Show what a session of each agent program looks like on record."""
    folder.mkdir()
    path = sessions.played(folder, datetime.now(UTC))
    for name, run in sessions.RUNS.items():
        words = ["journal", "find", run, "--oldest-first", "--fields", "at,kind,subtype,body"]
        _write(f"session-{name}", picture(f"decklog {' '.join(words)}", screen(words, path)))


def _write(name: str, drawn: str) -> None:
    (PICTURES / f"{name}.svg").write_text(drawn, encoding="utf-8")
    sys.stdout.write(f"docs/pictures/{name}.svg\n")


def screen(words: list[str], path: Path, *, until: str | None = None, lines: int = 80) -> list[list[Any]]:
    """Run a command of Decklog on a terminal; give the screen when it has ended, or when it shows a text."""
    with Terminal(*words, "--db", str(path), cwd=path.parent, columns=_COLUMNS, lines=lines, TERM="xterm-256color") as terminal:
        if until is not None:
            wait_until(lambda: terminal.shows(until))
        else:
            wait_until(lambda: bool(terminal.shown) and terminal.process.poll() is not None)
        assert terminal.shown.strip()
        return terminal.cells


def printed(words: list[str], path: Path) -> None:
    """Run a command of Decklog on a log."""
    command = [sys.executable, "-m", "decklog", *words, "--db", str(path)]
    subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)


def take_report(path: Path, page: Path) -> None:
    """Take a picture of a run's page, where there is a browser."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.stdout.write("docs/pictures/report.png is as it was: there is no chromium here\n")
        return
    printed(["export", "html", sample_log.RUN, "--out", str(page)], path)
    target = PICTURES / "report.png"
    words = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1150"]
    subprocess.run(
        [*words, f"--user-data-dir={page.parent}/browser", f"--screenshot={target}", page.as_uri()],
        env={**os.environ, "HOME": str(page.parent)},
        capture_output=True,
        timeout=120,
        check=True,
    )
    sys.stdout.write("docs/pictures/report.png\n")


if __name__ == "__main__":
    main()
