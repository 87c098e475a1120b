"""The words for how something stands: each with a shape of the page's own, so that no colour has to be seen."""

import re

from decklog import TaskState
from decklog.web.rendering import shown_word, sign, state_sign
from tests.web.asking import Browser

# How a run or a task stands, by the one word for it; each has its own shape.
STANDS = ("needs you", "quiet", "running", "idle", "held", "done", "failed", "cancelled")
# Where a part of a run stands: the shape that means the same.
SHAPES = {
    "pending": "idle",
    "running": "running",
    "in progress": "running",
    "verifying": "running",
    **dict.fromkeys(("done", "completed", "met", "pass", "landed", "whole"), "done"),
    **dict.fromkeys(("failed", "fail", "error", "block", "not whole"), "failed"),
    **dict.fromkeys(("waiting", "paused", "blocked", "stale", "flaky", "unproven", "request-changes", "not verified"), "held"),
    **dict.fromkeys(("abandoned", "skipped"), "cancelled"),
}


def drawn(text: str) -> tuple[list[str], str]:
    """Give the shapes of a sign, and what of it is read."""
    return re.findall(r'<use href="#s-([a-z-]+)"/>', text), re.sub("<[^>]*>", "", text)


def test_every_word_has_one_shape_and_is_read() -> None:
    assert [drawn(sign(word)) for word in STANDS] == [([word.replace(" ", "-")], shown_word(word)) for word in STANDS]
    assert {word: drawn(state_sign(word)) for word in SHAPES} == {word: ([shape], word) for word, shape in SHAPES.items()}
    assert {state.value for state in TaskState} <= SHAPES.keys()


def test_a_word_that_somebody_made_up_has_a_ring_and_is_text() -> None:
    shapes, said = drawn(state_sign("<b>\u202e"))
    assert (shapes, said) == (["idle"], "&lt;b&gt;⟨U+202E⟩")


def test_every_shape_is_in_the_page_and_no_two_are_the_same(browser: Browser) -> None:
    found = dict(re.findall(r'<symbol id="s-([a-z-]+)"[^>]*>(.*?)</symbol>', browser.get("/now").text))
    assert found.keys() == {word.replace(" ", "-") for word in STANDS}
    assert len(set(found.values())) == len(found)
