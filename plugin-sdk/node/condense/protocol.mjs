// Encoding and decoding of the protocol, including fragments.
import { fileURLToPath } from 'node:url'

import { loadSync } from '@grpc/proto-loader'

const definition = loadSync(fileURLToPath(new URL('condense.proto', import.meta.url)), {
  keepCase: true, // names as condense.proto has them
  defaults: true,
  oneofs: true, // the kind of a part is in part.kind
  longs: Number,
  enums: String,
})

export const service = definition['condense.v1.ProviderService']

const { Condense } = service
export const encodeRequest = Condense.requestSerialize
export const decodeResponse = Condense.responseDeserialize

// Larger messages are sent in fragments; gRPC rejects 4 MiB and more.
const MAX_ENVELOPE = 3 << 20
const FRAGMENT = 1 << 20

// encode returns a CondenseResponse as the buffers to send: one, or its fragments.
export function encode(response) {
  const data = Condense.responseSerialize(response)
  if (data.length <= MAX_ENVELOPE) return [data]
  const out = []
  for (let i = 0; i < data.length; i += FRAGMENT) {
    const piece = data.subarray(i, i + FRAGMENT)
    out.push(Condense.responseSerialize({ fragment: { data: piece, last: i + FRAGMENT >= data.length } }))
  }
  return out
}

// decoder returns a function that decodes the CondenseRequests of one call in order; it returns
// undefined while fragments are missing.
export function decoder() {
  let pieces = []
  return (data) => {
    const request = decode(data)
    if (request.kind !== 'fragment') return request
    pieces.push(request.fragment.data)
    if (!request.fragment.last) return undefined
    const whole = Buffer.concat(pieces)
    pieces = []
    return decode(whole)
  }
}

// decode decodes a run of messages by hand, into what the loader returns, which makes every object
// twice. Other requests, and runs with something rare, are left to the loader.
function decode(data) {
  at = 1
  if (data[0] === 0x12 && length(data) === data.length) {
    const messages = []
    while (at < data.length) messages.push(data[at++] === 0x0a ? message(data, length(data)) : rare())
    if (at === data.length) return { messages: { messages }, kind: 'messages' }
  }
  return Condense.requestDeserialize(data)
}

let at = 0 // index of the next byte to decode; NaN after something rare
const rare = () => { at = NaN }

function number(data) {
  let n = 0
  for (let scale = 1; scale < 2 ** 49; scale *= 0x80) {
    const b = data[at++]
    n += (b & 0x7f) * scale
    if (b < 0x80) return n
  }
  return rare()
}

// length returns the index after a field that begins with its length.
function length(data) {
  const n = number(data)
  return at + n
}

function string(data) {
  const end = length(data)
  const from = at
  at = end
  return data.utf8Slice(from, end)
}

function buffer(data) {
  const end = length(data)
  const from = at
  at = end
  return data.subarray(from, end)
}

function message(data, end) {
  const m = { parts: [], labels: {}, id: '', role: '', kind: '', protected: false, tokens: 0, number: 0, program: false }
  while (at < end) {
    switch (data[at++]) {
      case 0x0a: m.id = string(data); break
      case 0x12: m.role = string(data); break
      case 0x1a: m.kind = string(data); break
      case 0x22: m.parts.push(content(data, length(data))); break
      case 0x28: m.time_ms = number(data); m._time_ms = 'time_ms'; break
      case 0x30: m.protected = number(data) !== 0; break
      case 0x38: m.tokens = number(data); break
      case 0x40: m.number = number(data); break
      case 0x48: m.program = number(data) !== 0; break
      default: rare()
    }
  }
  if (at !== end) rare()
  return m
}

// content decodes a part that is a text, a call or a result.
function content(data, end) {
  let p
  const tag = data[at++]
  if (tag === 0x0a) p = { text: buffer(data), kind: 'text' }
  else if (tag !== 0x12 && tag !== 0x1a || length(data) !== end) rare()
  else p = tag === 0x12 ? { tool_call: call(data, end), kind: 'tool_call' } : { tool_result: result(data, end), kind: 'tool_result' }
  if (at !== end) rare()
  return p
}

function call(data, end) {
  const c = { id: '', name: '', args: NONE }
  while (at < end) {
    switch (data[at++]) {
      case 0x0a: c.id = string(data); break
      case 0x12: c.name = string(data); break
      case 0x1a: c.args = buffer(data); break
      default: rare()
    }
  }
  return c
}

function result(data, end) {
  const r = { content: [], call_id: '', is_error: false }
  while (at < end) {
    switch (data[at++]) {
      case 0x0a: r.call_id = string(data); break
      case 0x12: r.content.push(content(data, length(data))); break
      case 0x18: r.is_error = number(data) !== 0; break
      default: rare()
    }
  }
  return r
}

const NONE = Buffer.alloc(0)

const KINDS = ['text', 'tool_call', 'tool_result', 'image', 'reasoning', 'opaque']
const BYTES = { tool_call: ['args'], image: ['data', 'url'], reasoning: ['text', 'signature', 'encrypted'], opaque: ['json'] }

// part returns p in the form of the encoder. Strings in place of bytes become UTF-8: the encoder
// itself would decode them as base64.
export function part(p) {
  const kind = KINDS.filter((k) => p?.[k] !== undefined && p[k] !== null)
  if (kind.length !== 1) throw new TypeError(`a part has one of ${KINDS.join(', ')}; this one has ${Object.keys(p ?? {}).join(', ') || 'nothing'}`)
  const [k] = kind
  const value = p[k]
  if (k === 'text') return { text: bytes(value) }
  if (k === 'tool_result') return { tool_result: { ...value, content: value.content.map(part) } }
  const fields = BYTES[k].filter((f) => value[f] !== undefined).map((f) => [f, bytes(value[f])])
  return { [k]: { ...value, ...Object.fromEntries(fields) } }
}

// newPart returns p, a part of a rewritten message, in the form of the encoder.
export function newPart(p) {
  if (Number.isInteger(p?.keep)) return { keep: p.keep }
  if (p?.put) return { put: part(p.put) }
  if (p?.result) return { result: { part: p.result.part, content: p.result.content.map(newPart) } }
  throw new TypeError('a new part is { keep: index }, { put: part } or { result: { part: index, content: [new parts] } }')
}

// MAX_ENTRIES is the number of list entries and messages in one message on the stream. A host
// rejects 131,072, because each needs memory.
export const MAX_ENTRIES = 1 << 15

// entries returns the number of list entries and messages in the encoding of v.
export function entries(v) {
  if (typeof v !== 'object' || v === null || Buffer.isBuffer(v)) return 0
  return Object.values(v).reduce((n, x) => n + (typeof x === 'object' ? 1 : 0) + entries(x), 0)
}

// bytes returns v, a string or a buffer, as a buffer.
export function bytes(v) {
  return typeof v === 'string' ? Buffer.from(v) : v
}
