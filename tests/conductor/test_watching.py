"""A work item is watched while an agent works on it: steps, the change so far, cost and state, until its end."""

import threading
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.items.item import find_item
from decklog.conductor.items.watching import ItemWatch, WatchedStep
from tests.conductor.plans import TRIPLE, Work, work_item


@pytest.mark.slow
def test_what_an_agent_does_is_seen_while_it_does_it_and_the_watch_ends_with_the_item(
    log: Decklog, checked: Path, tmp_path: Path
) -> None:
    going = tmp_path / "go"
    context = Work(
        log, checked, work_item("triple", ["print", "I add it."], TRIPLE, ["wait", str(going)]), work_item("other", TRIPLE)
    ).context()
    thread = threading.Thread(target=Conductor(context).run)
    thread.start()
    seen: list[WatchedStep] = []
    for one in ItemWatch(context, find_item(log, context.run_id, "triple")).follow():
        seen.append(one)
        if (one.kind, one.text) == ("diff", "calc.py +4 -0"):
            # Only somebody who sees the change of a working agent lets it go on.
            going.write_text("")
    thread.join()
    assert ("step", "fake: I add it.") in [(one.kind, one.text) for one in seen]
    states = [one.text.split()[0] for one in seen if one.kind == "state"]
    assert (states[-1], "work" in states) == ("landed", True), states
    assert [one.text for one in seen if one.kind == "cost"] == ["$0.00"]
    steps = [one.more["seq"] for one in seen if one.kind == "step"]
    assert steps == sorted(set(steps)), "each step once, in order"
    assert all(one.line().count("\n") == 0 for one in seen)


def test_calls_are_shown_as_they_are_made_and_then_how_they_ended(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).context()
    task = f"{context.run_id}.triple.w1"
    calls = [
        ("start", "start", {"folder": "/w/tree", "model": "m1"}),
        ("tool", "Write /w/tree/a.py", {"tool": "Write", "call": "1", "arguments": {"file_path": "/w/tree/a.py"}}),
        ("result", "ok", {"call": "1", "outcome": "ok", "duration_ms": 940}),
        ("tool", "/bin/bash -lc 'make test'", {"tool": "Bash", "call": "2"}),
        ("result", "1 failed", {"call": "2", "outcome": "failed"}),
        ("thought", "Hm.", None),
        ("delivered", "Say more.", None),
        ("end", "end", None),
    ]
    for kind, body, payload in calls:
        log.journal.append(
            context.run_id, body, kind="event", subtype=f"agent.{kind}", agent="codex", task_id=task, payload=payload
        )
    seen = ItemWatch(context, find_item(log, context.run_id, "triple")).read_new()
    assert [one.text for one in seen if one.kind == "step"] == [
        "codex starts with m1",
        "codex: Write a.py",
        "codex: ✓ 0.9 s",
        "codex: make test",
        "codex: ✗ 1 failed",
        "codex thinks: Hm.",
        "codex got: Say more.",
        "codex ends",
    ]
