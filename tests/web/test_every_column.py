"""Sixty payloads in every text column of every record, as rows and as images: no page has anything in it but text."""

import re

import pytest

from decklog import Decklog
from decklog.web.pages.run import TABS
from tests.conftest import on_both
from tests.pictures import sample_parts
from tests.searches import FULL
from tests.web.client import Browser
from tests.web.payloads import PAYLOADS
from tests.web.poison import poison
from tests.web.test_text_of_agents import shape

TURNS = 4
CHUNKS = [" ".join(PAYLOADS[start::TURNS]) for start in range(TURNS)]
PLACES = (
    *("/now", "/runs", "/runs?as=family"),
    *("/inbox", "/spend", "/spend?by=run", "/search?q=text*", "/search?q=comma*", "/tasks?state=blocked"),
    *("/tasks/docs", "/tasks/lexer", "/tasks/release", "/memory", "/memory?q=lexer", "/memory?topic=parser", "/memory?health=1"),
    *(f"/runs/{sample_parts.ITEMS}/{tab}" for tab in ("checks", "lanes")),
    *("/workflow", "/trust", "/system", "/more", "/compare?a=commas:20&b=commas", "/compare?a=commas&b=fast-tests"),
    *(f"/runs/commas/entries/{seq}" for seq in (5, 20, 40)),
    *(f"/runs/commas/{tab}" for tab in (*TABS, "tasks?as=table", "overview?at=30", "states?name=grammar&version=2")),
)
# What is in a page of plain words or not, by chance: the second page of a list, what is folded, what failed.
_ALSO = {("a", "rel"), ("p", "role"), ("p", "class"), ("b", "class"), ("details", "open"), ("a", "href"), ("div", "class")}
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


@pytest.mark.slow
@on_both
def test_no_column_of_any_record_reaches_past_its_own_text(log: Decklog, filled: Browser) -> None:
    browser, is_server = filled, log.db.engine == "postgres"
    # PostgreSQL has no text with a null character in it; the pages are the same, so that one round of them is enough there.
    turns = TURNS if FULL else 1 if is_server else 2
    chunks = [chunk.replace("\0", "") for chunk in CHUNKS] if is_server else CHUNKS
    done = poison(log, ["text of somebody"], 0)
    places = [*PLACES, *(f"/reviews/{review.id}" for review in log.reviews.find(sample_parts.ITEMS))]
    known = set().union(*(shape(browser.get(place).text) for place in places)) | _ALSO
    for turn in range(turns):
        done |= poison(log, chunks, turn)
        for place in places:
            answer = browser.get(place)
            assert answer.status in (200, 404), (place, answer.text)
            assert shape(answer.text) <= known, (place, shape(answer.text) - known)
            assert not HIDDEN.search(answer.text), place
            # No text becomes a link: all links lead to pages of this server.
            assert [one for one in re.findall(r'(?:href|src|action)="([^"]*)"', answer.text) if one[:1] not in "/#"] == [], place
    assert {"tasks.title", "runs.goal", "approvals.question", "lessons.body"} <= done
    assert len(done) > 20
