"""Status words: each has a shape, so that no colour is needed."""

import re

from decklog import Decklog, RunStatus, Status, TaskState
from decklog.cli.terminal import BAD, DIM, GOOD, LOUD, status_style
from decklog.conductor.status import STATES
from decklog.core.display import TONES
from decklog.web.rendering import sign, state_sign
from tests.stores.claiming import claimed
from tests.web.client import Browser

# Symbols of the page, by the status words that show them.
SYMBOLS = {
    "needs-attention": ("needs attention", "open"),
    "stalled": ("stalled",),
    "blocked": ("blocked",),
    "running": ("running", "in progress", "verifying", "work", "check"),
    "idle": ("idle", "pending", "ready"),
    "paused": ("paused", "waiting", "flaky", "unproven", "request-changes", "not verified"),
    "done": ("done", "completed", "met", "pass", "landed", "verified"),
    "failed": ("failed", "fail", "error", "block", "damaged", "stale"),
    "cancelled": ("cancelled", "abandoned", "skipped"),
}
SHAPES = {word: symbol for symbol, words in SYMBOLS.items() for word in words}


def drawn(html: str) -> tuple[list[str], str]:
    """Return the shapes of a sign and its text."""
    return re.findall(r'<use href="#s-([a-z-]+)"/>', html), re.sub("<[^>]*>", "", html)


def test_every_word_has_one_shape_and_is_read() -> None:
    assert {word: drawn(sign(word)) for word in SHAPES} == {word: ([shape], word) for word, shape in SHAPES.items()}
    assert {word: drawn(state_sign(word)) for word in SHAPES} == {word: ([shape], word) for word, shape in SHAPES.items()}


def test_a_sign_is_one_element_with_its_colour() -> None:
    drawing = '<svg aria-hidden="true"><use href="#s-paused"/></svg>paused</span>'
    assert sign("paused") == f'<span class="s hold">{drawing}'
    assert state_sign("paused") == f'<span class="s state st-hold">{drawing}'


def test_every_status_has_a_tone_that_all_interfaces_share() -> None:
    words = {one.value for kind in (Status, TaskState, RunStatus) for one in kind} | set(STATES)
    assert words - SHAPES.keys() <= {"queued", *TONES}
    assert {word: status_style(word) for word in ("needs attention", "stalled", "blocked", "paused", "done")} == {
        "needs attention": LOUD,
        "stalled": BAD,
        "blocked": BAD,
        "paused": DIM,
        "done": GOOD,
    }


def test_a_task_has_one_word_in_the_board_the_list_and_its_page(log: Decklog, run_id: str, browser: Browser) -> None:
    for state in ("pending", "running", "blocked", "paused", "abandoned"):
        log.tasks.add(run_id, f"Task {state}", task_id=state, role=state)
    for state in ("running", "blocked"):
        claim = claimed(log, run_id, worker="dev-1", role=state)
    claim.block("no access")
    log.tasks.pause("paused", reason="later")
    log.tasks.abandon("abandoned", reason="not needed")
    for state in ("pending", "running", "blocked", "paused", "abandoned"):
        assert log.overview.task(state)["status"] == state
        board = re.search(f'id="card-{state}" data-row>(.*?)</span>', browser.get(f"/runs/{run_id}/tasks").text, re.DOTALL)
        assert board is not None
        assert drawn(board[1])[1] == state
        page = re.search(r'<div class="title">(.*?)</span>', browser.get(f"/tasks/{state}").text, re.DOTALL)
        assert page is not None
        assert drawn(page[1])[1] == state


def test_unknown_status_is_escaped() -> None:
    shapes, text = drawn(state_sign("<b>\u202e"))
    assert (shapes, text) == (["idle"], "&lt;b&gt;⟨U+202E⟩")


def test_every_shape_is_in_the_page_and_no_two_are_the_same(browser: Browser) -> None:
    found = dict(re.findall(r'<symbol id="s-([a-z-]+)"[^>]*>(.*?)</symbol>', browser.get("/now").text))
    assert found.keys() == SYMBOLS.keys()
    assert len(set(found.values())) == len(found)
