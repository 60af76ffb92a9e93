// Tests of a strategy without a host: through the protocol, but in one process. They do not check
// the rules: "condense plugin test" does.
import { Call } from './call.mjs'
import { bytes, decodeResponse, encodeRequest, part } from './protocol.mjs'
import { configure } from './settings.mjs'

// rehearse runs strategy on messages and resolves to
//
//   { messages, logs, progress, usage, steps, state, later }
//
// with messages after the edits. A message is { role, parts } and any other fields; missing IDs are
// m1, m2, …; missing sizes are counted, a token for every four bytes. options: settings, start
// (fields of Start), signal, generate: a function that replaces the host's language models, from
// a Generate to the text, answers: functions for other callbacks, by name: { embed: ({ texts }) => ({ vectors }) }.
export async function rehearse(strategy, messages, options = {}) {
  const { settings, problems } = configure(strategy, JSON.stringify(options.settings ?? {}))
  if (problems.length > 0) throw new Error(problems.map((p) => `${p.key}: ${p.message}`).join('\n'))

  const before = messages.map((m, i) => {
    const parts = m.parts.map(part)
    return { id: `m${i + 1}`, tokens: count(parts) + FRAMING, ...m, parts }
  })
  const host = new Host(before, options.generate, options.answers ?? {})
  const call = new Call((data) => host.receive(data), options.signal ?? new AbortController().signal)
  host.reply = (reply) => setImmediate(() => call.receive(encodeRequest({ reply })))
  const answered = call.answer((c) => strategy.condense(c, settings))
  call.receive(encodeRequest({ start: { ...start(before, options.start), callbacks: ['schema', ...Object.keys(options.answers ?? {})] } }))
  for (const m of before) call.receive(encodeRequest({ messages: { messages: [m] } }))
  await answered
  return { messages: host.result(), logs: host.logs, progress: host.progress, usage: host.usage, steps: host.steps, state: host.state, later: host.later }
}

function start(messages, given = {}) {
  const tokens = messages.reduce((sum, m) => sum + m.tokens, 0)
  const half = Math.floor(tokens / 2)
  const s = { trigger: 'manual', log_level: 'debug', budget: { window: tokens, limit: half, target: half }, ...given }
  for (const f of ['system', 'environment', 'instructions']) s[f] = bytes(s[f] ?? '')
  return { ...s, files_read: (s.files_read ?? []).map(bytes), message_count: messages.length }
}

const FRAMING = 4

// A Host is the host in a rehearsal.
class Host {
  logs = []
  progress = []
  usage = undefined
  steps = []
  state = undefined
  later = ''
  reply = undefined
  #messages
  #generate
  #answers
  #hidden = new Set()
  #rewritten = new Map()
  #inserted = new Map()

  constructor(messages, generate, answers) {
    this.#answers = answers
    this.#messages = messages
    this.#generate = generate
  }

  receive(data) {
    const response = decodeResponse(data)
    switch (response.kind) {
      case 'callback':
        this.#answer(response.callback)
        break
      case 'log': {
        const { level, message, fields } = response.log
        this.logs.push({ level, message: String(message), ...Object.fromEntries(fields.map((f) => [f.key, String(f.value)])) })
        break
      }
      case 'progress':
        this.progress.push(response.progress)
        break
      case 'edit':
        this.#edit(response.edit)
        break
      case 'done':
        this.usage = response.done.usage
        this.steps = response.done.steps
        this.state = response.done.state
        this.later = response.done.later
        break
      default:
        throw new Error(`rehearse: a ${response.kind} is too large for a rehearsal`)
    }
  }

  result() {
    const out = [...(this.#inserted.get('') ?? [])]
    for (const m of this.#messages) {
      if (this.#rewritten.has(m.id)) out.push({ ...m, parts: this.#rewritten.get(m.id) })
      else if (!this.#hidden.has(m.id)) out.push(m)
      out.push(...(this.#inserted.get(m.id) ?? []))
    }
    return out
  }

  #answer({ id, count_tokens: question, call, ...asked }) {
    const answer = call === 'generate' && this.#generate ? async (g) => ({ text: bytes(await this.#generate(g)) }) : this.#answers[call]
    if (answer) {
      Promise.resolve(asked[call]).then(answer).then(
        (reply) => this.reply({ id, [{ generate: 'generated', embed: 'embedded' }[call] ?? call]: reply }),
        (err) => this.reply({ id, error: { code: 'CODE_FAILED', message: String(err) } }),
      )
      return
    }
    if (!question) {
      this.reply({ id, error: { code: 'CODE_UNSUPPORTED', message: 'this host only counts' } })
      return
    }
    const tokens = question.items.map((item) => {
      if (item.messages) return this.#span(item.messages).reduce((sum, m) => sum + m.tokens, 0)
      if (item.part) return count([this.#message(item.part.message).parts[item.part.part]])
      return count(item.content.parts)
    })
    this.reply({ id, token_counts: { tokens, framing_tokens: FRAMING } })
  }

  #edit(edit) {
    for (const range of edit.hide) {
      for (const m of this.#span(range)) {
        this.#once(m.id)
        this.#hidden.add(m.id)
      }
    }
    for (const { id, parts } of edit.rewrite) {
      this.#once(id)
      this.#rewritten.set(id, rewritten(this.#message(id).parts, parts))
    }
    for (const { after, ...message } of edit.insert) {
      if (after !== '') this.#message(after)
      this.#inserted.set(after, [...(this.#inserted.get(after) ?? []), message])
    }
  }

  #once(id) {
    if (this.#hidden.has(id) || this.#rewritten.has(id)) throw new Error(`message ${id} is hidden or rewritten twice`)
  }

  #message(id) {
    const m = this.#messages.find((m) => m.id === id)
    if (!m) throw new Error(`there is no message ${id}`)
    return m
  }

  #span({ first, last }) {
    const from = this.#messages.indexOf(this.#message(first))
    const to = this.#messages.indexOf(this.#message(last || first))
    return this.#messages.slice(from, to + 1)
  }
}

// rewritten returns the new parts of a message.
function rewritten(was, parts) {
  return parts.map((p) => {
    if (p.kind === 'put') return part(p.put)
    const old = was[p.kind === 'keep' ? p.keep : p.result.part]
    if (!old) throw new Error(`there is no such part to keep, only ${was.length} parts`)
    if (p.kind === 'keep') return old
    return { tool_result: { ...old.tool_result, content: rewritten(old.tool_result.content, p.result.content) } }
  })
}

// count returns the tokens of parts: one for every four bytes of text.
function count(parts) {
  const size = (b) => Math.ceil(bytes(b ?? '').length / 4)
  return parts.reduce((sum, p) => {
    if (p.text) return sum + size(p.text)
    if (p.tool_call) return sum + size(p.tool_call.name) + size(p.tool_call.args)
    if (p.tool_result) return sum + count(p.tool_result.content)
    if (p.image) return sum + 1000
    return sum + size(p.reasoning?.text ?? p.opaque?.json)
  }, 0)
}
