"""A store of LangGraph's on a log: items are found by prefix, filter and meaning, and are gone when their time is over."""

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock

if find_spec("langgraph") is None or find_spec("langgraph.store") is None:
    pytest.skip("LangGraph is not installed", allow_module_level=True)


def setup_module() -> None:
    """Import what takes longer than all else that is collected, for those who run these tests alone."""
    global DecklogStore, GetOp, PutOp, SearchOp
    from langgraph.store.base import GetOp, PutOp, SearchOp

    from decklog.plugins.adapters.langgraph import DecklogStore


def near(texts: list[str]) -> list[list[float]]:
    """Embed by hand: how much of each of two words there is."""
    return [[float(text.count("comma")), float(text.count("clock")), 0.1] for text in texts]


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


def test_an_item_is_put_got_and_deleted(log: Decklog) -> None:
    store = DecklogStore(log)
    store.put(("users", "ana"), "likes", {"food": "soup"})
    store.put(("users", "ana"), "likes", {"food": "bread"})
    found = store.get(("users", "ana"), "likes")
    assert found is not None
    assert (found.value, found.namespace, found.key) == ({"food": "bread"}, ("users", "ana"), "likes")
    store.delete(("users", "ana"), "likes")
    assert store.get(("users", "ana"), "likes") is None
    assert log.states.graph_items() == []
    assert log.journal.verify().ok


def test_items_are_searched_by_prefix_and_filter(log: Decklog) -> None:
    store = DecklogStore(log)
    for number, place in enumerate((("a",), ("a", "b"), ("ab",), ("a", "b", "c"))):
        store.put(place, f"k{number}", {"n": number, "tag": {"even": number % 2 == 0}})
    assert sorted(keys(store.search(("a",)))) == ["k0", "k1", "k3"]
    assert keys(store.search(("a",), filter={"n": {"$gte": 1, "$lt": 3}})) == ["k1"]
    assert keys(store.search((), filter={"tag": {"even": True}}, limit=1, offset=1)) == ["k2"]
    assert sorted(keys(store.search(("a",), filter={"n": {"$ne": 0}, "tag": {"even": False}}))) == ["k1", "k3"]
    with pytest.raises(Invalid, match="knows no operator"):
        store.search(("a",), filter={"n": {"$regex": "."}})
    assert store.list_namespaces(prefix=("a",), max_depth=2) == [("a",), ("a", "b")]
    assert store.list_namespaces(suffix=("*", "c")) == [("a", "b", "c")]


def test_items_are_found_by_what_they_mean(log: Decklog) -> None:
    store = DecklogStore(log, index={"dims": 3, "embed": near, "fields": ["text"]})
    store.put(("notes",), "one", {"text": "comma comma"})
    store.put(("notes",), "two", {"text": "clock"})
    store.put(("notes",), "none", {"text": "clock clock"}, index=False)
    store.put(("notes",), "own", {"text": "comma", "title": "clock clock clock"}, index=["title"])
    found = store.search(("notes",), query="clock")
    assert keys(found)[-2:] == ["one", "none"]
    assert sorted(keys(found)[:2]) == ["own", "two"]
    assert found[-1].score is None


def test_an_item_lives_as_long_as_it_is_looked_at(log: Decklog, clock: ManualClock) -> None:
    store = DecklogStore(log, ttl={"default_ttl": 10, "refresh_on_read": True})
    store.put(("t",), "looked at", {"n": 1})
    store.put(("t",), "forgotten", {"n": 2})
    store.put(("t",), "lasting", {"n": 3}, ttl=None)
    clock.advance(minutes=8)
    assert store.get(("t",), "looked at") is not None
    clock.advance(minutes=8)
    assert sorted(keys(store.search(("t",), refresh_ttl=False))) == ["lasting", "looked at"]
    assert store.sweep_ttl() == 1
    assert store.sweep_ttl() == 0


def test_a_batch_reads_before_it_puts_and_the_last_put_counts(log: Decklog) -> None:
    store = DecklogStore(log)
    ops = [
        PutOp(("b",), "k", {"n": 1}),
        GetOp(("b",), "k"),
        PutOp(("b",), "k", {"n": 2}),
        SearchOp(("b",)),
    ]
    assert store.batch(ops) == [None, None, None, []]

    async def main() -> Any:
        return await store.abatch([*ops, PutOp(("b",), "gone", None)])

    _, got, _, searched, _ = asyncio.run(main())
    assert (got.value, keys(searched)) == ({"n": 2}, ["k"])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_would_not_come_back_as_it_was_is_refused(log: Decklog, value: float) -> None:
    store = DecklogStore(log)
    with pytest.raises(Invalid):
        store.put(("notes",), "n1", {"score": value})
    assert store.get(("notes",), "n1") is None
