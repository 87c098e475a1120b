"""Dependency graph of a run: tasks from left to right, their dependencies, and the longest unfinished chain."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from decklog.core.display import revealed, shorten
from decklog.web.rendering import segment, state_mark

NODE_WIDTH, NODE_HEIGHT = 200, 46
_GAP_X, _GAP_Y, _MARGIN = 64, 18, 12
_BEND_HEIGHT = 10
_LONGEST_TITLE, _SWEEPS = 26, 4
# A node id, or a bend of an edge: its source, its target and the column that it crosses.
Point = str | tuple[str, str, int]
_OVER = ("done", "abandoned")
# An item has the first of these states that one of its tasks has.
_ITEM_STATES = ("running", "blocked", "waiting", "paused")


@dataclass(frozen=True)
class GraphNode:
    """A task, or a work item with all its tasks. `needs` has the ids of its dependencies."""

    id: str
    title: str
    state: str
    path: str
    worker: str | None = None
    needs: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DrawnNode:
    """A node with its position; `said` is its accessible name."""

    node: GraphNode
    x: int
    y: int
    shape: str
    shade: str
    label: str
    said: str
    is_critical: bool
    worker: str = ""
    # The numbers of its predecessors and successors, for the arrow keys.
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()


@dataclass(frozen=True)
class DependencyGraph:
    """All nodes, with edges as paths. `critical` is the longest chain of unfinished nodes, in order."""

    nodes: list[DrawnNode] = field(default_factory=list)
    edges: list[tuple[str, bool]] = field(default_factory=list)
    width: int = 0
    height: int = 0
    critical: list[GraphNode] = field(default_factory=list)


def build_nodes(tasks: Sequence[Mapping[str, Any]], links: Iterable[tuple[str, str]], run_id: str) -> list[GraphNode]:
    """Build the nodes of a run: one per task, and one for all tasks of a work item."""
    items = {str(task["id"]): item for task in tasks if (item := item_of(task)) is not None}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for task in tasks:
        item = items.get(str(task["id"]))
        groups.setdefault(f"item {item}" if item else str(task["id"]), []).append(task)
    known = {str(task["id"]): key for key, of_key in groups.items() for task in of_key}
    needs: dict[str, dict[str, None]] = {}
    for task_id, needed in links:
        one, other = known.get(task_id), known.get(needed)
        if one and other and one != other:
            needs.setdefault(one, {})[other] = None
    return [_node(key, of_key, tuple(needs.get(key, ())), run_id) for key, of_key in groups.items()]


def item_of(task: Mapping[str, Any]) -> str | None:
    """Return the name of a task's work item, by its tags."""
    tags = json.loads(task["tags"]) if isinstance(task["tags"], str) else task["tags"] or ()
    return next((str(tag).removeprefix("item:") for tag in tags if str(tag).startswith("item:")), None)


def _node(key: str, tasks: Sequence[Mapping[str, Any]], needs: tuple[str, ...], run_id: str) -> GraphNode:
    first = tasks[0]
    if not key.startswith("item ") or item_of(first) is None:
        worker = str(first["worker"]) if first["worker"] else None
        return GraphNode(key, str(first["title"]), str(first["state"]), f"/tasks/{segment(key)}", worker, needs)
    name = key.removeprefix("item ")
    states = {str(task["state"]) for task in tasks}
    landing = [task for task in tasks if task["role"] == "land"]
    state = next((state for state in _ITEM_STATES if state in states), "pending")
    if landing and str(landing[-1]["state"]) in _OVER:
        state = str(landing[-1]["state"])
    worker = next((str(task["worker"]) for task in tasks if task["worker"]), None)
    return GraphNode(key, name, state, f"/runs/{segment(run_id)}/items/{segment(name)}", worker, needs)


def draw_graph(nodes: Sequence[GraphNode]) -> DependencyGraph:
    """Arrange nodes in columns: each to the right of all its dependencies."""
    by_id = {node.id: node for node in nodes}
    levels = _levels(by_id)
    if not levels:
        return DependencyGraph()
    routes = _routes(by_id, levels)
    columns = _ordered(_columns(by_id, levels, routes), routes)
    height = max(_height(column) for column in columns) + 2 * _MARGIN
    width = len(columns) * (NODE_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN
    places: dict[Point, tuple[int, int]] = {}
    for number, column in enumerate(columns):
        y = (height - _height(column)) // 2
        for point in column:
            places[point] = (_MARGIN + number * (NODE_WIDTH + _GAP_X), y)
            y += _size(point) + _GAP_Y
    critical = _critical(by_id, levels)
    drawn = _drawn(by_id, places, {node.id for node in critical})
    return DependencyGraph(drawn, _edges(routes, places, critical), width, height, critical)


def _size(point: Point) -> int:
    return NODE_HEIGHT if isinstance(point, str) else _BEND_HEIGHT


def _height(column: Sequence[Point]) -> int:
    return sum(_size(point) + _GAP_Y for point in column) - _GAP_Y


def _routes(nodes: Mapping[str, GraphNode], levels: Mapping[str, int]) -> list[list[Point]]:
    """List the points of each edge, with a bend in every column between its ends, so that no node hides it."""
    found: list[list[Point]] = []
    for node in nodes.values():
        for needed in node.needs:
            if needed in levels and levels[needed] < levels[node.id]:
                bends = [(needed, node.id, level) for level in range(levels[needed] + 1, levels[node.id])]
                found.append([needed, *bends, node.id])
    return found


def _columns(nodes: Mapping[str, GraphNode], levels: Mapping[str, int], routes: Sequence[list[Point]]) -> list[list[Point]]:
    columns: list[list[Point]] = [[] for _ in range(1 + max(levels.values()))]
    for node_id in nodes:
        columns[levels[node_id]].append(node_id)
    for route in routes:
        for point in route:
            if not isinstance(point, str):
                columns[point[2]].append(point)
    return columns


def _levels(nodes: Mapping[str, GraphNode]) -> dict[str, int]:
    """Return the column of each node: one more than the highest of its dependencies. Cycles are cut where they close."""
    levels: dict[str, int] = {}
    for start in nodes:
        stack = [(start, iter(nodes[start].needs))]
        entered = {start}
        while stack:
            node_id, left = stack[-1]
            needed = next((one for one in left if one in nodes and one not in levels and one not in entered), None)
            if needed is not None:
                entered.add(needed)
                stack.append((needed, iter(nodes[needed].needs)))
                continue
            stack.pop()
            levels.setdefault(node_id, 1 + max((levels[one] for one in nodes[node_id].needs if one in levels), default=-1))
    return levels


def _ordered(columns: list[list[Point]], routes: Sequence[list[Point]]) -> list[list[Point]]:
    """Order each column to reduce crossings: by the mean position of predecessors, then of successors."""
    before: dict[Point, list[Point]] = {}
    behind: dict[Point, list[Point]] = {}
    for route in routes:
        for one, other in pairwise(route):
            before.setdefault(other, []).append(one)
            behind.setdefault(one, []).append(other)
    for sweep in range(_SWEEPS):
        near = before if sweep % 2 == 0 else behind
        place = {point: row for column in columns for row, point in enumerate(column)}
        for column in columns if near is before else reversed(columns):
            column.sort(key=lambda one: _middle([place[other] for other in near.get(one, ())], place[one]))
            place |= {point: row for row, point in enumerate(column)}
    return columns


def _middle(places: Sequence[int], otherwise: int) -> float:
    return sum(places) / len(places) if places else float(otherwise)


def _critical(nodes: Mapping[str, GraphNode], levels: Mapping[str, int]) -> list[GraphNode]:
    """Find the longest chain of unfinished nodes: the work that can't run in parallel."""
    best: dict[str, tuple[int, str | None]] = {}
    for node_id in sorted(nodes, key=lambda one: levels[one]):
        node = nodes[node_id]
        if node.state in _OVER:
            continue
        before = [(best[one][0], one) for one in node.needs if one in best]
        longest = max(before, default=(0, None), key=lambda pair: pair[0])
        best[node_id] = (longest[0] + 1, longest[1])
    if not best:
        return []
    chain, at = [], max(best, key=lambda one: best[one][0])
    last: str | None = at
    while last is not None:
        chain.append(nodes[last])
        last = best[last][1]
    return chain[::-1] if len(chain) > 1 else []


def _drawn(nodes: Mapping[str, GraphNode], places: Mapping[Point, tuple[int, int]], critical: set[str]) -> list[DrawnNode]:
    numbers = {node_id: number for number, node_id in enumerate(nodes)}
    behind: dict[str, list[int]] = {}
    for node in nodes.values():
        for needed in node.needs:
            behind.setdefault(needed, []).append(numbers[node.id])
    found = []
    for node in nodes.values():
        shape, shade = state_mark(node.state)
        title = revealed(node.title)
        label = shorten(title, _LONGEST_TITLE)
        waits = ", ".join(revealed(nodes[one].title) for one in node.needs if one in nodes)
        # The accessible name begins with the visible text, which voice control needs.
        seen = f"{label} {node.state}" + (f" · {shorten(revealed(node.worker), _LONGEST_TITLE)}" if node.worker else "")
        said = seen + (f"; {title}" if title != label else "") + (f"; blocked by {waits}" if waits else "")
        before = tuple(numbers[one] for one in node.needs if one in numbers)
        x, y = places[node.id]
        found.append(
            DrawnNode(
                node=node,
                x=x,
                y=y,
                shape=shape,
                shade=shade,
                label=label,
                said=said,
                is_critical=node.id in critical,
                worker=shorten(revealed(node.worker), _LONGEST_TITLE) if node.worker else "",
                before=before,
                behind=tuple(behind.get(node.id, ())),
            )
        )
    return found


def _edges(
    routes: Sequence[list[Point]], places: Mapping[Point, tuple[int, int]], critical: Sequence[GraphNode]
) -> list[tuple[str, bool]]:
    chain = {(one.id, other.id) for one, other in pairwise(critical)}
    found = [(_path(route, places), (route[0], route[-1]) in chain) for route in routes]
    # Critical edges last, so that they are drawn above the others.
    return sorted(found, key=lambda edge: edge[1])


def _path(route: Sequence[Point], places: Mapping[Point, tuple[int, int]]) -> str:
    """Draw an edge through its points: curved between columns, straight within one."""
    x, y = places[route[0]]
    path = f"M{x + NODE_WIDTH} {y + _size(route[0]) // 2}"
    for one, other in pairwise(route):
        (x1, y1), (x2, y2) = places[one], places[other]
        is_end = other == route[-1]
        begin, end, half = x1 + NODE_WIDTH, x2 - 7 * is_end, (x2 - x1 - NODE_WIDTH) // 2
        top, bottom = y1 + _size(one) // 2, y2 + _size(other) // 2
        path += f"C{begin + half} {top} {end - half} {bottom} {end} {bottom}" + ("" if is_end else f"h{NODE_WIDTH}")
    return path
