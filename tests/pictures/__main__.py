"""Takes the pictures that the documents show, of real commands on a made-up log. Run it as `make screenshots`."""

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.db.processes import ROOT, environment
from tests.pictures import dashboard, sample_log
from tests.pictures.terminal import picture

PICTURES = ROOT / "docs/pictures"
# What is shown, by the name of its picture. Screens that come later are one more line.
SCREENS = {
    "now": ["now"],
    "board": ["tasks", "board", sample_log.RUN, "--width", "30"],
    "timeline": ["runs", "timeline", sample_log.RUN, "--width", "48"],
    "burn": ["ledger", "burn"],
    "week": ["report", "week"],
}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path, _ = sample_log.made(Path(folder), datetime.now(UTC) - timedelta(hours=22))
        for name, words in SCREENS.items():
            (PICTURES / f"{name}.svg").write_text(picture(f"decklog {' '.join(words)}", printed(words, path)), encoding="utf-8")
            sys.stdout.write(f"docs/pictures/{name}.svg\n")
        take_report(path, Path(folder) / "report.html")
        (Path(folder) / "dashboard").mkdir()
        dashboard.take(Path(folder) / "dashboard", PICTURES)


def printed(words: list[str], path: Path) -> str:
    """Run a command of Decklog on a log, and give what it prints."""
    given = [sys.executable, "-m", "decklog", *words, "--db", str(path)]
    done = subprocess.run(given, env=environment(COLUMNS="110"), capture_output=True, text=True, timeout=60, check=False)
    # `now` says by 7 that a decision waits.
    assert done.returncode in (0, 7), done.stderr
    return done.stdout


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
