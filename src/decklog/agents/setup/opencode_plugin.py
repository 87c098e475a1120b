"""The plugin for opencode, which has no hooks that run a program: it tells what happens in the words of the others' hooks."""

import json

from decklog.agents.setup.parts import WholeFile

_TEXT = """\
// Written by `decklog setup opencode`; `decklog setup opencode --remove` takes it out.
import { spawn } from "node:child_process"

const CALL = @CALL@
const SECONDS = 20
const NAMES = { bash: "Bash", read: "Read", write: "Write", edit: "Edit" }
const HELD = 2

// Whatever goes wrong, opencode goes on: only a call that the policy denies is stopped.
function tell(payload) {
  return new Promise((resolve) => {
    const options = { stdio: ["pipe", "ignore", "pipe"], timeout: SECONDS * 1000 }
    const process = spawn(CALL[0], [...CALL.slice(1), "hook", "opencode"], options)
    let said = ""
    process.stderr.on("data", (part) => (said += part))
    process.stdin.on("error", () => {})
    process.on("error", () => resolve({ code: 1, said: "" }))
    process.on("close", (code) => resolve({ code, said: said.trim() }))
    process.stdin.end(JSON.stringify(payload))
  })
}

function call(input, args) {
  const named = args?.filePath ? { ...args, file_path: args.filePath } : args
  return { tool_name: NAMES[input.tool] ?? input.tool, tool_use_id: input.callID, tool_input: named ?? {} }
}

export const Decklog = async ({ directory }) => {
  const known = new Set()
  const event = (session, name, fields) => tell({ session_id: session, cwd: directory, hook_event_name: name, ...fields })
  const begun = async (session) => {
    if (known.has(session)) return
    known.add(session)
    await event(session, "SessionStart", { source: "startup" })
  }
  return {
    event: async ({ event: { type, properties } }) => {
      const session = properties?.sessionID ?? properties?.info?.id
      if (!session) return
      if (type === "session.created") await begun(session)
      else if (type === "session.idle") await event(session, "Stop", {})
      else if (type === "session.compacted") await event(session, "PostCompact", { trigger: "auto" })
      else if (type === "session.error") await event(session, "StopFailure", { error: properties.error?.name ?? "error" })
      else if (type === "session.deleted") await event(session, "SessionEnd", { reason: "other" })
    },
    "chat.message": async (input, output) => {
      await begun(input.sessionID)
      const texts = output.parts.filter((part) => part.type === "text").map((part) => part.text)
      await event(input.sessionID, "UserPromptSubmit", { prompt: texts.join("\\n"), prompt_id: output.message?.id })
    },
    "tool.execute.before": async (input, output) => {
      const answer = await event(input.sessionID, "PreToolUse", call(input, output.args))
      if (answer.code === HELD) throw new Error(answer.said)
    },
    "tool.execute.after": async (input, output) => {
      await event(input.sessionID, "PostToolUse", { ...call(input, input.args), tool_response: output.output })
    },
  }
}
"""


def opencode_plugin(path: str, call: tuple[str, ...]) -> WholeFile:
    """Give the plugin's file, with the words that call Decklog."""
    return WholeFile(path, _TEXT.replace("@CALL@", json.dumps(call)), "Written by `decklog setup opencode`")
