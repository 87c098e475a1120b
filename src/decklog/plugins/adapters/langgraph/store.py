"""A store for LangGraph: items with keys in namespaces, shared by graphs and their threads."""

import asyncio
from collections.abc import Iterable
from functools import partial
from math import sqrt
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from decklog.agents.texts import storable
from decklog.aio.log import AsyncDecklog
from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.plugins.adapters.loops.calls import run_off_loop
from decklog.stores.artifacts.graphs import GraphItem

_WHOLE = "$"


class Nearness:
    """Ranks items by their most similar text."""

    def __init__(self, index: IndexConfig) -> None:
        self._embeddings = ensure_embeddings(index.get("embed"))
        self._fields = list(index.get("fields") or [_WHOLE])
        self._vectors: dict[str, list[float]] = {}

    def ranked(self, query: str, items: list[GraphItem]) -> list[tuple[GraphItem, float | None]]:
        """Return items with their scores, best first; items without texts come last."""
        texts = [self._texts(item) for item in items]
        self._embed([text for some in texts for text in some])
        wanted = self._embeddings.embed_query(query)
        scores = [max((_nearness(wanted, self._vectors[text]) for text in some), default=None) for some in texts]
        ranked = sorted(zip(items, scores, strict=True), key=lambda one: -2.0 if one[1] is None else one[1], reverse=True)
        return list(ranked)

    def _texts(self, item: GraphItem) -> list[str]:
        fields = self._fields if item.indexed is None else item.indexed
        found: list[str] = []
        for path in fields:
            at: Any = path if path == _WHOLE else tokenize_path(path)
            found += get_text_at_path(item.value, at)
        return found

    def _embed(self, texts: list[str]) -> None:
        unknown = sorted({text for text in texts if text not in self._vectors})
        if unknown:
            self._vectors.update(zip(unknown, self._embeddings.embed_documents(unknown), strict=True))


def _nearness(one: list[float], other: list[float]) -> float:
    lengths = sqrt(sum(number * number for number in one)) * sqrt(sum(number * number for number in other))
    return sum(left * right for left, right in zip(one, other, strict=True)) / lengths if lengths else 0.0


_SECONDS = 60
_COMPARED: dict[str, Any] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


class DecklogStore(BaseStore):
    """Stores what graphs share in a log: `builder.compile(store=DecklogStore(log))`.

    With `index`, its embedder enables semantic search; with `ttl`, items that were not read in time expire.
    """

    supports_ttl = True

    def __init__(self, log: Decklog | AsyncDecklog, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> None:
        self.log = log.log if isinstance(log, AsyncDecklog) else log
        self.ttl_config = ttl
        self._nearness = None if index is None else Nearness(index)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run several operations: all reads first, then the last put of each key."""
        asked = list(ops)
        results = [self._answer(op) for op in asked]
        puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        if puts:
            with self.log.transaction():
                self._put_all(puts.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run several operations without blocking the event loop."""
        asked = list(ops)
        reads = [op for op in asked if not isinstance(op, PutOp)]
        results = iter(await asyncio.to_thread(self.batch, reads)) if reads else iter(())
        puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        if puts:
            await run_off_loop(self.log, partial(self._put_all, list(puts.values())))
        return [None if isinstance(op, PutOp) else next(results) for op in asked]

    def sweep_ttl(self) -> int:
        """Remove expired items; return how many."""
        return self.log.states.remove_expired_graph_items()

    def _put_all(self, puts: Iterable[PutOp]) -> None:
        for op in puts:
            namespace = ".".join(op.namespace)
            if op.value is None:
                self.log.states.remove_graph_item(namespace, op.key)
            else:
                indexed = [] if op.index is False else op.index
                ttl = None if op.ttl is None else op.ttl * _SECONDS
                value = storable(dict(op.value))
                self.log.states.save_graph_item(namespace, op.key, value, indexed=indexed, ttl_seconds=ttl)

    # Reading

    def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                found = self.log.db.read(lambda: self.log.states.graph_item(".".join(op.namespace), op.key))
                self._renew([found] if found is not None else [], op.refresh_ttl)
                return None if found is None else Item(**_facts(found))
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise Invalid(f"a store does not know {type(op).__name__}")

    def _below(self, prefix: str) -> list[GraphItem]:
        return self.log.db.read(lambda: self.log.states.graph_items_below(prefix))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = op.filter or {}
        fitting = [
            item
            for item in self._below(".".join(op.namespace_prefix))
            if all(_matches_filter(item.value.get(name), value) for name, value in wanted.items())
        ]
        ranked: list[tuple[GraphItem, float | None]] = [(item, None) for item in fitting]
        if op.query and self._nearness is not None:
            ranked = self._nearness.ranked(op.query, fitting)
        page = ranked[op.offset : op.offset + op.limit]
        self._renew([item for item, _ in page], op.refresh_ttl)
        return [SearchItem(**_facts(item), score=score) for item, score in page]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        known = {tuple(item.namespace.split(".")) for item in self._below("")}
        fitting = {name for name in known if all(_matches(name, condition) for condition in op.match_conditions or ())}
        cut = sorted({name[: op.max_depth] for name in fitting})
        return cut[op.offset : op.offset + op.limit]

    def _renew(self, items: list[GraphItem], is_asked: bool) -> None:
        """Renew items that were read, unless the caller opted out."""
        lasting = [item for item in items if item.ttl_seconds is not None] if is_asked else []
        if lasting:
            with self.log.transaction():
                for item in lasting:
                    self.log.states.renew_graph_item(item)


def _facts(item: GraphItem) -> dict[str, Any]:
    times = {"created_at": item.created_at, "updated_at": item.updated_at}
    return {"namespace": tuple(item.namespace.split(".")), "key": item.key, "value": item.value, **times}


def _matches_filter(value: Any, wanted: Any) -> bool:
    """Return whether a value matches a filter: it is equal, or meets the filter's operators."""
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_matches_operator(value, name, item) for name, item in wanted.items())
        return isinstance(value, dict) and all(_matches_filter(value.get(name), item) for name, item in wanted.items())
    return bool(value == wanted)


def _matches_operator(value: Any, operator: str, wanted: Any) -> bool:
    if operator not in _COMPARED:
        raise Invalid(f"a search knows no operator {operator!r}; it knows {', '.join(_COMPARED)}", field="filter")
    try:
        return bool(_COMPARED[operator](value, wanted))
    except (TypeError, ValueError):
        return False  # values that can't be compared don't match


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends with a path, in which `*` matches any part."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", found) for found, wanted in zip(part, path, strict=True))
