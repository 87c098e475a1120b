"""Records the first minutes as an animated picture: real commands on a terminal, then the dashboard. No script runs in it."""

import base64
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from tests.cli.screens import Terminal
from tests.pictures import history
from tests.pictures.terminal import LINE, drawn_rows, filled, text_at
from tests.waiting import wait_until

COLUMNS, LINES = 100, 22
_WIDTH, _HEIGHT, _BAR, _EDGE = 876, 496, 34, 18
# Each command, and how many seconds its output is shown.
_COMMANDS = (("init", 2.4), ("import claude", 4.0), ("cost", 4.6), ("setup claude", 2.6))
_TYPING, _DASHBOARD = 0.7, 3.6
_PROJECT = "/home/you/project"


@dataclass(frozen=True)
class Frame:
    """A part of the picture, and how long it is shown."""

    seconds: float
    drawn: str


def recorded(dashboard: Path) -> str:
    """Run the commands in a new home with a month of sessions; return the picture, which ends with the dashboard."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        project = Path(folder) / "p"
        (project / ".git").mkdir(parents=True)
        history.write(Path(folder), project, datetime.now(UTC))
        frames: list[Frame] = []
        for command, seconds in _COMMANDS:
            rows = _output(command, project)
            frames += [_typed(command), Frame(seconds, _prompt(f"decklog {command}") + drawn_rows(rows, _BAR + LINE))]
    frames += [_typed("serve"), Frame(_DASHBOARD, _image(dashboard))]
    return _animated(frames)


def _output(command: str, project: Path) -> list[Sequence[Any]]:
    """Run a command on a terminal; return its lines, with a usual name for the folder."""
    size = {"columns": COLUMNS, "lines": LINES + 10, "TERM": "xterm-256color", "HOME": str(project.parent)}
    with Terminal(*command.split(), cwd=project, **size) as terminal:
        wait_until(lambda: "[y/N]" in terminal.shown or (bool(terminal.shown) and terminal.process.poll() is not None))
        if "[y/N]" in terminal.shown:
            terminal.press("n\n")
            wait_until(lambda: bool(terminal.shown) and terminal.process.poll() is not None)
        rows = filled(terminal.cells)
    return [_renamed(row, str(project)) for row in rows[:LINES]]


def _renamed(row: Sequence[Any], folder: str) -> Sequence[Any]:
    place = "".join(cell.data for cell in row).find(folder)
    if place < 0:
        return row
    cells = [row[place]._replace(data=character) for character in _PROJECT]
    return _renamed([*row[:place], *cells, *row[place + len(folder) :]], folder)


def _prompt(text: str) -> str:
    return text_at(0, f"$ {text}", _BAR + LINE - 4)


def _typed(command: str) -> Frame:
    return Frame(_TYPING, _prompt(f"decklog {command}▌"))


def _image(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    place = f'x="0" y="{_BAR}" width="{_WIDTH}" height="{_HEIGHT - _BAR}" preserveAspectRatio="xMidYMin slice"'
    return f'<image {place} href="data:image/png;base64,{data}"/>'


def _animated(frames: Sequence[Frame]) -> str:
    """Put the frames one after the other; a reader who wants no motion sees the last but one."""
    whole, start = sum(frame.seconds for frame in frames), 0.0
    styles, groups = [], []
    for number, frame in enumerate(frames):
        begin, end = start * 100 / whole, (start + frame.seconds) * 100 / whole
        start += frame.seconds
        visible = f"{begin:.2f}%{{visibility:visible}}{end:.2f}%{{visibility:hidden}}"
        styles.append(f"@keyframes f{number}{{0%{{visibility:hidden}}{visible}100%{{visibility:hidden}}}}")
        if number == 0:
            styles[-1] = f"@keyframes f0{{0%{{visibility:visible}}{end:.2f}%{{visibility:hidden}}100%{{visibility:hidden}}}}"
        styles.append(f"#f{number}{{visibility:hidden;animation:f{number} {whole:.1f}s step-end infinite}}")
        groups.append(f'<g id="f{number}">{frame.drawn}</g>')
    still = f"@media(prefers-reduced-motion){{g{{animation:none!important}}#f{len(frames) - 1}{{visibility:visible}}}}"
    label = escape("decklog init, import claude, cost, setup claude, and the dashboard")
    dots = "".join(f'<circle cx="{20 + 18 * place}" cy="17" r="5.5" fill="#3a4453"/>' for place in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
        f' role="img" aria-label="{label}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
        f"<style>{''.join(styles)}{still}</style>\n"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="#171c24"/>{dots}\n' + "\n".join(groups) + "\n</svg>\n"
    )
