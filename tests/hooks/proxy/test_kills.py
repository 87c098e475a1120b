"""Agent, proxy, whoever takes in, and editor killed at any moment: nothing that was heard is lost, nothing is on record twice."""

import io
import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from decklog import Decklog, EntryKind
from tests.hooks.proxy.editor import Editor, settled

FULL = bool(os.environ.get("DECKLOG_TEST_FULL"))
ROUNDS = 300 if FULL else 8
WORDS = 40
KILLED = ("agent", "proxy", "editor", "proxy and taker")


def steps(number: int) -> list[list[object]]:
    """Forty messages, each with an id of its own, and as many calls."""
    told: list[list[object]] = []
    for word in range(WORDS):
        name = f"{number}-{word}"
        content = {"type": "text", "text": f"said {name}"}
        told.append(["update", {"sessionUpdate": "agent_message_chunk", "messageId": f"m{name}", "content": content}])
        call = {"toolCallId": f"t{name}", "kind": "execute", "rawInput": {"command": f"echo {name}"}, "status": "completed"}
        told.append(["update", {"sessionUpdate": "tool_call", **call}])
        told.append(["wait", 0.0005])
    return told


def heard(editor: Editor) -> Counter[str]:
    """Give what the editor was told, by the ids."""
    found: Counter[str] = Counter()
    for line in editor.heard.splitlines():
        update = _update(line)
        if update.get("messageId"):
            found[f"said {update['messageId'][1:]}"] += 1
        if update.get("toolCallId"):
            found[f"echo {update['toolCallId'][1:]}"] += 1
    return found


def _update(line: bytes) -> dict[str, str]:
    # The last line of a proxy that was killed may be cut off.
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    params = message.get("params") if isinstance(message, dict) else None
    return params.get("update", {}) if isinstance(params, dict) else {}


@pytest.mark.slow
def test_whatever_is_killed_nothing_heard_is_lost_and_nothing_is_told_twice(place: Path, log: Decklog) -> None:
    dice = random.Random(13)
    everything: Counter[str] = Counter()
    prompts = set()
    for number in range(ROUNDS):
        with Editor(place) as editor:
            editor.open("session/new" if number == 0 else "session/resume", sessionId="s1")
            proxy = int(editor.call("parent")["result"])
            text = json.dumps(steps(number))
            prompt = {"sessionId": "s1", "prompt": [{"type": "text", "text": text}]}
            editor.send({"id": 99, "method": "session/prompt", "params": prompt})
            for _ in range(dice.randrange(2 * WORDS)):
                editor.read()
                # It has come through: the agent does what it says.
                prompts.add(text)
            _kill(KILLED[number % len(KILLED)], editor, proxy)
        everything += heard(editor)
    # The last ones left what waits to whoever comes next.
    with Editor(place) as editor:
        editor.open("session/resume", sessionId="s1")
    settled(place)
    found = log.journal.find("stub-s1", oldest_first=True, limit=200)
    bodies: Counter[str | None] = Counter()
    while True:
        bodies.update(
            entry.body for entry in found if entry.kind != EntryKind.CHANGE and entry.subtype in ("said", "call", "prompt")
        )
        if found.next is None:
            break
        found = log.journal.find("stub-s1", oldest_first=True, limit=200, after=found.next)
    assert set(everything) <= set(bodies)
    assert prompts <= set(bodies)
    assert {body: count for body, count in bodies.items() if count > 1} == {}
    assert log.journal.verify().ok


def _kill(who: str, editor: Editor, proxy: int) -> None:
    children = Path(f"/proc/{proxy}/task/{proxy}/children").read_text().split()
    # The first is whoever takes in; the second the agent.
    taker, agent = map(int, children[:2])
    if who == "editor":
        editor._out.close()
        editor._out = io.BytesIO()
        return
    if who == "agent":
        os.kill(agent, signal.SIGKILL)
    else:
        os.kill(proxy, signal.SIGKILL)
    if who == "proxy and taker":
        os.kill(taker, signal.SIGKILL)
