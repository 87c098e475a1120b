"""What confinement costs: each tool of an agent compared with the plain call it replaces, in one run."""

import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from decklog import Decklog, Toolbox, Unrestricted
from decklog.guard.files.files import edit_file
from decklog.guard.files.root import Root
from decklog.guard.search.search import grep
from decklog.guard.shell.supervisor import SET_CHILD_SUBREAPER

PATH = "src/package/module/file.py"
LINE = "    result = compute(first, second, third)  # a line of code like many others\n"
FILES = 3000
COMMANDS = 30


def timed(action: Callable[[], object], rounds: int, samples: int = 7) -> float:
    """Give the median of several samples, in microseconds for one call."""
    action()
    taken = []
    for _ in range(samples):
        start = time.perf_counter()
        for _ in range(rounds):
            action()
        taken.append((time.perf_counter() - start) / rounds)
    return Figure(taken) * 1e6


def compared(name: str, value: float, floor: float, target: float) -> Row:
    """Make a row of what ours takes, compared with the plain call that keeps no promise."""
    return row(name, value, "µs", floor=floor, target=f"<= {target:g}")


def running(here: Path) -> list[Row]:
    """Measure commands that do nothing, guarded and on record, compared with the same ones by themselves."""
    _inherit_orphans()
    bare = _cost(lambda: subprocess.run(["true"], check=True, capture_output=True))
    with Decklog.open(here / "log" / "decklog.db") as log:
        log.runs.start("Run commands", run_id="run_1")
        (here / "work").mkdir()
        with Toolbox(log, "run_1", root=here / "work", trust=Unrestricted()) as box:
            waited = _cost(lambda: box.run("true")) - bare
        with Toolbox(log, "run_1", root=here / "work", trust=Unrestricted()) as box:
            before = _cpu()
            for _ in range(COMMANDS):
                box.run("true")
        # What forks for the toolbox has ended with it: all that it started is counted, and its own start.
        guarded = 1000 * (_cpu() - before) / COMMANDS
        before = _cpu()
        for _ in range(COMMANDS):
            subprocess.run(["true"], check=True, capture_output=True)
        plain = 1000 * (_cpu() - before) / COMMANDS
    return [
        row("guarded command, waited for longer than a bare one", waited, "ms", target="<= 25"),
        row("guarded command, CPU time of all its processes beyond a bare one", guarded - plain, "ms", target="<= 25"),
    ]


def _cost(act: Callable[[], object]) -> float:
    """Give the median of what some calls wait, in milliseconds."""
    return timed(act, 1, COMMANDS) / 1000


def _inherit_orphans() -> None:
    """Have processes that lose their parents become children of this one: they are counted only where they are waited for."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _cpu() -> float:
    """Tell the CPU time of this process and of all that have ended below it."""
    time.sleep(0.2)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _plain_read(file: Path) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()


def _checked_read(root: str, file: Path) -> bytes:
    if not os.path.realpath(file).startswith(root):
        raise PermissionError(file)
    return _plain_read(file)


def reading(here: Path) -> list[Row]:
    """Measure reading one small file four directories deep."""
    file = here / PATH
    with Root(here) as root:
        plain = timed(lambda: _plain_read(file), 2000)
        checked = timed(lambda: _checked_read(str(here), file), 1000)
        return [
            compared("read, confined", timed(lambda: root.read(PATH), 2000), plain, 10),
            compared("read, confined, compared with realpath and open", timed(lambda: root.read(PATH), 2000), checked, 1.5),
        ]


def _plain_edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    temporary = file.with_suffix(".tmp")
    with open(temporary, "w") as opened:
        opened.write(text.replace(old, new, 1))
        opened.flush()
        os.fsync(opened.fileno())
    os.rename(temporary, file)
    directory = os.open(file.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def editing(here: Path) -> list[Row]:
    """Measure an edit that survives a power cut, of a file of a thousand lines."""
    file = here / "edit.py"
    file.write_text("first = 1\n" + LINE * 1000)
    names = ["first", "other"]

    def turn(edit: Callable[[str, str], object]) -> None:
        edit(names[0], names[1])
        names.reverse()

    with Root(here) as root:
        plain = timed(lambda: turn(lambda old, new: _plain_edit(file, f"{old} = 1", f"{new} = 1")), 30)
        ours = timed(lambda: turn(lambda old, new: edit_file(root, "edit.py", f"{old} = 1", f"{new} = 1")), 30)
    return [compared("edit, durable", ours, plain, 1.5)]


def searching(here: Path) -> list[Row]:
    """Measure a search for a rare word in three thousand files, compared with ripgrep alone if it is installed."""
    for number in range(FILES):
        file = here / f"tree/d{number % 60}/f{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(LINE * 60 + ("needle = 1\n" if number % 100 == 0 else ""))

    with Root(here) as root:
        ours = timed(lambda: grep(root, r"needle\s*=", "tree"), 1, 5)
    if shutil.which("rg") is None:
        return [row("grep, 3,000 files", ours, "µs")]
    command = ["rg", "--no-config", "--hidden", "--sort=path", "-n", r"needle\s*=", "tree"]
    plain = timed(lambda: subprocess.run(command, cwd=here, capture_output=True, check=True), 1, 5)
    return [compared("grep, 3,000 files", ours, plain, 8)]


def main() -> list[Row]:
    """Measure all of them; write benchmarks/results/confinement.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as directory:
        here = Path(directory).resolve()
        (here / PATH).parent.mkdir(parents=True)
        (here / PATH).write_text(LINE * 20)
        rows = [*reading(here), *editing(here), *searching(here), *running(here)]
    write("confinement", "An agent's tools compared with plain calls", rows)
    return rows


if __name__ == "__main__":
    main()
