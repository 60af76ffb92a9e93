// node --test
import assert from 'node:assert/strict'
import test from 'node:test'

import { rehearse } from './condense/testing.mjs'
import { strategy } from './dedupe.mjs'

const source = 'func main() { fmt.Println("hello") }\n'.repeat(20)

const call = (id, args) => ({ role: 'assistant', parts: [{ tool_call: { id, name: 'read', args } }] })
const answer = (id, ...content) => ({ role: 'user', parts: [result(id, ...content)] })
const result = (id, ...content) => ({ tool_result: { call_id: id, content } })
const text = (text) => ({ text })

const readTwice = [
  { role: 'user', parts: [text('Find the bug.')] },
  call('c1', '{"path":"main.go"}'),
  answer('c1', text(source)),
  call('c2', '{"path":"./main.go"}'),
  answer('c2', text(source)),
]

// said returns the texts of the tool results among messages.
const said = (messages) =>
  messages.flatMap((m) => m.parts.filter((p) => p.tool_result).map((p) => p.tool_result.content.map((c) => String(c.text ?? 'no text')).join('|')))

test('the newest copy is kept, and the older one refers to it', async () => {
  const { messages, steps } = await rehearse(strategy, readTwice)
  assert.deepEqual(said(messages), [
    `[The same ${source.length} bytes as the result below of read {"path":"./main.go"}, call c2: see there.]`,
    source,
  ])
  assert.deepEqual(messages.map((m) => m.id), ['m1', 'm2', 'm3', 'm4', 'm5'])
  assert.deepEqual(steps.map((s) => [s.name, s.looked, s.changed]), [['duplicates', 1, 1]])
  assert.ok(steps[0].saved.tool_result > 100)
})

test('or the oldest', async () => {
  const { messages } = await rehearse(strategy, readTwice, { settings: { keep: 'oldest' } })
  assert.deepEqual(said(messages), [
    source,
    `[The same ${source.length} bytes as the result above of read {"path":"main.go"}, call c1: see there.]`,
  ])
})

test('one of many copies is kept', async () => {
  const { messages } = await rehearse(strategy, [...readTwice, call('c3', '{}'), answer('c3', text(source))])
  assert.deepEqual(said(messages).map((s) => s === source), [false, false, true])
})

test('other parts of a message are kept', async () => {
  const mixed = { role: 'user', parts: [text('first'), result('c1', text(source)), text('last')] }
  const { messages } = await rehearse(strategy, [call('c1', '{}'), mixed, call('c2', '{}'), answer('c2', text(source))])
  assert.deepEqual(messages[1].parts.map((p) => String(p.text ?? 'result')), ['first', 'result', 'last'])
  assert.notEqual(said(messages)[0], source)
})

test('images count: the same text with another image is no copy', async () => {
  const picture = (data) => ({ image: { media_type: 'image/png', data, url: '' } })
  const shots = (...data) => data.flatMap((d, i) => [call(`c${i}`, '{}'), answer(`c${i}`, text(source), picture(d))])
  const same = await rehearse(strategy, shots('AAAA', 'AAAA'))
  assert.notEqual(said(same.messages)[0], said(same.messages)[1])
  const other = await rehearse(strategy, shots('AAAA', 'BBBB'))
  assert.equal(said(other.messages)[0], said(other.messages)[1])
})

const errors = structuredClone(readTwice)
errors[4].parts[0].tool_result.is_error = true

for (const [name, messages] of Object.entries({
  'small results are kept': [call('c1', '{}'), answer('c1', text('ok')), call('c2', '{}'), answer('c2', text('ok'))],
  'protected messages are kept': readTwice.map((m) => ({ ...m, protected: true })),
  'results with other content are kept': [...readTwice.slice(0, 2), answer('c1', text(source + ' ')), ...readTwice.slice(3)],
  'an error is not the same as a success': errors,
  'no messages': [],
})) {
  test(name, async () => {
    const { messages: after } = await rehearse(strategy, messages)
    assert.deepEqual(said(after), said((await rehearse({ ...strategy, condense: async () => {} }, messages)).messages))
  })
}

test('bytes that are not UTF-8 are compared unchanged', async () => {
  const binary = (last) => text(Buffer.concat([Buffer.alloc(300, 0xff), Buffer.from([last])]))
  const { messages } = await rehearse(strategy, [call('c1', '{}'), answer('c1', binary(0xfe)), call('c2', '{}'), answer('c2', binary(0xfd))])
  assert.equal(said(messages).filter((s) => s.startsWith('[')).length, 0)
})

test('a cancelled call ends', async () => {
  const stopped = AbortSignal.abort(new Error('enough'))
  await assert.rejects(rehearse(strategy, readTwice, { signal: stopped }), /enough/)
})

test('invalid settings are rejected by name', async () => {
  const refused = (settings, message) => assert.rejects(rehearse(strategy, [], { settings }), message)
  await refused({ keep: 'middle' }, /^Error: keep: "middle" is none of newest, oldest$/)
  await refused({ min_bytes: -1 }, /^Error: min_bytes: must not be negative$/)
  await refused({ min_bytes: '200' }, /^Error: min_bytes: want integer, have string$/)
  await refused({ minbytes: 200 }, /^Error: minbytes: unknown; there are keep, min_bytes$/)
})
