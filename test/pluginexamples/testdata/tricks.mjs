#!/usr/bin/env node
// tricks does what the instructions of a call say: whatever a plugin can do, right or wrong.
import { InvalidRequest, main, Unavailable, Unsupported } from './condense/index.mjs'

let waiting = 0

// say has text stand for everything.
function say(call, text) {
  call.hide(call.messages[0].id, call.messages.at(-1).id)
  call.insert({ parts: [{ text }] })
}

const tricks = {
  nothing: () => {},
  fail: () => { throw new Error('boom') },
  invalid: () => { throw new InvalidRequest('cannot be answered') },
  unavailable: () => { throw new Unavailable('not today') },
  unsupported: () => { throw new Unsupported('not my kind of work') },
  exit: () => process.exit(3),
  crash: () => new Promise(() => setTimeout(() => { throw new Error('nobody catches this') })),
  reject: () => new Promise(() => { Promise.reject(new Error('nobody waits for this')) }),
  reject_text: () => new Promise(() => { Promise.reject('of text') }),
  wait: async (call) => {
    waiting++
    try {
      for (;;) await call.pause()
    } finally {
      waiting--
    }
  },
  waiting: (call) => say(call, `${waiting} calls`),
  echo: (call) => say(call, call.messages[0].parts[0].text),
  start: (call) => {
    const s = call.start
    say(call, [s.trigger, s.profile, s.mode, s.system, s.environment, ...s.files_read, s.budget.target, Number(s.no_recall), s.api].join(' '))
  },
  about: (call, settings) => {
    const { model, price, host } = call.start
    say(call, `${model} ${price.input} ${price.cache_read} ${host} ${settings.greeting}`)
  },
  remember: (call) => {
    say(call, `${call.start.conversation}: ${call.state}`)
    call.state = Buffer.concat([call.state, Buffer.from([0xff])])
  },
  later: (call) => call.later(`not now, ${call.start.may_wait}`),
  keep_parts: (call) => {
    for (const m of call.messages) call.rewrite(m.id, [...m.parts.keys()].reverse().map((i) => ({ keep: i })))
  },
  ends: (call) => {
    const n = call.messages.length
    call.hideUnless((m, i) => i < 2 || i >= n - 100)
  },
  longest: (call) => {
    const size = (p) => p.tool_result.content.reduce((sum, c) => sum + c.text.length, 0)
    let found
    let most = -1
    for (const m of call.messages) for (const p of m.parts) if (p.kind === 'tool_result' && size(p) > most) [found, most] = [m, size(p)]
    call.rewrite(found.id, [{ result: { part: 0, content: [{ put: { text: '[long]' } }] } }])
  },
  hide_rest: (call) => {
    const first = call.messages.find((m) => m.role !== 'system')
    const hidden = call.hideUnless((m) => m === first || m.role === 'system')
    call.step({ name: 'hidden', note: hidden.map((range) => range.join(' ')).join(',') })
  },
  generate: async (call) => {
    const ask = { role: 'user', parts: [{ text: 'Summarize.' }] }
    try {
      const answer = await call.generate({ system: 'Be brief.', input: [{ messages: { first: call.messages[0].id } }, { message: ask }] })
      say(call, `${answer.text} after ${answer.usage.input_tokens}`)
    } catch (err) {
      say(call, err.code)
    }
  },
  part: async (call) => { // smart for the middle, own words for the rest
    const last = call.messages.at(-3).id
    const done = await call.run('smart', { settings: { preset: 'aggressive' }, messages: [{ first: call.messages[2].id, last }] })
    call.edit(done.edit)
    call.insert({ parts: [{ text: `${done.tokens} tokens left` }], after: last })
  },
  reopen: async (call) => { // brings a hidden message back
    const [{ id }] = await call.hidden()
    const [{ parts }] = await call.hidden(id)
    call.insert({ parts, after: call.messages[0].id })
  },
  newest: async (call) => { // a file as the conversation shows it, and what is said about the messages
    const [{ first, text, unsure }] = await call.file('a.go')
    const { cached } = call.start
    say(call, `${first} ${text} ${unsure} ${(await call.file('b.go')).length} ${cached.messages} ${cached.until_ms} ${call.messages[0].labels.kept}`)
  },
  vectors: async (call) => {
    const found = await call.embed(Array.from({ length: 2000 }, (_, i) => `text ${i}`))
    say(call, `${found.length} ${found[0].length} ${found[7][7]}.0`)
  },
  schema: async (call) => {
    const input = [{ messages: { first: call.messages[0].id } }]
    say(call, (await call.generate({ input, schema: { type: 'object' }, temperature: 0.5, effort: 'low' })).text)
  },
  lacking: async (call) => {
    const codes = []
    for (const ask of [() => call.hidden(), () => call.run('smart'), () => call.embed(['x']), () => call.file('x')]) {
      await ask().catch((err) => codes.push(`${err.code} ${err.message}`))
    }
    say(call, codes.join(', '))
  },
  count: async (call) => {
    const [first, second] = call.messages
    const [all, part, content] = await call.count([
      { messages: { first: first.id, last: second.id } },
      { part: { message: second.id, part: 0 } },
      { content: { parts: [{ text: '12345678' }] } },
    ])
    say(call, `${all} ${part} ${content}`)
  },
  count_many: async (call) => {
    const item = { content: { parts: [{ tool_result: { call_id: 'c', content: [{ text: '12345678' }] } }] } }
    const sizes = await call.count(Array(50_000).fill(item))
    say(call, String(sizes.filter((n) => n === 3).length))
  },
  ask: (call) => call.generate({ input: [{ messages: { first: call.messages[0].id } }] }),
  count_wrong: (call) => call.count([{ messages: { first: 'nobody' } }]),
  tell: (call, settings) => {
    console.log('to standard output')
    call.log('debug', 'in detail')
    call.log('warn', 'attention', { n: 7, greeting: settings.greeting })
    call.progress(0.5, 'half')
    call.step({ name: 'first', note: 'as said', saved: { user: 7 }, looked: 3, changed: 2, tokens_before: 9, tokens_after: 2, ms: 1.5 })
    call.step({ name: 'second' })
    call.usage = { calls: 1, input_tokens: 10, output_tokens: 2, usd: 0.5 }
  },
}

main(import.meta, {
  name: 'tricks',
  version: '1.2.3',
  doc: 'Does what it is told.',
  settings: {
    greeting: { default: 'hello', doc: 'What to say.', was: ['hello', 'word'] },
    share: { default: 0.5, doc: 'Between 0 and 1.' },
    style: { default: 'plain', enum: ['plain', 'fancy'], doc: 'How.' },
  },
  check: ({ share }) => (share < 0 || share > 1 ? [{ key: 'share', message: 'must be from 0 to 1' }] : []),
  estimate: (call) => {
    call.usage = { calls: 1, input_tokens: call.messages.reduce((sum, m) => sum + m.tokens, 0), usd: call.start.price.input }
  },
  condense: (call, settings) => tricks[call.start.instructions.toString()](call, settings),
})
