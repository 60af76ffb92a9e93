// A plugin in TypeScript, with what the types refuse.
import { HostError, main, type Call, type Strategy } from './condense/index.mjs'
import { rehearse } from './condense/testing.mjs'

type Config = { recent: number; style: string }

export const strategy: Strategy<Config> = {
  name: 'typed',
  version: '0.1.0',
  doc: 'Is checked.',
  abilities: ['hides', 'inserts', 'asks_models'],
  settings: { recent: { default: 4, was: ['last'] }, style: { default: 'short', enum: ['short', 'long'] } },
  check: ({ recent }) => (recent < 0 ? [{ key: 'recent', message: 'must not be negative' }] : []),
  condense,
}

async function condense(call: Call, { recent }: Readonly<Config>): Promise<void> {
  call.hideUnless((m, i) => i >= call.messages.length - recent || m.role === 'user')
  for (const m of call.messages) {
    await call.pause()
    for (const [i, p] of m.parts.entries()) {
      if (p.kind === 'tool_result' && !p.tool_result.is_error) {
        call.rewrite(m.id, [{ result: { part: i, content: [{ keep: 0 }, { put: { text: 'cut' } }] } }])
      }
      if (p.kind === 'text') call.log('debug', p.text.toString('utf8'))
      // @ts-expect-error a part has one kind
      if (p.kind === 'text') p.tool_call.id
    }
  }
  const [size] = await call.count([{ content: { parts: [{ text: 'Hello.' }] } }])
  if (call.start.budget.target > size) call.state = 'seen'
  try {
    const answer = await call.generate({ input: [{ messages: { first: call.messages[0].id } }], max_output_tokens: 200 })
    call.insert({ kind: 'summary', parts: [{ text: answer.text }] })
  } catch (err) {
    if (!(err instanceof HostError) || err.code !== 'CODE_UNAVAILABLE') throw err
  }
  const { edit } = await call.run('smart', { settings: { preset: 'lossless' }, target: call.start.budget.target })
  call.edit(edit)
  const [vector] = await call.embed(['a', ...(await call.hidden()).map((m) => m.id)])
  if (call.start.may_wait && vector.length === 0) call.later('a task is half done')
  call.step({ name: 'hide', changed: 1, saved: { tool_result: 10 } })
  // @ts-expect-error there is no such method
  call.hid('m1')
  // @ts-expect-error a kind of message
  call.insert({ kind: 'note', parts: [] })
}

// @ts-expect-error no function condense
const none: Strategy = { name: 'none', version: '1', doc: 'Nothing.' }

// @ts-expect-error no such ability
const able: Strategy = { ...strategy, abilities: ['flies'] }

export async function rehearsed(): Promise<string> {
  const { messages, logs } = await rehearse(strategy, [{ role: 'user', parts: [{ text: 'Hello.' }] }], { settings: { recent: 1 }, generate: () => 'A summary.' })
  return messages[0].id + logs.length + none + able
}

main(import.meta, strategy)
