// Written by `decklog setup opencode`; `decklog setup opencode --remove` takes it out.
import { spawn } from "node:child_process"

const CALL = @CALL@
const SECONDS = 20
const NAMES = { bash: "Bash", read: "Read", write: "Write", edit: "Edit" }
// 0: judged. 3: judged, but not recorded. Anything else blocks the call: a denial, a crash, a timeout.
const MAY_RUN = [0, 3]
const UNJUDGED = "Decklog could not judge this call, so it is blocked. See: decklog doctor agents"

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
  const parents = new Map()
  const answers = new Set()
  const texts = new Map()
  // An editor's connection gets the cost of a turn.
  const isPaidOnTheWire = process.argv.slice(2).find((word) => !word.startsWith("-")) === "acp"
  const root = (session) => (parents.has(session) ? root(parents.get(session)) : session)
  const event = (session, name, fields) => {
    const agent = parents.has(session) ? { agent_id: session } : {}
    return tell({ session_id: root(session), ...agent, cwd: directory, hook_event_name: name, ...fields })
  }
  const begun = async (session) => {
    if (known.has(session)) return
    known.add(session)
    if (!parents.has(session)) await event(session, "SessionStart", { source: "startup" })
  }
  const created = async ({ id, parentID, agent, title }) => {
    if (!parentID) return begun(id)
    parents.set(id, parentID)
    known.add(id)
    await event(id, "SubagentStart", { agent_type: agent ?? "agent", description: title })
  }
  const answered = async ({ id, role, sessionID, modelID, tokens, cost, time }) => {
    if (role !== "assistant" || !time?.completed || answers.has(id) || isPaidOnTheWire) return
    answers.add(id)
    await event(sessionID, "ModelAnswer", { message_id: id, model: modelID, tokens, cost })
  }
  // The texts of an answer are distinguished by their number.
  const named = (message, part) => {
    const parts = texts.get(message) ?? []
    if (!parts.includes(part)) texts.set(message, [...parts, part])
    const place = texts.get(message).indexOf(part)
    return place ? `${message}:${place + 1}` : message
  }
  const grown = async ({ type, sessionID, messageID, text, time, state, ...part }) => {
    if (type === "text" && time?.end)
      await event(sessionID, "AssistantText", { message_id: named(messageID, part.id), text })
    if (type === "reasoning" && time?.end) await event(sessionID, "AssistantThought", { message_id: part.id, text })
    if (type === "tool" && state.status === "error")
      await event(sessionID, "PostToolUseFailure", { ...call(part, state.input), error: state.error })
  }
  return {
    event: async ({ event: { type, properties } }) => {
      const session = properties?.sessionID ?? properties?.info?.id
      if (!session) return
      if (type === "session.created") await created(properties.info)
      else if (type === "message.updated") await answered(properties.info)
      else if (type === "message.part.updated") await grown(properties.part)
      else if (type === "session.idle" && parents.has(session)) await event(session, "SubagentStop", { agent_type: "agent" })
      else if (type === "session.idle") await event(session, "Stop", {})
      else if (type === "session.compacted") await event(session, "PostCompact", { trigger: "auto" })
      else if (type === "session.error") await event(session, "StopFailure", { error: properties.error?.name ?? "error" })
      else if (type === "session.deleted") await event(session, "SessionEnd", { reason: "other" })
    },
    "chat.message": async (input, output) => {
      await begun(input.sessionID)
      const said = output.parts.filter((part) => part.type === "text").map((part) => part.text)
      const source = parents.has(input.sessionID) ? "system" : "user"
      const fields = { prompt: said.join("\n"), prompt_id: output.message?.id, source }
      await event(input.sessionID, "UserPromptSubmit", fields)
    },
    "tool.execute.before": async (input, output) => {
      const answer = await event(input.sessionID, "PreToolUse", call(input, output.args))
      if (!MAY_RUN.includes(answer.code)) throw new Error(answer.said || UNJUDGED)
    },
    "tool.execute.after": async (input, output) => {
      const code = output.metadata?.exit
      const ended = code ? { error: `Exit code ${code}\n${output.output}` } : { tool_response: output.output }
      await event(input.sessionID, code ? "PostToolUseFailure" : "PostToolUse", { ...call(input, input.args), ...ended })
    },
    dispose: async () => {
      for (const session of known) if (!parents.has(session)) await event(session, "SessionEnd", { reason: "other" })
    },
  }
}
