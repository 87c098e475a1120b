"""The plugin of opencode, run by node as opencode runs it: what it tells arrives, and what is denied throws."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from decklog import Charge, Decklog, EntryKind, RunStatus
from decklog.agents.intake import run_intake
from decklog.agents.setup.supported import opencode_plugin
from decklog.agents.spool import Spool
from tests.agents.setup.places import Here, Places
from tests.db.processes import environment
from tests.waiting import wait_until

BROKEN = """
const { Decklog } = await import(process.argv[2])
const hooks = await Decklog({ directory: process.cwd() })
try {
  await hooks["tool.execute.before"]({ sessionID: "s1", callID: "c1", tool: "bash" }, { args: { command: "ls" } })
  console.log("it ran")
} catch (problem) {
  console.log(problem.message)
}
"""

SESSION = """
const { Decklog } = await import(process.argv[2])
const hooks = await Decklog({ directory: process.cwd() })
const call = { sessionID: "s1", callID: "c1", tool: "bash" }
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
await hooks["chat.message"]({ sessionID: "s1" }, { message: { id: "m1" }, parts: [{ type: "text", text: "Fix it" }] })
await hooks["tool.execute.before"](call, { args: { command: "ls" } })
await hooks["tool.execute.after"]({ ...call, args: { command: "ls" } }, { output: "a\\nb" })
let held = ""
try {
  await hooks["tool.execute.before"]({ ...call, callID: "c2", tool: "read" }, { args: { filePath: ".env" } })
} catch (problem) {
  held = problem.message
}
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
console.log(JSON.stringify({ held }))
"""

# As opencode 1.18 was seen to tell it.
EVENTS = """
const { Decklog } = await import(process.env.PLUGIN)
const hooks = await Decklog({ directory: process.cwd() })
const happens = (type, properties) => hooks.event({ event: { type, properties } })
const grown = (part) => happens("message.part.updated", { sessionID: part.sessionID, part })
const updated = (info) => happens("message.updated", { sessionID: info.sessionID, info })
const call = { sessionID: "s1", callID: "c1", tool: "bash" }
await happens("session.created", { sessionID: "s1", info: { id: "s1" } })
await hooks["tool.execute.before"](call, { args: { command: "false" } })
await hooks["tool.execute.after"]({ ...call, args: { command: "false" } }, { output: "no", metadata: { exit: 1 } })
await grown({ ...call, type: "tool", callID: "c2", tool: "read", state: { status: "error", input: {}, error: "none" } })
const part = { type: "text", sessionID: "s1", messageID: "a1" }
await grown({ ...part, id: "p1", text: "", time: { start: 1 } })
await grown({ ...part, id: "p1", text: "One.", time: { start: 1, end: 2 } })
await grown({ ...part, id: "p2", text: "Two.", time: { start: 2, end: 3 } })
const tokens = { total: 28, input: 9, output: 5, reasoning: 7, cache: { read: 4, write: 3 } }
const info = { id: "a1", role: "assistant", sessionID: "s1", modelID: "m", tokens, time: { created: 1 } }
await updated(info)
for (const _ of [1, 2]) await updated({ ...info, time: { created: 1, completed: 2 } })
await happens("session.created", { sessionID: "s2", info: { id: "s2", parentID: "s1", agent: "general", title: "look" } })
await hooks["chat.message"]({ sessionID: "s2" }, { message: { id: "m2" }, parts: [{ type: "text", text: "Look" }] })
await updated({ ...info, id: "a2", sessionID: "s2", time: { created: 1, completed: 2 } })
await happens("session.idle", { sessionID: "s2" })
await happens("session.idle", { sessionID: "s1" })
await hooks.dispose()
"""
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="opencode's plugins are JavaScript, and there is no node here"
)


def taken_in(log: Decklog, folder: Path, *words: str) -> None:
    """Play the events with the plugin, as a program that was called with these words, and take in what it told."""
    told = folder / "told"
    plugin, events = folder / "plugin.mjs", folder / "events.mjs"
    plugin.write_text(opencode_plugin("decklog.js", ("sh", "-c", f"cat >> {told}; echo >> {told}")).wanted)
    events.write_text(EVENTS)
    subprocess.run(["node", events, *words], env={**os.environ, "PLUGIN": str(plugin)}, cwd=folder, timeout=60, check=True)
    spool = Spool(str(folder / "spool"))
    for line in told.read_bytes().splitlines():
        spool.put("opencode", "s1", {"session": "s1", "program": "opencode"}, line)
    assert run_intake(log, spool).unread == 0


@needs_node
def test_what_was_said_failed_and_spent_is_told_and_a_sub_agent_is_a_run_of_its_own(log: Decklog, tmp_path: Path) -> None:
    taken_in(log, tmp_path, "run", "acp")
    found = log.journal.find("opencode-s1", oldest_first=True, limit=100)
    said = [(entry.subtype, entry.body) for entry in found if entry.kind != EntryKind.CHANGE]
    assert said[2:] == [
        ("result", "Exit code 1\nno"),
        ("result", "none"),
        ("said", "One."),
        ("said", "Two."),
        ("turn", "turn ended"),
    ]
    below = log.runs.get("opencode-s1-s2")
    assert (below.goal, below.parent_run_id, below.status) == ("look", "opencode-s1", RunStatus.COMPLETED)
    assert log.runs.get("opencode-s1").status == RunStatus.COMPLETED
    assert sorted(map(paid, log.ledger.find())) == [(run, "m", 9, 4, 3, 12) for run in ("opencode-s1", "opencode-s1-s2")]


@needs_node
def test_what_an_editors_connection_is_told_of_money_is_not_told_twice(log: Decklog, tmp_path: Path) -> None:
    taken_in(log, tmp_path, "--print-logs", "acp")
    assert log.journal.find("opencode-s1", subtype="said")
    assert not log.ledger.find()


def paid(charge: Charge) -> tuple[str | None, str, int, int, int, int]:
    tokens = (charge.input_tokens, charge.cache_read_tokens, charge.cache_create_tokens, charge.output_tokens)
    return (charge.run_id, charge.model, *tokens)


@pytest.mark.slow
@needs_node
def test_a_session_of_opencode_is_on_record_and_a_denied_call_does_not_run(places: Places, here: Here) -> None:
    assert here("init").code == 0
    assert here("setup", "opencode", "--project").code == 0
    (places.root / "session.mjs").write_text(SESSION)
    plugin = places.root / "plugin.mjs"
    plugin.write_text((places.repo / ".opencode" / "plugins" / "decklog.js").read_text())
    node = shutil.which("node") or "node"
    done = subprocess.run(
        [node, str(places.root / "session.mjs"), str(plugin)],
        cwd=places.repo,
        env=environment(**places.variables),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert "Decklog's policy denies this" in json.loads(done.stdout)["held"]
    wait_until(lambda: Spool(str(places.repo / ".decklog" / "decklog.db-spool")).is_empty)
    with Decklog.open(places.repo / ".decklog" / "decklog.db") as log:
        found = log.journal.find("opencode-s1", oldest_first=True, limit=100)
        said = [entry.body for entry in found if entry.kind != EntryKind.CHANGE]
    assert said[:4] == ["session startup", "Fix it", "ls", "a\nb"]
    assert said.count("session startup") == 1


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize(("code", "runs"), [(0, True), (1, False), (2, False), (3, True), (127, False)])
def test_a_hook_that_crashes_blocks_the_call(tmp_path: Path, code: int, runs: bool) -> None:
    plugin, session = tmp_path / "plugin.mjs", tmp_path / "session.mjs"
    plugin.write_text(opencode_plugin("decklog.js", ("sh", "-c", f"cat >/dev/null; exit {code}")).wanted)
    session.write_text(BROKEN)
    done = subprocess.run(["node", session, plugin], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert (done.stdout == b"it ran\n") is runs
