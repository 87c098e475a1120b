"""A sqlite3 command-line tool whose `.recover` works: one that is there, or one built from SQLite's own source.

Debian's 3.40.1 fails at `.recover`, and the shell that comes with apsw is built without it. The npm package `sqlite3` carries
SQLite's source as its authors publish it, the shell included; `python -m benchmarks.sqlite_shell` builds it (half a minute) and
prints where it is.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "decklog-bench"
BUILT = CACHE / "sqlite3"
OPTIONS = ("-O1", "-DSQLITE_ENABLE_DBPAGE_VTAB", "-DSQLITE_ENABLE_FTS5", "-DSQLITE_OMIT_LOAD_EXTENSION", "-DSQLITE_THREADSAFE=0")


@dataclass(frozen=True)
class Shell:
    """A tool that can recover, and its version."""

    path: str
    version: str


def find() -> Shell | None:
    """Find a tool that can recover, or build one; None when that can't be done here."""
    given = os.environ.get("DECKLOG_BENCH_SQLITE3")
    for name in [given] if given else ["sqlite3", str(BUILT)]:
        path = shutil.which(name)
        if path and can_recover(path):
            return Shell(path, version_of(path))
    if given or not (shutil.which("npm") and shutil.which("cc")):
        return None
    build()
    return Shell(str(BUILT), version_of(str(BUILT)))


def version_of(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout.split()[0]


def can_recover(path: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
        probe = f"{folder}/probe.db"
        subprocess.run([path, probe, "create table t (a); insert into t values ('here')"], check=True, timeout=30)
        result = subprocess.run([path, probe, ".recover"], capture_output=True, check=False, timeout=30)
        return b"'here'" in result.stdout


def build() -> None:
    """Fetch the source and compile the tool."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        subprocess.run(["npm", "pack", "sqlite3", "--silent"], cwd=folder, check=True, capture_output=True, timeout=120)
        (package,) = folder.glob("*.tgz")
        _unpack(package, folder)
        (source,) = (folder / "package" / "deps").glob("sqlite-autoconf-*.tar.gz")
        _unpack(source, folder)
        (place,) = folder.glob("sqlite-autoconf-*/")
        words = ["cc", *OPTIONS, "-o", str(folder / "built"), "shell.c", "sqlite3.c", "-lm"]
        subprocess.run(words, cwd=place, check=True, timeout=600)
        shutil.move(folder / "built", BUILT)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")


if __name__ == "__main__":
    print(find())
