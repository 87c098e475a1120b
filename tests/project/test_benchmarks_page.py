"""The benchmarks page repeats the result files exactly, and no other page has figures."""

import re
from pathlib import Path

import pytest

from tests.db.processes import ROOT

PAGE = ROOT / "docs/benchmarks/README.md"
RESULTS = ROOT / "benchmarks/results"
_CELLS = 7
# Pages that may name measured figures: the table itself.
_MEASURED = re.compile(r"\d[\d,.]*\s?(?:µs|per s\b|entries/s|entries a second|per second)|\b\d+\.\d+ ?%")


def rows() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [row for row in cells if row[0] != "what" and not row[0].startswith("---")]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[-1]}: {row[0]}")
def test_figure_and_ratio_are_those_of_the_result_file(row: list[str]) -> None:
    assert len(row) == _CELLS
    _, figure, _, ratio, *_, result = row
    lines = (RESULTS / f"{result}.md").read_text(encoding="utf-8").splitlines()
    cells = [cell for cell in (figure, ratio) if cell]
    assert cells
    assert any(all(re.search(rf"\| \**{re.escape(cell)}\** ", line) for cell in cells) for line in lines), cells


def test_every_result_file_is_listed() -> None:
    listed = (ROOT / "docs/contributors/figures.md").read_text(encoding="utf-8")
    assert [path.stem for path in sorted(RESULTS.glob("*.md")) if f"`{path.stem}`" not in listed] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: str(path.relative_to(ROOT)))
def test_measured_figures_are_on_the_benchmarks_page_only(page: Path) -> None:
    if page != PAGE:
        assert _MEASURED.findall(page.read_text(encoding="utf-8")) == []
