// Settings: their description by a strategy, and the values of a user.

const ABILITIES = ['hides', 'rewrites', 'inserts', 'asks_models', 'keeps_words']

// describe returns the description of strategy for the host. It throws if strategy is invalid.
export function describe(strategy) {
  if (!/^[a-z][a-z0-9_]*$/.test(strategy.name ?? '')) {
    throw new TypeError(`name ${JSON.stringify(strategy.name)}: want lower-case letters, digits and underscores, beginning with a letter`)
  }
  for (const key of ['version', 'doc']) {
    if (typeof strategy[key] !== 'string' || strategy[key] === '') throw new TypeError(`${strategy.name} has no ${key}`)
  }
  if (typeof strategy.condense !== 'function') throw new TypeError(`${strategy.name} has no function condense`)
  const abilities = strategy.abilities ?? []
  for (const a of abilities) {
    if (!ABILITIES.includes(a)) throw new TypeError(`${strategy.name} declares the ability ${JSON.stringify(a)}; there are ${ABILITIES.join(', ')}`)
  }
  const settings = Object.entries(strategy.settings ?? {}).map(([name, s]) => {
    if (s.default === undefined) throw new TypeError(`setting ${name} has no default`)
    return {
      name,
      type: s.type ?? typeName(s.default),
      default: JSON.stringify(s.default),
      doc: s.doc ?? '',
      enum: s.enum ?? [],
      was: s.was ?? [], // former names, which are read as well
    }
  })
  return { name: strategy.name, version: strategy.version, doc: strategy.doc, abilities, settings }
}

// configure applies json (empty for none) to the defaults of strategy and returns the settings and
// the problems for the user: a list of { key, message }.
export function configure(strategy, json) {
  let given
  try {
    given = json.trim() === '' ? {} : JSON.parse(json)
  } catch (err) {
    return { problems: [{ key: '', message: `not JSON: ${err.message}` }] }
  }
  if (typeName(given) !== 'object') return { problems: [{ key: '', message: 'not a JSON object' }] }
  const known = new Map(describe(strategy).settings.map((s) => [s.name, s]))
  const former = new Map([...known.values()].flatMap((s) => s.was.map((was) => [was, s.name])))
  const settings = Object.fromEntries(Array.from(known.values(), (s) => [s.name, JSON.parse(s.default)]))
  const problems = []
  for (const [key, value] of Object.entries(given)) {
    const s = known.get(former.get(key) ?? key)
    const type = typeName(value)
    if (former.has(key) && Object.hasOwn(given, s.name)) {
      problems.push({ key, message: `is the former name of ${s.name}, which is set as well` })
    } else if (!s) {
      problems.push({ key, message: `unknown; there are ${[...known.keys()].join(', ') || 'no settings'}` })
    } else if (type !== s.type && !(s.type === 'number' && type === 'integer')) {
      problems.push({ key, message: `want ${s.type}, have ${type}` })
    } else if (s.enum.length > 0 && !s.enum.includes(value)) {
      problems.push({ key, message: `${JSON.stringify(value)} is none of ${s.enum.join(', ')}` })
    } else {
      settings[s.name] = value
    }
  }
  if (problems.length === 0 && strategy.check) problems.push(...strategy.check(settings))
  return { settings: Object.freeze(settings), problems }
}

// typeName returns the type of a JSON value by its name in JSON Schema.
function typeName(v) {
  if (v === null) return 'null'
  if (Array.isArray(v)) return 'array'
  if (Number.isInteger(v)) return 'integer'
  return typeof v // string, number, boolean, object
}
