"""A root to work in, opened by each of the two mechanisms."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog.tools.beneath import Opener, best_opener, open_by_openat2, open_by_walk
from decklog.tools.confine import Root


@pytest.fixture(params=[open_by_openat2, open_by_walk], ids=["openat2", "walk"])
def opener(request: pytest.FixtureRequest) -> Opener:
    """Give each way of opening a file beneath a root, in turn."""
    if request.param is open_by_openat2 and best_opener() is not open_by_openat2:
        pytest.skip("this kernel or sandbox has no openat2")
    return request.param


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
