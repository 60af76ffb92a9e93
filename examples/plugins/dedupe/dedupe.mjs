#!/usr/bin/env node
// dedupe removes duplicate tool results: where several are identical, byte for byte, one is kept
// and the others become references to it. No content is lost.
import { createHash } from 'node:crypto'

import { main } from './condense/index.mjs'

export const strategy = {
  name: 'dedupe',
  version: '0.1.0',
  doc:
    'Removes duplicate tool results. Of results that are identical, byte for byte, one is kept and the others ' +
    'are replaced by a line that says where the content is; no message is hidden.',
  settings: {
    keep: {
      default: 'newest',
      enum: ['newest', 'oldest'],
      doc: 'Which copy to keep. Truncation removes the oldest messages first, so the newest is safer.',
    },
    min_bytes: { default: 200, doc: 'Results smaller than this are not changed.' },
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

  // One request for all sizes, to skip what a reference would not make smaller.
  const sizes = await call.count(lines.flatMap(({ other, text }) => [
    { part: { message: other.message.id, part: other.part } },
    { content: { parts: [{ tool_result: { ...other.result, content: [{ text }] } }] } },
  ]))
  const rewrites = new Map() // by message: index of a part to the new text of its result
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

// copiesOf returns the results that occur more than once, in the order of the conversation: the
// one to keep, and the others that may be replaced.
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

// fingerprint returns the size of the content of a result, and a digest that is equal only for
// equal content: undefined if the content has a kind of a later version.
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
      hash.update(`${piece.length}:`).update(piece) // the length distinguishes ["a", "bc"] from ["ab", "c"]
      bytes += piece.length
    }
  }
  return { bytes, digest: hash.digest('latin1') }
}

// reference names the place of the content: the tool, its arguments, and the ID of the call.
function reference({ call, result, bytes }, keep) {
  const what = call ? `${call.name} ${clip(call.args.toString(), 120)}` : 'a tool'
  const where = keep === 'newest' ? 'below' : 'above'
  return `[The same ${bytes} bytes as the result ${where} of ${what}, call ${result.call_id}: see there.]`
}

const clip = (s, most) => (s.length > most ? `${s.slice(0, most)}…` : s)

main(import.meta, strategy)
