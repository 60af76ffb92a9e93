// A call: one conversation to shorten.
import { setImmediate as turn } from 'node:timers/promises'

import { HostError } from './errors.mjs'
import { bytes, decoder, encode, entries, MAX_ENTRIES, newPart, part } from './protocol.mjs'

const TEXTS = 1024 // in one request for vectors
const LEVELS = ['debug', 'info', 'warn', 'error']

// A Call is one request to a strategy. Objects in it have the fields of condense.proto, by the
// same names. Edits are applied after the strategy has returned. Messages that no edit names are
// unchanged; a call without edits means that there is nothing to gain.
export class Call {
  messages = [] // oldest first; part.kind names the field that is set, and bytes are Buffers
  start = null // budget, trigger, profile, mode, system, files_read, instructions, …
  signal // an AbortSignal: the host has cancelled the call
  // What the strategy left here in its last applied answer about this conversation, start.conversation, as a Buffer; what is here at
  // the end comes back in the next call, if this answer is applied: a string or bytes, at most 64 KiB.
  state = null
  usage = undefined // set it if the strategy called language models itself
  steps = []

  #write
  #decode = decoder()
  #edit = null
  #entries = 0 // of #edit
  #lastID = 0
  #later = ''
  #waiting = new Map()
  #history
  #complete

  // write sends a buffer to the host.
  constructor(write, signal) {
    this.#write = write
    this.signal = signal
    this.#history = new Promise((resolve) => { this.#complete = resolve })
  }

  // hide hides the messages from first to last, by ID; without last, first alone.
  hide(first, last = '') {
    this.#add('hide', { first, last })
  }

  // hideUnless hides the messages for which keep(message, index) is false, except protected
  // messages, system messages, the user's newest request, calls whose result is still to come, and
  // the rest of a tool group that is kept. A conversation that begins with a user message must still do so: keep its first
  // message, or insert a summary at the front. It returns the IDs that it gave to hide, in pairs.
  hideUnless(keep) {
    const asked = requests(this.messages)
    const hidden = []
    let next // the index after the last range
    for (const { from, to, open } of groups(this.messages)) {
      let stays = open
      for (let i = from; i <= to && !stays; i++) {
        const m = this.messages[i]
        stays = asked.has(i) || m.protected || m.role === 'system' || keep(m, i)
      }
      if (stays) continue
      if (from === next) hidden.at(-1)[1] = this.messages[to].id
      else hidden.push([this.messages[from].id, this.messages[to].id])
      next = to + 1
    }
    for (const range of hidden) this.hide(...range)
    return hidden
  }

  // rewrite replaces the parts of the message id by a list of { keep: index }, { put: part } and
  // { result: { part: index, content: […] } }, which replaces the content of a tool result.
  // Prefer keep and result: they need no bytes, and keep content that the plugin cannot see. A
  // part to put is { text: '…' } or another one of the protocol, with strings or bytes.
  rewrite(id, parts) {
    this.#add('rewrite', { id, parts: parts.map(newPart) })
  }

  // insert inserts a new message after the message with the ID after, or at the front. Its kind
  // is summary or marker, its role user or assistant. The host gives it an ID; later calls have it with this kind, to be known by
  // its text.
  insert({ after = '', role = 'user', kind = 'summary', parts }) {
    this.#add('insert', { after, role, kind, parts: parts.map(part) })
  }

  // later says why it is better not to condense yet, in a line; without edits. If start.may_wait is set, nothing is condensed, and the
  // host asks again once the conversation has grown. Otherwise it asks the next provider.
  later(reason) {
    this.#later = reason
  }

  // count resolves to the sizes of items in tokens, counted by the host. An item is
  // { messages: { first, last } }, { part: { message: id, part: index } } or
  // { content: { parts } }. Count many items at once: each request takes about 0.2 ms.
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

  // generate calls a language model of the host; see Generate in condense.proto. The input has
  // { messages: { first, last } } of the conversation and { message: { role, parts } }. The
  // promise resolves to { text, usage, truncated }, text being a Buffer, or is rejected with an
  // error that has the reason in its code: CODE_TOO_LONG, CODE_UNAVAILABLE, … The host counts the
  // cost. With a schema, an object, the text is JSON.
  async generate({ schema, ...request }) {
    if (schema || request.effort || request.temperature !== undefined) this.#answered('schema')
    const input = request.input.map((i) => (i.message ? { message: { ...i.message, parts: i.message.parts.map(part) } } : i))
    const fields = { system: bytes(request.system ?? ''), tools: bytes(request.tools ?? ''), schema: bytes(schema ? JSON.stringify(schema) : '') }
    const reply = await this.#ask({ generate: { ...request, ...fields, input } })
    return reply.generated
  }

  // hidden resolves to messages that earlier condensations hid or rewrote, as they were; without
  // ids all of them, without parts. Their IDs cannot stand in edits: insert what is worth reading
  // again. Like run, embed and file it is rejected with CODE_UNSUPPORTED if the host does not answer it.
  async hidden(...ids) {
    this.#answered('hidden')
    return (await this.#ask({ hidden: { ids } })).hidden.messages
  }

  // run lets a built-in strategy, such as smart, shorten a part of the conversation: messages are
  // ranges { first, last } that it may change, by default all; target is the size of the whole, by
  // default that of the call. It resolves to { edit, tokens, usage }: edit(result.edit) sends it on.
  async run(strategy, { settings = {}, messages = [], target = 0 } = {}) {
    this.#answered('run')
    return (await this.#ask({ run: { strategy, settings: bytes(JSON.stringify(settings)), messages, target } })).run
  }

  // edit adds everything in an edit.
  edit({ hide = [], rewrite = [], insert = [] }) {
    for (const { first, last } of hide) this.hide(first, last)
    for (const { id, parts } of rewrite) this.rewrite(id, parts)
    for (const message of insert) this.insert(message)
  }

  // embed resolves to a vector, an array of numbers, for each text, by the model of the user's
  // configuration.
  async embed(texts) {
    this.#answered('embed')
    const vectors = []
    for (let i = 0; i < texts.length; i += TEXTS) {
      const { embedded } = await this.#ask({ embed: { texts: texts.slice(i, i + TEXTS).map(bytes) } })
      vectors.push(...embedded.vectors.map((v) => v.values))
    }
    return vectors
  }

  // file resolves to the newest text of a file, in pieces { first, text, unsure }, as the
  // conversation shows it by reads, writes and edits, hidden ones too: none if it shows nothing.
  async file(path) {
    this.#answered('file')
    return (await this.#ask({ file: { path: bytes(path) } })).file.pieces
  }

  // log writes to the host's log, with the ID of this call. Levels: debug, info, warn, error.
  log(level, message, fields = {}) {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(this.start?.log_level || 'info')) return
    const list = Object.entries(fields).map(([key, value]) => ({ key, value: Buffer.from(String(value)) }))
    this.#send({ log: { level, message: Buffer.from(message), fields: list } })
  }

  // progress reports to the user: a fraction from 0 to 1, undefined if unknown.
  progress(fraction, text = '') {
    this.#send({ progress: { fraction, text } })
  }

  // step adds a line to the report: { name, note, looked, changed, saved,
  // tokens_before, tokens_after, ms }, all but the name optional. Saved are tokens by kind of
  // content: { tool_result: 1200 }.
  step({ note = '', ...step }) {
    this.steps.push({ ...step, note: Buffer.from(note) })
  }

  // pause lets other calls and health checks run, and throws if the call is cancelled. Await it
  // every few milliseconds of work: JavaScript is single-threaded, and a host kills a plugin
  // that does not answer.
  async pause() {
    await turn()
    this.signal.throwIfAborted()
  }

  // The rest is for server.mjs and testing.mjs.

  // receive handles a message of the host.
  receive(data) {
    const request = this.#decode(data)
    switch (request?.kind) {
      case 'start':
        this.start = request.start
        this.state = this.start.state
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
        return // a kind of a later version, or incomplete
    }
    if (this.start && this.messages.length >= this.start.message_count) this.#complete()
  }

  // answer runs the async function run on the call and sends the result.
  async answer(run) {
    await Promise.race([this.#history, aborted(this.signal)])
    await Promise.race([run(this), aborted(this.signal)])
    this.signal.throwIfAborted()
    this.#flush()
    this.#send({ done: { usage: this.usage, steps: this.steps, state: bytes(this.state), later: this.#later } })
  }

  #answered(name) {
    if (!this.start?.callbacks.includes(name)) throw new HostError({ code: 'CODE_UNSUPPORTED', message: `${name}: not supported by this host` })
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
    if (r.error) throw new HostError(r.error)
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
    p.catch(() => {}) // the promise may have no handler
    aborts.set(signal, p)
  }
  return aborts.get(signal)
}

// groups divides messages into the smallest runs, from and to being indexes, that keep every tool
// call together with its result; open are those with a call without result. If an ID is used
// twice, a result answers the oldest open call with it.
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

// requests returns the indexes of the user's messages that no answer follows, their newest
// request: it stays, verbatim but for tool results in it.
export function requests(messages) {
  const out = new Set()
  for (let i = messages.length - 1; i >= 0; i--) {
    const { role, kind, parts, program } = messages[i]
    if (role === 'assistant' && !kind) break
    const said = parts.some((p) => p.kind === 'image' || p.kind === 'opaque' || (p.kind === 'text' && String(p.text).trim() !== ''))
    if (role === 'user' && !kind && !program && said) out.add(i)
  }
  return out
}
