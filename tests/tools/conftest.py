"""A toolbox over a folder of its own, and people who answer for those of other stores."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.tools import Sandbox, Toolbox, Unrestricted
from decklog.tools.sandbox import Kind

OPEN = Sandbox(kind=Kind.NONE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder that a toolbox works in."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def make_box(log: Decklog, run_id: str, place: Path, tmp_path: Path) -> Iterator[Callable[..., Toolbox]]:
    """Open toolboxes of one run; they are closed when the test ends."""
    with ExitStack() as opened:

        def make(**settings: Any) -> Toolbox:
            given = {"root": place, "trust": Unrestricted(), "sandbox": OPEN, "state": tmp_path / "state", "agent": "dev"}
            return opened.enter_context(Toolbox(log, run_id, **{**given, **settings}))

        yield make


@pytest.fixture
def box(make_box: Callable[..., Toolbox]) -> Toolbox:
    """A toolbox that nothing holds in, so that a test sees the tool alone."""
    return make_box()
