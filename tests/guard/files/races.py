"""Race the file tools: one process swaps files for links that lead out while another reads and writes.

`python -m tests.guard.files.races` makes 10,000 swaps in each of five shapes and prints what happened. An
escape is a read that shows the bytes of a file outside the root, or any change outside it.
"""

import ctypes
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from decklog.core.errors import DecklogError, NotFound
from decklog.guard.files.root import Root

CANARY = b"canary: no tool may read or change this\n"
OWN = b"inside the root\n"
EXCHANGE = 2
HERE = -100
MOST_SECONDS = 120


@dataclass
class Outcome:
    """What came of one race. `refused` counts tries that met a swap and were turned away."""

    shape: str
    swaps: int = 0
    reads: int = 0
    writes: int = 0
    refused: int = 0
    missing: int = 0
    escapes: int = 0
    messages: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Shape:
    """A way to swap: the path the tools are given, how the tree is laid out, and one swap to and fro."""

    path: str
    lay: Callable[[Path], None]
    swap: Callable[[Path], None]


def _exchange(one: Path, other: Path) -> None:
    # The kernel's own exchange leaves no moment in which neither is there.
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None or renameat2(HERE, bytes(one), HERE, bytes(other), EXCHANGE) != 0:
        spare = one.with_name(f"{one.name}.spare")
        os.rename(one, spare)
        os.rename(other, one)
        os.rename(spare, other)


def _lay_file(tree: Path) -> None:
    (tree / "root/target.txt").write_bytes(OWN)
    (tree / "root/other").symlink_to("../outside/canary.txt")


def _lay_parent(tree: Path) -> None:
    (tree / "root/dir").mkdir()
    (tree / "root/dir/canary.txt").write_bytes(OWN)
    (tree / "root/other").symlink_to("../outside")


def _lay_grandparent(tree: Path) -> None:
    (tree / "root/top/inner").mkdir(parents=True)
    (tree / "root/top/inner/canary.txt").write_bytes(OWN)
    (tree / "root/other").symlink_to(tree / "outside")


def _swap_away(tree: Path) -> None:
    inner, away = tree / "root/dir", tree / "away"
    if not away.exists():
        os.rename(inner, away)
        with suppress(FileExistsError):
            inner.symlink_to("../outside")
        return
    # A write that finds no directory makes one, as it should: clear it away like the link.
    if inner.is_symlink():
        inner.unlink()
    shutil.rmtree(inner, ignore_errors=True)
    with suppress(OSError):
        os.rename(away, inner)


def _swap_hard_link(tree: Path) -> None:
    fresh, target = tree / "fresh", tree / "root/target.txt"
    with suppress(FileNotFoundError):
        fresh.unlink()
    if target.exists() and target.stat().st_nlink > 1:
        fresh.write_bytes(OWN)
    else:
        os.link(tree / "outside/canary.txt", fresh)
    os.rename(fresh, target)


SHAPES = {
    "file for link": Shape("target.txt", _lay_file, lambda tree: _exchange(tree / "root/target.txt", tree / "root/other")),
    "parent for link": Shape("dir/canary.txt", _lay_parent, lambda tree: _exchange(tree / "root/dir", tree / "root/other")),
    "grandparent for link": Shape(
        "top/inner/canary.txt", _lay_grandparent, lambda tree: _exchange(tree / "root/top", tree / "root/other")
    ),
    "directory moved away": Shape("dir/canary.txt", _lay_parent, _swap_away),
    "hard link renamed over": Shape("target.txt", _lay_file, _swap_hard_link),
}


def _build(tree: Path, shape: Shape) -> None:
    for directory in ("root", "outside/inner"):
        (tree / directory).mkdir(parents=True)
    for name in ("outside/canary.txt", "outside/inner/canary.txt"):
        (tree / name).write_bytes(CANARY)
    shape.lay(tree)


def _outside(tree: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted((tree / "outside").rglob("*")) if file.is_file()}


def _swap_for_ever(name: str, tree: str, swaps: Any, stop: Any) -> None:
    shape, place = SHAPES[name], Path(tree)
    while not stop.value:
        shape.swap(place)
        swaps.value += 1


def _tries(tree: Path, path: str) -> Iterator[Callable[[], bytes]]:
    """Give one try after another: nine reads and a write, again and again."""
    with Root(tree / "root") as root:
        while True:
            yield from [lambda: root.read(path).data] * 9
            yield lambda: root.write(path, OWN).encode()


def _note(outcome: Outcome, attempt: Callable[[], bytes], number: int) -> None:
    is_write = number % 10 == 9
    try:
        data = attempt()
        outcome.writes += is_write
        outcome.reads += not is_write
        outcome.escapes += data == CANARY
    except NotFound:
        outcome.missing += 1
    except DecklogError as error:
        outcome.refused += 1
        outcome.messages.add(str(error.details.get("rule", error.code)))


def race(name: str, swaps: int) -> Outcome:
    """Run one shape until so many swaps were made; give what came of it."""
    outcome, shape = Outcome(name), SHAPES[name]
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory).resolve()
        _build(tree, shape)
        before = _outside(tree)
        outcome.swaps = _against_swapper(name, tree, swaps, lambda attempt, number: _note(outcome, attempt, number))
        outcome.escapes += _outside(tree) != before
    return outcome


def _against_swapper(name: str, tree: Path, swaps: int, note: Callable[[Callable[[], bytes], int], None]) -> int:
    context = multiprocessing.get_context("spawn")
    made, stop = context.Value("q", 0), context.Value("b", 0)
    swapper = context.Process(target=_swap_for_ever, args=(name, str(tree), made, stop))
    swapper.start()
    limit = time.monotonic() + MOST_SECONDS
    try:
        for number, attempt in enumerate(_tries(tree, SHAPES[name].path)):
            note(attempt, number)
            is_done = made.value >= swaps and number >= swaps // 10
            if is_done or not swapper.is_alive() or time.monotonic() > limit:
                break
    finally:
        stop.value = 1
        swapper.join()
    if swapper.exitcode != 0:
        raise RuntimeError(f"the swapper of {name!r} failed")
    return int(made.value)


def naive_escape(tries: int) -> bool:
    """Say whether checking the path and then opening it by name loses the same race, as it should."""
    seen: list[bool] = []
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory).resolve()
        shape = SHAPES["parent for link"]
        _build(tree, shape)
        target, home = tree / "root" / shape.path, str(tree / "root")

        def note(_: Callable[[], bytes], __: int) -> None:
            for _ in range(20):
                with suppress(OSError):
                    if os.path.realpath(target).startswith(home):
                        seen.append(target.read_bytes() == CANARY)

        _against_swapper("parent for link", tree, tries, note)
    return any(seen)


def main(swaps: int = 10_000) -> list[Outcome]:
    """Run every shape and print the outcomes."""
    outcomes = []
    for name in SHAPES:
        outcomes.append(race(name, swaps))
        print(", ".join(f"{key} {value}" for key, value in asdict(outcomes[-1]).items()), flush=True)
    print(f"escapes in all: {sum(outcome.escapes for outcome in outcomes)}")
    return outcomes


if __name__ == "__main__":
    sys.exit(any(outcome.escapes for outcome in main(*map(int, sys.argv[1:2]))))
