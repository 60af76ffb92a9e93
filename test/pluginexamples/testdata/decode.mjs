// decode compares the SDK's own decoder with the loader's, on many runs of messages, rare ones and damaged ones too.
import assert from 'node:assert'

import { decoder, encodeRequest, service } from './condense/protocol.mjs'

const loader = service.Condense.requestDeserialize
let seed = 1
const below = (n) => { seed = (seed * 48271) % 2147483647; return seed % n }
const pick = (...all) => all[below(all.length)]
const some = (f) => Array.from({ length: below(4) }, f)
const bytes = () => Buffer.from(pick('', 'x', 'é'.repeat(100), 'a'.repeat(20000)))
const content = () => pick({ text: bytes() }, { text: bytes() }, { text: bytes() }, pick({}, { image: { data: bytes() } }, { opaque: { kind: 'x', json: bytes() } }, { reasoning: { text: bytes() } }))
const part = () => pick(content(), { tool_call: { id: pick('', 'c'), name: pick('', 'n'), args: bytes() } }, { tool_result: { call_id: pick('', 'c'), content: some(content), is_error: pick(true, false) } })
const message = () => ({
  id: pick('', 'm1', 'ü'), role: pick('', 'user'), kind: pick('', 'summary'), parts: some(part), ...pick({}, { time_ms: pick(0, 5, 1764412345678, -5) }),
  protected: pick(true, false), tokens: pick(0, 7, 1e6), number: pick(0, 9, 2000), program: pick(true, false), labels: pick({}, {}, {}, { kept: 'x' }),
})

let valid = 0
for (let i = 0; i < 5000; i++) {
  const data = encodeRequest({ messages: { messages: some(message) } })
  assert.deepStrictEqual(decoder()(data), loader(data))
  data[below(Math.min(data.length, 60))] = below(256)
  let got
  try {
    got = decoder()(data)
  } catch {
    continue // the call fails
  }
  valid++
  if (got?.kind === 'messages') assert.deepStrictEqual(got, loader(data))
}
console.log(valid > 100 ? 'equal' : `only ${valid} damaged ones were valid`)
