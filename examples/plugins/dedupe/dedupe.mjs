#!/usr/bin/env node
// dedupe says once what tools said twice: where several results of tools are the same, byte
// for byte, one stays and the others say where it is. Nothing is lost by it.
import { createHash } from 'node:crypto'

import { main } from './condense/index.mjs'

export const strategy = {
  name: 'dedupe',
  version: '0.1.0',
  doc:
    'Says once what tools said twice. Of tool results that are the same, byte for byte, one stays and the others ' +
    'are replaced by a line that says where the content is; no message is hidden.',
  settings: {
    keep: {
      default: 'newest',
      enum: ['newest', 'oldest'],
      doc: 'Which copy stays. Whatever truncates later takes the oldest first, so the newest is safer.',
    },
    min_bytes: { default: 200, doc: 'Results smaller than this stay as they are.' },
  },
  check: ({ min_bytes: min }) => (min < 0 ? [{ key: 'min_bytes', message: 'must not be negative' }] : []),
  condense,
}

async function condense(call, settings) {
  const copies = await copiesOf(call, settings)
  const lines = []
  for (const { kept, others } of copies) {
    for (const other of others) lines.push({ other, text: reference(kept, settings.keep) })
  }

  // One question for all sizes, to leave alone what a reference would not make smaller.
  const sizes = await call.count(lines.flatMap(({ other, text }) => [
    { part: { message: other.message.id, part: other.part } },
    { content: { parts: [{ tool_result: { ...other.result, content: [{ text }] } }] } },
  ]))
  const rewrites = new Map() // by message: index of a part to what its result says now
  let saved = 0
  let replaced = 0
  lines.forEach(({ other, text }, i) => {
    const gain = sizes[2 * i] - sizes[2 * i + 1]
    if (gain <= 0) return
    if (!rewrites.has(other.message)) rewrites.set(other.message, new Map())
    rewrites.get(other.message).set(other.part, text)
    saved += gain
    replaced++
  })
  for (const [message, texts] of rewrites) {
    call.rewrite(message.id, message.parts.map((_, i) => {
      if (!texts.has(i)) return { keep: i }
      return { result: { part: i, content: [{ put: { text: texts.get(i) } }] } }
    }))
  }
  call.step({ name: 'duplicates', looked: lines.length, changed: replaced, saved: { tool_result: saved } })
}

// copiesOf returns the results that are there more than once, in the order of the
// conversation: the one to keep, and the others that may be replaced.
async function copiesOf(call, { keep, min_bytes: min }) {
  const byContent = new Map()
  const calls = new Map() // the latest call of an ID: some agents use IDs again
  for (const [at, message] of call.messages.entries()) {
    if (at % 100 === 0) await call.pause()
    for (const [part, p] of message.parts.entries()) {
      if (p.kind === 'tool_call') calls.set(p.tool_call.id, p.tool_call)
      if (p.kind !== 'tool_result') continue
      const result = p.tool_result
      const { bytes, digest } = fingerprint(result)
      if (digest === undefined || bytes < min) continue
      if (!byContent.has(digest)) byContent.set(digest, [])
      byContent.get(digest).push({ message, part, result, bytes, call: calls.get(result.call_id) })
    }
  }
  return Array.from(byContent.values(), (all) => {
    const kept = all.at(keep === 'newest' ? -1 : 0)
    return { kept, others: all.filter((c) => c !== kept && !c.message.protected) }
  })
}

// fingerprint returns how large the content of a result is, and a digest that two results
// share only if they say the same: none if the content is of a kind that came later.
function fingerprint(result) {
  const hash = createHash('sha256').update(String(result.is_error))
  let bytes = 0
  for (const p of result.content) {
    const pieces = {
      text: () => [p.text],
      image: () => [p.image.media_type, p.image.data, p.image.url],
      opaque: () => [p.opaque.kind, p.opaque.json],
    }[p.kind]?.()
    if (!pieces) return { bytes: 0, digest: undefined }
    hash.update(p.kind)
    for (const piece of pieces) {
      hash.update(`${piece.length}:`).update(piece) // the length keeps ["a", "bc"] apart from ["ab", "c"]
      bytes += piece.length
    }
  }
  return { bytes, digest: hash.digest('latin1') }
}

// reference says where the content is: which tool was called how, and with which ID.
function reference({ call, result, bytes }, keep) {
  const what = call ? `${call.name} ${clip(call.args.toString(), 120)}` : 'a tool'
  const where = keep === 'newest' ? 'below' : 'above'
  return `[The same ${bytes} bytes as the result ${where} of ${what}, call ${result.call_id}: see there.]`
}

const clip = (s, most) => (s.length > most ? `${s.slice(0, most)}…` : s)

main(import.meta, strategy)
