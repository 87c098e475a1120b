"""The plugin of opencode, run by node as opencode runs it: what it tells arrives, and what is denied throws."""

import json
import shutil
import subprocess

import pytest

from decklog import Decklog, EntryKind
from decklog.agents.spool import Spool
from tests.agents.setup.places import Here, Places
from tests.db.processes import environment
from tests.waiting import wait_until

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


@pytest.mark.skipif(shutil.which("node") is None, reason="opencode's plugins are JavaScript, and there is no node here")
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
