"""A run on a terminal: in its width and height, drawn in its place."""

import io

from decklog.cli.lines import count_columns, render_line
from decklog.cli.screens.session import RunScreen, run_frame
from decklog.conductor.status import ConductorStatus, ItemStatus


def stands(*states: str, goal: str = "Teach the parser to read trailing commas") -> ConductorStatus:
    items = tuple(ItemStatus(f"item-{number}", state, "", 1, 1) for number, state in enumerate(states))
    return ConductorStatus("run_1", goal, "active", items, 3_120_000)


def test_what_is_under_way_stands_before_what_is_over_and_everything_fits() -> None:
    text = [render_line(line, colour=False) for line in run_frame(stands("landed", "work", "waits", "needs attention"), 80, 24)]
    assert text[0].startswith("Teach the parser")
    assert text[0].endswith("active  spent $3.12")
    assert [line.split()[1] for line in text[2:]] == ["item-1", "item-3", "item-0", "item-2"]
    for places, height in ((80, 24), (40, 10)):
        lines = run_frame(stands(*["work"] * 50, goal="x\n" * 200), places, height)
        assert len(lines) < height
        assert all(sum(count_columns(item.text) for item in line) <= places for line in lines)
    assert render_line(lines[-1], colour=False) == "and 46 more"


def test_it_is_drawn_over_what_was_drawn_and_not_again_when_nothing_changed() -> None:
    stream = io.StringIO()
    view = RunScreen(stream)
    view.draw(stands("work", "work"))
    first = stream.getvalue()
    assert first.count("\n") == 4
    view.draw(stands("work", "work"))
    assert stream.getvalue() == first
    view.draw(stands("landed"))
    assert stream.getvalue()[len(first) :].startswith("\x1b[4A")
