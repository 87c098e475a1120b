"""A dashboard in this process, and a browser that has logged in."""

from collections.abc import Iterator

import pytest

from decklog import Decklog
from tests.web.asking import Browser, made


@pytest.fixture
def stranger(log: Decklog) -> Iterator[Browser]:
    """A browser that has not logged in."""
    browser = made(log)
    with browser.runner:
        yield browser


@pytest.fixture
def browser(stranger: Browser) -> Browser:
    return stranger.log_in()
