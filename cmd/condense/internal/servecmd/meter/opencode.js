// The status line of condense for OpenCode: the size of the conversation, when it will be condensed,
// what the last condensation did and how to undo it. It shows what the program "condense statusline" prints, and
// nothing if no gateway has seen this conversation.
//
// To install it: condense statusline --plugin opencode >~/.config/opencode/condense-meter.js
// and name it in ~/.config/opencode/tui.json: {"plugin": ["./condense-meter.js"]}

import { spawn } from "node:child_process"
import { createSignal } from "solid-js"
import { createElement, effect, insert, setProp } from "@opentui/solid"

const [program, ...fixed] = JSON.parse(process.env.CONDENSE_STATUSLINE || '["condense", "statusline"]')

// read returns what the program prints about a session; undefined if it prints nothing.
function read(session, folder) {
  return new Promise((resolve) => {
    const args = [...fixed, "--output", "json", "--session", session, "--dir", folder]
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], timeout: 5_000 })
    let out = ""
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
    child.on("error", () => resolve(undefined)) // there is no such program
    child.on("close", () => {
      try {
        resolve(JSON.parse(out))
      } catch {
        resolve(undefined)
      }
    })
  })
}

const every = 2_000 // milliseconds, for what is done with the conversation elsewhere
const noted = 10_000 // milliseconds that a note stays

const tui = async (api) => {
  const [line, setLine] = createSignal("")
  const [soon, setSoon] = createSignal()
  const toast = (title, message, variant) => api.ui.toast({ title, message, variant, duration: noted })
  let session, epoch, reading

  async function show() {
    const open = api.route.current.name === "session" ? api.route.current.params.sessionID : undefined
    if (open !== session) [session, epoch] = [open, undefined]
    if (!open) return setLine("")
    if (reading) return
    reading = true
    const now = await read(open, api.state.path.directory)
    reading = false
    if (open !== session) return
    if (now?.soon && !soon()) toast("Condenses with the next request", now.soon, "warning")
    if (now?.last && epoch !== undefined && now.epoch !== epoch) toast("Condensed", now.last, "info")
    setLine(now?.line ?? "")
    setSoon(now?.soon)
    if (now) epoch = now.epoch
  }

  api.slots.register({
    order: 150,
    slots: {
      app_bottom() {
        const text = createElement("text")
        setProp(text, "marginLeft", 2)
        insert(text, line)
        effect(() => setProp(text, "visible", line() !== ""))
        effect(() => setProp(text, "fg", soon() ? api.theme.current.warning : api.theme.current.textMuted))
        return text
      },
    },
  })
  const timer = setInterval(() => void show(), every)
  api.lifecycle.onDispose(() => clearInterval(timer))
  api.event.on("message.updated", () => void show())
}

export default { id: "condense.meter", tui }
