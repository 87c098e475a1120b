"""What confinement costs: each file tool beside the plain call it replaces, in one run.

`floor` is the plain call that keeps no promise, `value` is ours, `ratio` is how many times longer ours
takes, and `target` is the ratio we hold ourselves to.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from decklog.tools.files.files import edit_file
from decklog.tools.files.open_beneath import open_by_walk
from decklog.tools.files.root import Root
from decklog.tools.search.search import Engine, grep

Row = dict[str, str | float]
PATH = "src/package/module/file.py"
LINE = "    result = compute(first, second, third)  # a line of code like many others\n"
FILES = 3000


def timed(action: Callable[[], object], rounds: int, samples: int = 7) -> float:
    """Give the median of several samples, in microseconds for one call."""
    action()
    taken = []
    for _ in range(samples):
        start = time.perf_counter()
        for _ in range(rounds):
            action()
        taken.append((time.perf_counter() - start) / rounds)
    return statistics.median(taken) * 1e6


def row(name: str, value: float, floor: float, target: float) -> Row:
    """Make one row of the result."""
    ratio = round(value / floor, 2)
    return {
        "name": name,
        "value": round(value, 1),
        "unit": "µs",
        "floor": round(floor, 1),
        "ratio": ratio,
        "target": target,
    }


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
    with Root(here) as root, Root(here, opener=open_by_walk) as walking:
        plain = timed(lambda: _plain_read(file), 2000)
        checked = timed(lambda: _checked_read(str(here), file), 1000)
        return [
            row("read, confined by the kernel", timed(lambda: root.read(PATH), 2000), plain, 6),
            row("read, confined by a walk", timed(lambda: walking.read(PATH), 1000), plain, 10),
            row("read, confined, beside realpath and open", timed(lambda: root.read(PATH), 2000), checked, 1.5),
        ]


def _plain_edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    beside = file.with_suffix(".tmp")
    with open(beside, "w") as opened:
        opened.write(text.replace(old, new, 1))
        opened.flush()
        os.fsync(opened.fileno())
    os.rename(beside, file)
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
    return [row("edit, durable", ours, plain, 1.5)]


def searching(here: Path) -> list[Row]:
    """Measure a search for a rare word in three thousand files, beside ripgrep alone if it is installed."""
    for number in range(FILES):
        file = here / f"tree/d{number % 60}/f{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(LINE * 60 + ("needle = 1\n" if number % 100 == 0 else ""))

    def ours(engine: Engine) -> Callable[[], object]:
        return lambda: grep(root, r"needle\s*=", "tree", engine=engine)

    with Root(here) as root:
        python = timed(ours("python"), 1, 5)
        if shutil.which("rg") is None:
            return [row("grep without ripgrep, 3,000 files", python, python, 1)]
        command = ["rg", "--no-config", "--hidden", "--sort=path", "-n", r"needle\s*=", "tree"]
        plain = timed(lambda: subprocess.run(command, cwd=here, capture_output=True, check=True), 1, 5)
        return [
            row("grep with ripgrep, 3,000 files", timed(ours("ripgrep"), 1, 5), plain, 4),
            row("grep without ripgrep, 3,000 files", python, plain, 8),
        ]


def main() -> list[Row]:
    """Run every measurement, print the rows and give them."""
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory).resolve()
        (here / PATH).parent.mkdir(parents=True)
        (here / PATH).write_text(LINE * 20)
        rows = [*reading(here), *editing(here), *searching(here)]
    for one in rows:
        print(
            f"{one['name']:<44} {one['value']:>10} {one['unit']}  floor {one['floor']:>10}"
            f"  ratio {one['ratio']:>6}  target {one['target']}"
        )
    return rows


if __name__ == "__main__":
    main()
