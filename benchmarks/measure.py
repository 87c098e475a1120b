"""What the measurements share: interleaved timing, rows of results and their table."""

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from benchmarks.figures import Figure, ratio_of, spread

_CELLS = 7
RESULTS = Path(__file__).parent / "results"


class Row(TypedDict, total=False):
    """One figure: its value, its baseline, and the target as a comparison of the ratio."""

    name: str
    value: float
    unit: str
    floor: float
    ratio: float
    spread: str
    target: str


def rate(work: Callable[[], int]) -> float:
    """Run work that returns how many things it did; return things per second."""
    begin = time.perf_counter()
    count = work()
    return count / (time.perf_counter() - begin)


def in_turns(rounds: int, *works: Callable[[], float]) -> list[float]:
    """Run the works in turns, so that noise meets all of them; give each one's median, which knows what was seen."""
    results: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            results[place].append(work())
    return [Figure(result) for result in results]


def in_slices(size: int, *works: Iterator[object]) -> list[float]:
    """Interleave works of many steps until one of them is done; return the steps per second of each.

    For works that wait for a disk, whose speed may change every second: short turns let every one of them meet the same disk.
    The fastest and the slowest twentieth of the turns are left out.
    """
    times: list[list[float]] = [[] for _ in works]
    while True:
        for work, seen in zip(works, times, strict=True):
            begin = time.perf_counter()
            steps = sum(1 for _ in itertools.islice(work, size))
            if steps < size:
                return [_steady(size, each[1:]) for each in times]
            seen.append(time.perf_counter() - begin)


def _steady(size: int, times: list[float]) -> float:
    """Give steps per second without the fastest and the slowest twentieth; around it lies what each tenth of the turns made."""
    cut = len(times) // 20
    middle = size / statistics.mean(sorted(times)[cut : len(times) - cut])
    step = max(1, len(times) // 10)
    parts = [size / statistics.mean(times[start : start + step]) for start in range(0, len(times), step)]
    return Figure(parts).at(middle)


def row(name: str, value: float, unit: str, *, floor: float | None = None, target: str = "") -> Row:
    """Make one row and print it. For rates a large ratio is good, for costs a small one; the target shows which."""
    made: Row = {"name": name, "value": value, "unit": unit, "target": target}
    if floor:
        made["floor"] = floor
        made["ratio"] = ratio_of(value, floor)
    if around := spread(made.get("ratio", value)):
        made["spread"] = " – ".join(_short(one) for one in around)
    print(text_of(made), flush=True)
    return made


def _short(number: float) -> str:
    return f"{number:.2f}" if abs(number) < 100 else f"{number:,.0f}"


def text_of(row: Row) -> str:
    floor = f"  floor {row['floor']:>12,.1f}  ratio {row['ratio']:.2f}" if "floor" in row else ""
    around = f"  ({row['spread']})" if row.get("spread") else ""
    target = f"  target {row['target']}" if row.get("target") else ""
    return f"{row['name']:<58} {row['value']:>12,.1f} {row['unit']:<10}{floor}{around}{target}"


def meets(row: Row) -> bool | None:
    """Say whether a row meets its target, such as `>= 0.5` of the ratio or `<= 1000` of the value; None without one."""
    target = row.get("target", "")
    if not target:
        return None
    comparison, _, number = target.partition(" ")
    measured = row.get("ratio", row["value"])
    limit = float(number.split()[0])
    return measured >= limit if comparison == ">=" else measured <= limit


def write(name: str, title: str, rows: list[Row], notes: Sequence[str] = ()) -> None:
    """Write a table and how the figures were taken to benchmarks/results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines = [f"# {title}", "", *table(rows)]
    notes = [*notes, *_others_at_work()]
    if notes:
        lines += ["", "How it was measured:", "", *(f"- {note}" for note in notes)]
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def renew(name: str, title: str, rows: list[Row]) -> None:
    """Put figures that were taken anew in the place of those of the same name in a page; the others and the notes stay."""
    page = RESULTS / f"{name}.md"
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    known = {item["name"]: item for line in lines if (item := _read(line)) is not None}
    known.update((item["name"], item) for item in rows)
    _, mark, notes = "\n".join(lines).partition("How it was measured:")
    text = "\n".join([f"# {title}", "", *table([*known.values()])])
    page.write_text(f"{text}\n\n{mark}{notes}\n" if mark else f"{text}\n", encoding="utf-8")


def _read(line: str) -> Row | None:
    """Read a row of a table as `table` writes it."""
    cells = [cell.strip() for cell in line.split("|")][1:-1]
    if len(cells) != _CELLS or cells[0] == "what" or cells[0].startswith("---"):
        return None
    figure, _, unit = cells[1].partition(" ")
    item: Row = {"name": cells[0], "value": float(figure.replace(",", "")), "unit": unit, "spread": cells[4], "target": cells[5]}
    if cells[2]:
        item["floor"], item["ratio"] = float(cells[2].replace(",", "")), float(cells[3])
    return item


def _others_at_work() -> list[str]:
    """Say so where more was at work than there are processors: what is waited for then counts others' work too."""
    load, processors = os.getloadavg()[2], os.cpu_count() or 1
    if load <= processors + 1:
        return []
    return [f"with other work on the machine (a load of {load:.0f} on {processors} processors), so only ratios say something"]


def table(rows: list[Row]) -> list[str]:
    """Write rows as a table."""
    lines = [
        "| what | figure | floor or peer | ratio | spread | target | met |",
        "| --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for item in rows:
        floor = f"{item['floor']:,.1f}" if "floor" in item else ""
        ratio = f"{item['ratio']:.2f}" if "ratio" in item else ""
        met = {True: "yes", False: "**no**", None: ""}[meets(item)]
        figure, around = f"{item['value']:,.1f} {item['unit']}", item.get("spread", "")
        lines.append(f"| {item['name']} | {figure} | {floor} | {ratio} | {around} | {item.get('target', '')} | {met} |")
    return lines


def write_section(name: str, heading: str, lines: Sequence[str]) -> None:
    """Put lines under a heading of a page, in place of what was there; the rest of the page stays."""
    page = RESULTS / f"{name}.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(f"## {heading}\n")
    _, mark, after = rest.partition("\n## ")
    text = before.rstrip() + f"\n\n## {heading}\n\n" + "\n".join(lines).strip() + "\n"
    page.write_text(text + (f"\n## {after}" if mark else ""), encoding="utf-8")
