// The types of the SDK, for editors and TypeScript. Names and fields are those of condense.proto; bytes that the host sends are Buffers.

export type Text = string | Uint8Array
export type Role = 'system' | 'user' | 'assistant' | 'tool'
export type Ability = 'hides' | 'rewrites' | 'inserts' | 'asks_models' | 'keeps_words'

// Serves a strategy if the module meta (write import.meta) is the program that was started.
export function main<S extends Settings>(meta: { url: string }, strategy: Strategy<S>): void

export interface Strategy<S extends Settings = Settings> {
  name: string // lower-case letters, digits, underscores
  version: string
  doc: string
  abilities?: Ability[] // all that it does; without it, anything is allowed
  settings?: { [K in keyof S]: Setting<S[K]> }
  check?(settings: Readonly<S>): Problem[]
  condense(call: Call, settings: Readonly<S>): void | Promise<void>
  // Sets call.usage to the most that the call would cost in language models, and neither asks one nor edits.
  estimate?(call: Call, settings: Readonly<S>): void | Promise<void>
}

export type Settings = Record<string, any>

export interface Setting<T = any> {
  default: T
  doc?: string
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object'
  enum?: readonly T[]
  was?: readonly string[] // former names, which are read as well
}

export interface Problem { key: string; message: string }

// One request to a strategy. Messages that no edit names are unchanged.
export interface Call {
  messages: Message[] // oldest first
  start: Start
  signal: AbortSignal // the host has cancelled the call
  state: Text | null // of this conversation: it comes back in the next call
  usage?: Partial<Usage> // if the strategy called language models itself
  steps: Step[]

  hide(first: string, last?: string): void
  hideUnless(keep: (message: Message, index: number) => unknown): [first: string, last: string][]
  rewrite(id: string, parts: NewPart[]): void
  insert(message: { after?: string; role?: 'user' | 'assistant'; kind?: 'summary' | 'marker'; parts: PartToPut[] }): void
  edit(edit: Edit): void
  later(reason: string): void
  count(items: CountItem[]): Promise<number[]>
  generate(request: Generate): Promise<{ text: Buffer; usage: Usage | null; truncated: boolean }>
  hidden(...ids: string[]): Promise<Message[]>
  run(strategy: string, options?: { settings?: object; messages?: MessageRange[]; target?: number }): Promise<{ edit: Edit; tokens: number; usage: Usage | null }>
  embed(texts: Text[]): Promise<number[][]>
  file(path: Text): Promise<{ first: number; text: Buffer; unsure: boolean }[]>
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields?: Record<string, unknown>): void
  progress(fraction: number | undefined, text?: string): void
  step(step: Step): void
  pause(): Promise<void>
}

export interface Message {
  id: string
  role: Role
  kind: '' | 'summary' | 'marker'
  parts: Part[]
  time_ms?: number
  protected: boolean
  tokens: number
  labels: Record<string, string>
  number: number
  program: boolean
}

export type Part =
  | { kind: 'text'; text: Buffer }
  | { kind: 'tool_call'; tool_call: { id: string; name: string; args: Buffer } }
  | { kind: 'tool_result'; tool_result: { call_id: string; content: Part[]; is_error: boolean } }
  | { kind: 'image'; image: { media_type: string; data: Buffer; url: Buffer } }
  | { kind: 'reasoning'; reasoning: { text: Buffer; signature: Buffer; encrypted: Buffer } }
  | { kind: 'opaque'; opaque: { kind: string; json: Buffer } }

export type PartToPut =
  | Part
  | { text: Text }
  | { tool_call: { id: string; name: string; args: Text } }
  | { tool_result: { call_id: string; content: PartToPut[]; is_error?: boolean } }
  | { image: { media_type: string; data?: Text; url?: Text } }

export type NewPart = { keep: number } | { put: PartToPut } | { result: { part: number; content: NewPart[] } }

export interface Edit {
  hide?: MessageRange[]
  rewrite?: { id: string; parts: NewPart[] }[]
  insert?: { after?: string; role?: 'user' | 'assistant'; kind?: 'summary' | 'marker'; parts: PartToPut[] }[]
}

export interface MessageRange { first: string; last?: string }

export type CountItem = { messages: MessageRange } | { part: { message: string; part: number } } | { content: { parts: PartToPut[] } }

export interface Generate {
  model?: string // a name from the user's settings; empty for the host's choice
  system?: Text
  input: ({ messages: MessageRange } | { message: { role: 'user' | 'assistant' | 'tool'; parts: PartToPut[] } })[]
  max_output_tokens?: number
  tools?: Text
  cached?: boolean
  schema?: object
  temperature?: number
  effort?: 'low' | 'medium' | 'high'
}

export interface Usage {
  calls: number
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  usd: number
  unpriced: number
}

export interface Step {
  name: string
  note?: Text
  looked?: number
  changed?: number
  saved?: Record<string, number> // tokens, by kind of content
  tokens_before?: number
  tokens_after?: number
  ms?: number
}

export interface Price { input: number; output: number; cache_read: number; cache_write: number }

export interface Start {
  message_count: number
  budget: { window: number; reserve: number; overhead: number; limit: number; target: number }
  trigger: 'automatic' | 'manual' | 'overflow' | 'ingest'
  profile: string
  mode: string
  system: Buffer
  environment: Buffer
  files_read: Buffer[]
  instructions: Buffer
  log_level: string
  dir: Buffer
  tools: Buffer
  originals: Buffer
  models: { name: string; window: number; max_output: number; images: boolean; price: Price | null }[]
  no_recall: boolean
  api: string
  host: string
  model: string
  price: Price | null
  estimate: boolean
  conversation: string
  state: Buffer
  may_wait: boolean
  quota: { model_calls: number; usd: number } | null
  callbacks: string[]
  cached: { messages: number; until_ms: number } | null
}

export class InvalidRequest extends Error {} // the request is invalid, for any provider
export class Unavailable extends Error {} // cannot work at the moment
export class Unsupported extends Error {} // does not do this kind of work
export class HostError extends Error { code: string } // such as CODE_QUOTA
