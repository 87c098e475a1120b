"""What the measurements share: timing in turns, rows of results, a table and a chart."""

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from benchmarks.figures import Figure, beside, spread

_CELLS = 7
DOCS = Path(__file__).parent.parent / "docs" / "benchmarks"


class Row(TypedDict, total=False):
    """One figure: its value, the floor it stands beside, and the target as a comparison of the ratio."""

    name: str
    value: float
    unit: str
    floor: float
    ratio: float
    spread: str
    target: str


def rate(work: Callable[[], int]) -> float:
    """Run some work that says how many things it did; give things per second."""
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
    """Let works that go on step by step have turns of so many steps, until one of them is done; give each one's steps per second.

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
    """Make one row and print it. For rates a large ratio is good, for costs a small one; the target says which."""
    made: Row = {"name": name, "value": value, "unit": unit, "target": target}
    if floor:
        made["floor"] = floor
        made["ratio"] = beside(value, floor)
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
    """Write a table, a chart of the ratios, and how the figures were taken, to docs/benchmarks."""
    DOCS.mkdir(parents=True, exist_ok=True)
    has_ratios = any("ratio" in item for item in rows)
    picture = [f"![{title}]({name}.svg)", ""] if has_ratios else []
    lines = [f"# {title}", "", *picture, *table(rows)]
    notes = [*notes, *_others_at_work()]
    if notes:
        lines += ["", "How it was measured:", "", *(f"- {note}" for note in notes)]
    (DOCS / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if has_ratios:
        (DOCS / f"{name}.svg").write_text(chart(title, rows), encoding="utf-8")


def renew(name: str, title: str, rows: list[Row]) -> None:
    """Put figures that were taken anew in the place of those of the same name in a page; the others and the notes stay."""
    page = DOCS / f"{name}.md"
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    known = {item["name"]: item for line in lines if (item := _read(line)) is not None}
    known.update((item["name"], item) for item in rows)
    _, mark, notes = "\n".join(lines).partition("How it was measured:")
    has_ratios = any("ratio" in item for item in known.values())
    picture = [f"![{title}]({name}.svg)", ""] if has_ratios else []
    text = "\n".join([f"# {title}", "", *picture, *table([*known.values()])])
    page.write_text(f"{text}\n\n{mark}{notes}\n" if mark else f"{text}\n", encoding="utf-8")
    if has_ratios:
        (DOCS / f"{name}.svg").write_text(chart(title, [*known.values()]), encoding="utf-8")


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
    page = DOCS / f"{name}.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(f"## {heading}\n")
    _, mark, after = rest.partition("\n## ")
    text = before.rstrip() + f"\n\n## {heading}\n\n" + "\n".join(lines).strip() + "\n"
    page.write_text(text + (f"\n## {after}" if mark else ""), encoding="utf-8")


def chart(title: str, rows: list[Row]) -> str:
    """Draw the ratios as bars; the line is the floor itself."""
    shown = [item for item in rows if "ratio" in item]
    widest = max([item["ratio"] for item in shown] + [1.0])
    height = 44 + 22 * len(shown)
    scale = 360 / widest
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{_escape(title)}: ratio to the floor</text>',
    ]
    for place, item in enumerate(shown):
        y = 36 + 22 * place
        colour = {True: "#2a7f3f", False: "#b03030", None: "#5a6f8f"}[meets(item)]
        parts.append(f'<text x="400" y="{y + 13}" text-anchor="end">{_escape(item["name"])}</text>')
        parts.append(f'<rect x="410" y="{y}" width="{max(1.0, item["ratio"] * scale):.1f}" height="16" fill="{colour}"/>')
        parts.append(f'<text x="{416 + item["ratio"] * scale:.1f}" y="{y + 13}">{item["ratio"]:.2f}</text>')
    parts.append(
        f'<line x1="{410 + scale:.1f}" x2="{410 + scale:.1f}" y1="30" y2="{height - 4}" stroke="black" stroke-dasharray="4 3"/>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
