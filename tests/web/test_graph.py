"""The dependency graph: every task is to the right of what it waits for, no line is hidden, and the critical path is right."""

import random
import re
from itertools import pairwise

from decklog import Decklog
from decklog.web.pages.graph import NODE_HEIGHT, NODE_WIDTH, GraphNode, build_nodes, draw_graph
from tests.web.client import Browser


def node(name: str, *needs: str, state: str = "pending") -> GraphNode:
    return GraphNode(name, name, state, f"/tasks/{name}", None, needs)


def test_nodes_are_right_of_their_dependencies_and_do_not_overlap() -> None:
    chance = random.Random(7)
    for size in (1, 2, 9, 40, 120):
        names = [f"n{number}" for number in range(size)]
        nodes = [node(name, *chance.sample(names[:at], min(at, chance.randrange(4)))) for at, name in enumerate(names)]
        drawn = draw_graph(nodes)
        places = {one.node.id: (one.x, one.y) for one in drawn.nodes}
        assert all(places[needed][0] < places[one.id][0] for one in nodes for needed in one.needs)
        corners = sorted(places.values())
        assert all(x1 != x2 or y2 - y1 >= NODE_HEIGHT for (x1, y1), (x2, y2) in pairwise(corners))
        assert all(x + NODE_WIDTH <= drawn.width and 0 <= y <= drawn.height - NODE_HEIGHT for x, y in corners)
        assert len(drawn.edges) == sum(len(one.needs) for one in nodes)


def test_no_line_goes_behind_a_node() -> None:
    drawn = draw_graph([node("a"), node("b", "a"), node("c", "b"), node("d", "a", "c")])
    boxes = [(one.x, one.y) for one in drawn.nodes]
    for path, _ in drawn.edges:
        for x, y in [(int(x), int(y)) for x, y in re.findall(r" (\d+) (\d+)h", path)]:
            assert not [box for box in boxes if box[0] <= x + 1 < box[0] + NODE_WIDTH and box[1] <= y <= box[1] + NODE_HEIGHT]


def test_the_critical_path_is_the_longest_chain_that_is_not_over() -> None:
    nodes = [node("a", state="done"), node("b", "a"), node("c", "b"), node("d", "a"), node("e", "c", "d"), node("f")]
    drawn = draw_graph(nodes)
    assert [one.id for one in drawn.critical] == ["b", "c", "e"]
    assert [one.node.id for one in drawn.nodes if one.is_critical] == ["b", "c", "e"]
    assert sum(is_critical for _, is_critical in drawn.edges) == 2
    assert draw_graph([node("a"), node("b")]).critical == []


def test_a_circle_is_drawn_and_does_not_hang() -> None:
    assert len(draw_graph([node("a", "c"), node("b", "a"), node("c", "b"), node("x", "x")]).nodes) == 4


def test_all_tasks_of_a_work_item_are_one_node() -> None:
    tasks = [
        {"id": f"{name}.{role}", "title": role, "state": state, "worker": None, "role": role, "tags": f'["item:{name}"]'}
        for name, states in (("one", ("done", "done", "done")), ("two", ("done", "blocked", "pending")))
        for role, state in zip(("work", "check", "land"), states, strict=True)
    ]
    links = [("one.check", "one.work"), ("two.work", "one.land"), ("two.land", "two.check")]
    found = build_nodes(tasks, links, "r")
    assert [(one.title, one.state, one.needs, one.path) for one in found] == [
        ("one", "done", (), "/runs/r/items/one"),
        ("two", "blocked", ("item one",), "/runs/r/items/two"),
    ]


def test_the_graph_of_a_run_shows_states_by_shape_and_links_each_task(filled: Browser, log: Decklog) -> None:
    text = filled.get("/runs/commas/graph").text
    for task in log.tasks.find("commas", limit=200):
        assert f'href="/tasks/{task.id}"' in text
    assert '<use href="#s-done"/>' in text
    assert '<use href="#s-blocked"/>' in text
    assert "Critical path" in text
    assert 'width="' in filled.get("/runs/commas/graph?zoom=50").text
    assert "as of now alone" in filled.get("/runs/commas/graph?at=30").text
    data = filled.get("/runs/commas/graph.json").data["data"]["nodes"]
    assert {one["id"] for one in data} == {task.id for task in log.tasks.find("commas", limit=200)}
