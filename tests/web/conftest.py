"""Browsers of a dashboard in this process."""

from collections.abc import Iterator

import pytest

from decklog import Decklog, ManualClock
from tests.pictures import sample_log, sample_parts
from tests.web.client import Browser, make_browser


@pytest.fixture
def stranger(log: Decklog) -> Iterator[Browser]:
    """A browser that has not logged in."""
    browser = make_browser(log)
    with browser.runner:
        yield browser


@pytest.fixture
def browser(stranger: Browser) -> Browser:
    return stranger.log_in()


@pytest.fixture
def sample(log: Decklog, clock: ManualClock, browser: Browser) -> Browser:
    """A dashboard of a week of two runs."""
    sample_log.write(log, clock)
    return browser


@pytest.fixture
def filled(log: Decklog, clock: ManualClock, sample: Browser) -> Browser:
    """The same with records of every kind."""
    sample_parts.write(log, clock)
    return sample
