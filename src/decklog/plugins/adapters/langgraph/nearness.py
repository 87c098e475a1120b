"""Which items of a store are near a question, by the embedder of its index. Vectors are made once in a process, at a search."""

from math import sqrt
from typing import Any

from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from decklog.stores.artifacts.graphs import GraphItem

_WHOLE = "$"


class Nearness:
    """Ranks items by how near the nearest of their texts is."""

    def __init__(self, index: IndexConfig) -> None:
        self._embeddings = ensure_embeddings(index.get("embed"))
        self._fields = list(index.get("fields") or [_WHOLE])
        self._vectors: dict[str, list[float]] = {}

    def ranked(self, query: str, items: list[GraphItem]) -> list[tuple[GraphItem, float | None]]:
        """Give items with how near they are, the nearest first; those with no text to compare come last."""
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
