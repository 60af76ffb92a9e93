// condense for OpenCode: long tool results are shortened before the model sees them, the model can recall what was left
// out, and a compaction knows what was asked. All of it is done by the program condense; without it nothing changes.
//
// To install it, name it in opencode.json: {"plugin": ["file:///path/to/condense.js"]}, or copy it into ~/.config/opencode/plugin/.

import { spawn, spawnSync } from "node:child_process"

// ask gives an event to condense hook and returns its answer; undefined if there is none.
function ask(event, log) {
  return new Promise((resolve) => {
    const child = spawn("condense", ["hook", "opencode", "--recall"], { stdio: ["pipe", "pipe", "pipe"], timeout: 15_000 })
    let out = "", err = ""
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
    child.stderr.setEncoding("utf8").on("data", (text) => (err += text))
    child.stdin.on("error", () => {}) // it has ended
    child.on("error", () => resolve(undefined))
    child.on("close", () => {
      if (err) log(err.trim())
      try {
        resolve(JSON.parse(out).hookSpecificOutput)
      } catch {
        resolve(undefined) // it has nothing to say
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

export const Condense = async ({ client, directory }) => {
  const log = (message) => void client.app.log({ body: { service: "condense", level: "warn", message } }).catch(() => {})
  if (spawnSync("condense", ["version"], { timeout: 15_000 }).error) {
    const message = "the program condense is not in PATH, so its plugin does nothing. Install it with: go install github.com/condensehq/condense/cmd/condense@latest"
    console.error("condense: " + message)
    log(message)
    return {}
  }
  const asked = new Map() // by session, the person's newest message
  const commands = new Set() // sessions whose next message is a command's text
  return {
    "command.execute.before": async (input) => void commands.add(input.sessionID),
    "chat.message": async (input, output) => {
      asked.delete(input.sessionID)
      if (commands.delete(input.sessionID)) return
      const session = await client.session.get({ path: { id: input.sessionID } }).catch(() => undefined)
      if (!session?.data || session.data.parentID) return // in a subagent's session a model asks
      asked.set(input.sessionID, { info: output.message, parts: output.parts.filter((part) => part.type === "text" && !part.synthetic) })
    },
    config: async (config) => {
      config.mcp = { condense: { type: "local", command: ["condense", "mcp", "--agent", "opencode"] }, ...config.mcp }
    },
    "tool.execute.after": async (input, output) => {
      const member = typeof output?.output === "string" ? "output" : Array.isArray(output?.content) ? "content" : undefined
      if (!member) return
      const answer = await ask({
        hook_event_name: "PostToolUse", session_id: input.sessionID, cwd: directory,
        tool_name: input.tool, tool_input: input.args, tool_use_id: input.callID, tool_response: output[member],
        conversation: asked.has(input.sessionID) ? { info: { id: input.sessionID, directory }, messages: [asked.get(input.sessionID)] } : undefined,
      }, log)
      if (answer?.updatedToolOutput !== undefined) output[member] = answer.updatedToolOutput
    },
    "experimental.session.compacting": async (input, output) => {
      const messages = await client.session.messages({ path: { id: input.sessionID } }).catch(() => undefined)
      if (!messages?.data) return
      const answer = await ask({
        hook_event_name: "PreCompact", session_id: input.sessionID, cwd: directory,
        conversation: { info: { id: input.sessionID, directory }, messages: messages.data },
      }, log)
      if (answer?.additionalContext) output.context.push(answer.additionalContext)
    },
  }
}
