// Writes the model table to standard output: windows and prices from @pydantic/genai-prices
// (MIT, Pydantic Services Inc.); largest answers, and windows that are missing there, from
// tokenlens (MIT, the data of models.dev) where it knows the same model by the same name.
// Match rules are reduced to data, see match.go for their meaning.
import { readFileSync } from 'node:fs'
import { findProvider } from '@pydantic/genai-prices'
import { defaultCatalog } from 'tokenlens'

const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version

// Day the prices are taken for: conditional prices that begin later are left out.
const asOf = process.env.AS_OF ?? '2026-11-20'

// Providers of the first source, each with its name in the second one.
const providers = {
  anthropic: 'anthropic', openai: 'openai', google: 'google', 'x-ai': 'xai', deepseek: 'deepseek',
  mistral: 'mistral', moonshotai: 'moonshotai', minimax: '', cohere: 'cohere', groq: 'groq',
  cerebras: 'cerebras', perplexity: 'perplexity', aws: 'amazon-bedrock', azure: 'azure',
  fireworks: 'fireworks-ai', together: 'togetherai', novita: '', ovhcloud: '', openrouter: 'openrouter', avian: '',
}

// Windows and largest answers that neither source has, from the vendors' documentation.
const documented = {
  // https://ai.google.dev/gemini-api/docs/models/gemini-3-pro-preview and …/gemini-3.1-pro-preview
  'google/gemini-3-pro-preview': { context: 1048576, output: 65536 },
  'google/gemini-3.1-pro-preview': { context: 1048576, output: 65536 },
}

// Names that the first source still gives to an older model. Mistral retired its Large models
// before 2512 on 2026-05-31; that one has 256k, see https://docs.mistral.ai/models/mistral-large-3-25-12
const moved = { 'mistral/mistral-large-latest': 'mistral-large-2512' }

const dated = [/^\^(.*)-\\d\{8\}\$$/, /^\^(.*)-\\d\{4\}-\\d\{2\}-\\d\{2\}\$$/]
const unescape = (s) => s.replace(/\\([.\-/])/g, '$1')
const left = new Set()

// rules turns a match expression into strings: "=x" equal, "^x" prefix, "*x" contained,
// "$x" suffix, "~x" equal but for a date at the end. What cannot be said so is dropped; the
// model's own id always matches.
function rules(m) {
  const [[op, v]] = Object.entries(m)
  switch (op) {
    case 'or': return v.flatMap(rules)
    case 'equals': return ['=' + v]
    case 'starts_with': return ['^' + v]
    case 'ends_with': return ['$' + v]
    case 'contains': return ['*' + v]
    case 'regex':
      for (const re of dated) {
        const hit = re.exec(v)
        if (hit && !/[\\()[\]|?*+{}^$]/.test(unescape(hit[1]))) return ['~' + unescape(hit[1])]
      }
  }
  left.add(JSON.stringify(m))
  return []
}

const first = (v) => (v === undefined ? 0 : typeof v === 'number' ? v : v.base)

// price returns [input, output, cache read, cache write] in USD per million tokens, and the
// same above each tier's start.
function price(prices) {
  if (Array.isArray(prices)) {
    const now = prices.filter((p) => !p.constraint || (p.constraint.start_date ?? '9999') <= asOf)
    prices = (now.at(-1) ?? prices[0]).prices
  }
  const keys = ['input_mtok', 'output_mtok', 'cache_read_mtok', 'cache_write_mtok']
  const base = keys.map((k) => first(prices[k]))
  const starts = [...new Set(keys.flatMap((k) => (prices[k]?.tiers ?? []).map((t) => t.start)))].sort((a, b) => a - b)
  const tiers = starts.map((s) => [
    s,
    ...keys.map((k) => (prices[k]?.tiers ?? []).filter((t) => t.start <= s).at(-1)?.price ?? first(prices[k])),
  ])
  return base.some(Boolean) ? { base, tiers } : undefined
}

const lines = []
for (const [id, theirs] of Object.entries(providers)) {
  const p = findProvider({ providerId: id })
  if (!p) throw new Error(`no provider ${id}`)
  const limits = defaultCatalog[theirs]?.models ?? {}
  const models = []
  for (const m of p.models) {
    const cost = price(m.prices)
    if (!m.context_window && !cost) continue
    const row = { id: m.id }
    const gone = (r) => r[0] === '=' && moved[`${id}/${r.slice(1)}`]
    const match = [...new Set(rules(m.match))].filter((r) => r !== '=' + m.id && !gone(r))
    const names = [m.id, ...match.filter((r) => r[0] === '=').map((r) => r.slice(1))]
    for (const [name, to] of Object.entries(moved)) {
      const [provider, alias] = name.split('/')
      if (provider === id && to === m.id) match.push('=' + alias)
    }
    const known = [documented[`${id}/${m.id}`], ...names.map((n) => limits[n]?.limit)].filter(Boolean)
    const window = m.context_window ?? known.map((l) => l.context).find(Boolean)
    if (window) row.window = window
    const output = known.map((l) => l.output).find(Boolean)
    if (output && output < (window ?? 0)) row.output = output
    if (match.length) row.match = match
    if (cost) {
      row.price = cost.base
      if (cost.tiers.length) row.tiers = cost.tiers
    }
    models.push('   ' + JSON.stringify(row))
  }
  lines.push(`  ${JSON.stringify(id)}: [\n${models.join(',\n')}\n  ]`)
}
process.stdout.write(`{
 "source": "@pydantic/genai-prices ${version('@pydantic/genai-prices')} (MIT); largest answers and missing windows: tokenlens ${version('tokenlens')} (MIT, data of models.dev)",
 "as_of": "${asOf}",
 "providers": {
${lines.join(',\n')}
 }
}
`)
for (const m of left) process.stderr.write(`not expressible, dropped: ${m}\n`)
