import { a } from './a'
export type Pair<T extends { a: number } = { a: 1 }> = {
  left: T
}
type Union =
  | 'a'
  | 'b'
export interface User<T = {}> extends Base<{ x: 1 }> {
  id: number
  find(id: number): Promise<User | undefined>
  get name(): string
  on: (x: number) => void
}
export function over(a: string): void
export function over(a: number): { b: number }
export function over(a: any): { b: number } | undefined {
  const inner = () => { function no() {} }
  return /[}"]\/`/.test(`${a ? `}` : "{"}`) ? { b: 1 } : undefined
}
export abstract class Service<T> extends mixin(Base, { a() {} })<T> implements A, B<{ c: 1 }> {
  static { init() }
  private readonly users: Map<string, { id: number }> = new Map()
  handler = async (e: Event): Promise<void> => {
    go(e)
  }
  #secret = 1
  constructor(private a: number, { b }: { b: number }) {
    super()
  }
  abstract load(): void
  get size(): number { return 1 }
  static async *[Symbol.iterator]<T>(): AsyncGenerator<{ a: T }> {
    yield 1
  }
  get(): void {}
  @dec({ a: "}" }) private async find(id: number): Promise<User | undefined> {
    return undefined
  }
}
declare module 'x' {
  namespace Inner.Deep {
    const enum Kind { A, B }
  }
}
export const arrow = <T,>(x: number): x is 1 => {
  return true
}, second = function () {}
const api = {
  get: (url: string) => url,
  nested: { async post(url: string) { return url } },
  'quoted-name': function () {},
}
let plain = 1
export default class extends Service<number> {}
