// A call: one conversation to be shortened.
import { setImmediate as turn } from 'node:timers/promises'

import { bytes, decoder, encode, entries, MAX_ENTRIES, newPart, part } from './protocol.mjs'

const LEVELS = ['debug', 'info', 'warn', 'error']

// A Call is what a strategy works on. Objects in it have the fields of condense.proto, by the
// same names. Nothing that it says is applied before the strategy has returned, and what it
// does not name stays as it is: a strategy that does nothing says that there is nothing to
// gain.
export class Call {
  messages = [] // oldest first; a part says in part.kind which of its fields is set, and bytes are Buffers
  start = null // budget, trigger, profile, mode, system, files_read, instructions, …
  signal // an AbortSignal: the host does not wait any longer
  usage = undefined // set it if the strategy called language models itself
  steps = []

  #write
  #decode = decoder()
  #edit = null
  #entries = 0 // of #edit
  #lastID = 0
  #waiting = new Map()
  #history
  #complete

  // write sends a buffer to the host.
  constructor(write, signal) {
    this.#write = write
    this.signal = signal
    this.#history = new Promise((resolve) => { this.#complete = resolve })
  }

  // hide takes the message with the ID first out of what is sent to the model, or those from
  // first to last.
  hide(first, last = '') {
    this.#add('hide', { first, last })
  }

  // hideUnless hides the messages for which keep(message, index) is false, but none that must
  // stay: protected ones, the system's, calls whose result is still to come, and what belongs to a call or
  // result that stays. A conversation that begins with a user message must go on to do so:
  // keep sees to that, or insert a summary at the front.
  hideUnless(keep) {
    for (const { from, to, open } of groups(this.messages)) {
      const group = this.messages.slice(from, to + 1)
      if (!open && !group.some((m, i) => m.protected || m.role === 'system' || keep(m, from + i))) this.hide(group[0].id, group.at(-1).id)
    }
  }

  // rewrite gives the message id other parts: a list of { keep: index }, { put: part } and
  // { result: { part: index, content: […] } }, which gives a tool result other content.
  // Prefer keep and result: they need no bytes, and keep what the plugin could not see. A part
  // to put is { text: '…' } or another of the protocol; strings may stand for bytes.
  rewrite(id, parts) {
    this.#add('rewrite', { id, parts: parts.map(newPart) })
  }

  // insert puts a message of the strategy's own behind the message with the ID after, or to
  // the front. Its kind is summary or marker, its role user or assistant.
  insert({ after = '', role = 'user', kind = 'summary', parts }) {
    this.#add('insert', { after, role, kind, parts: parts.map(part) })
  }

  // count asks the host for the size in tokens of any number of items and resolves to a list
  // of numbers. An item is { messages: { first, last } }, { part: { message: id, part: index } }
  // or { content: { parts } }. Ask once for many: each question takes some 0.2 ms.
  async count(items) {
    const sizes = []
    let batch = []
    let size = 0
    const flush = async () => {
      if (batch.length > 0) sizes.push(...(await this.#ask({ count_tokens: { items: batch } })).token_counts.tokens)
      batch = []
      size = 0
    }
    for (const i of items) {
      batch.push(i.content ? { content: { parts: i.content.parts.map(part) } } : i)
      size += 1 + entries(batch.at(-1))
      if (size > MAX_ENTRIES) await flush()
    }
    await flush()
    return sizes
  }

  // generate asks a language model of the host; see Generate in condense.proto. Input are
  // { messages: { first, last } } of the conversation and { message: { role, parts } }. The
  // promise resolves to { text, usage, truncated }, text being a Buffer, or is rejected with an
  // error whose code says why: CODE_TOO_LONG, CODE_UNAVAILABLE, … The host knows what it cost.
  async generate(request) {
    const input = request.input.map((i) => (i.message ? { message: { ...i.message, parts: i.message.parts.map(part) } } : i))
    const reply = await this.#ask({ generate: { ...request, system: bytes(request.system ?? ''), tools: bytes(request.tools ?? ''), input } })
    return reply.generated
  }

  // log writes to the host's log, under this call. Levels: debug, info, warn, error.
  log(level, message, fields = {}) {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(this.start?.log_level || 'info')) return
    const list = Object.entries(fields).map(([key, value]) => ({ key, value: Buffer.from(String(value)) }))
    this.#send({ log: { level, message: Buffer.from(message), fields: list } })
  }

  // progress tells whoever waits how far the call is, from 0 to 1; undefined if unknown.
  progress(fraction, text = '') {
    this.#send({ progress: { fraction, text } })
  }

  // step says in the report what was done, for people: { name, note, looked, changed, saved,
  // tokens_before, tokens_after, ms }, all but the name optional. Saved are tokens by kind of
  // content: { tool_result: 1200 }.
  step({ note = '', ...step }) {
    this.steps.push({ ...step, note: Buffer.from(note) })
  }

  // pause lets other calls and the host's health checks have their turn, and throws if the
  // host does not wait any longer. Await it every few milliseconds of work: JavaScript does
  // one thing at a time, and a host kills a plugin that does not answer.
  async pause() {
    await turn()
    this.signal.throwIfAborted()
  }

  // What follows is for server.mjs and testing.mjs.

  // receive takes in what the host sent.
  receive(data) {
    const request = this.#decode(data)
    switch (request?.kind) {
      case 'start':
        this.start = request.start
        break
      case 'messages':
        for (const m of request.messages.messages) this.messages.push(m)
        break
      case 'reply': {
        const { id } = request.reply
        this.#waiting.get(id)?.(request.reply)
        this.#waiting.delete(id)
        return
      }
      default:
        return // of a kind that came later, or not complete
    }
    if (this.start && this.messages.length >= this.start.message_count) this.#complete()
  }

  // answer has run, an async function, work on the call, and sends what came of it.
  async answer(run) {
    await Promise.race([this.#history, aborted(this.signal)])
    await Promise.race([run(this), aborted(this.signal)])
    this.signal.throwIfAborted()
    this.#flush()
    this.#send({ done: { usage: this.usage, steps: this.steps } })
  }

  #add(op, value) {
    this.#edit ??= { hide: [], rewrite: [], insert: [] }
    this.#edit[op].push(value)
    this.#entries += 1 + entries(value)
    if (this.#entries > MAX_ENTRIES) this.#flush()
  }

  #flush() {
    if (this.#edit) this.#send({ edit: this.#edit })
    this.#edit = null
    this.#entries = 0
  }

  #send(response) {
    for (const data of encode(response)) this.#write(data)
  }

  async #ask(call) {
    this.signal.throwIfAborted()
    const id = ++this.#lastID
    const reply = new Promise((resolve) => { this.#waiting.set(id, resolve) })
    this.#send({ callback: { id, ...call } })
    const r = await Promise.race([reply, aborted(this.signal)])
    if (r.error) throw Object.assign(new Error(`host: ${r.error.message}`), { code: r.error.code })
    return r
  }
}

const aborts = new WeakMap()

// aborted returns a promise that is rejected when signal is aborted: one for each signal,
// so that many races do not pile up listeners.
function aborted(signal) {
  if (!aborts.has(signal)) {
    const p = new Promise((_, reject) => {
      const abort = () => reject(signal.reason)
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
    })
    p.catch(() => {}) // it may be that nobody waits
    aborts.set(signal, p)
  }
  return aborts.get(signal)
}

// groups cuts messages into the smallest runs, from and to being indexes, that keep every tool
// call together with its result; open are those with a call that nobody answered. Where an ID
// is used twice, a result answers the oldest call before it that is still open.
export function groups(messages) {
  const reach = messages.map((_, i) => i)
  const open = new Map() // ID of a call to the messages with such a call
  messages.forEach((m, i) => {
    for (const p of m.parts) {
      if (p.kind === 'tool_call') {
        if (!open.has(p.tool_call.id)) open.set(p.tool_call.id, [])
        open.get(p.tool_call.id).push(i)
      } else if (p.kind === 'tool_result') {
        const caller = open.get(p.tool_result.call_id)?.shift()
        if (caller !== undefined) reach[caller] = Math.max(reach[caller], i)
      }
    }
  })
  const unanswered = new Set([...open.values()].flat())
  const out = []
  for (let from = 0; from < messages.length; from = out.at(-1).to + 1) {
    const group = { from, to: reach[from], open: false }
    for (let i = from; i <= group.to; i++) {
      group.to = Math.max(group.to, reach[i])
      group.open ||= unanswered.has(i)
    }
    out.push(group)
  }
  return out
}
