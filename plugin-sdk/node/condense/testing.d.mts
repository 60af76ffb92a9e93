import type { Generate, Message, PartToPut, Role, Start, Step, Strategy, Text, Usage } from './index.mjs'

export interface Rehearsed {
  messages: Message[] // after the edits
  logs: { level: string; message: string; [field: string]: string }[]
  progress: { fraction?: number; text: string }[]
  usage?: Usage
  steps: Step[]
  state?: Buffer
  later?: string
}

// Runs a strategy on messages without a host. It does not check the rules: "condense plugin test" does.
export function rehearse(
  strategy: Strategy<any>,
  messages: (Omit<Partial<Message>, 'role' | 'parts'> & { role: Role; parts: PartToPut[] })[],
  options?: {
    settings?: object
    start?: { [K in keyof Start]?: Start[K] extends Buffer ? Text : Start[K] extends Buffer[] ? Text[] : Start[K] }
    signal?: AbortSignal
    generate?: (request: Generate) => Text | Promise<Text>
    answers?: Record<string, (request: any) => any>
  },
): Promise<Rehearsed>
