"""A toolbox over a folder of its own, and a root to work in."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.guard import Sandbox, Toolbox, Unrestricted
from decklog.guard.files.root import Root
from decklog.guard.sandbox.sandbox import SandboxKind

OPEN = Sandbox(kind=SandboxKind.NONE)


@pytest.fixture
def target(tmp_path: Path) -> str:
    """The log of a test: these are about processes and files, so one engine is enough."""
    return str(tmp_path / "decklog.db")


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


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    """Open an empty directory as a root."""
    directory = tmp_path / "root"
    directory.mkdir()
    with Root(directory) as opened:
        yield opened


@pytest.fixture
def here(root: Root) -> Path:
    """The same directory as a path, to set up files and look at them."""
    return Path(root.path)
