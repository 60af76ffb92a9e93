// The SDK for providers of condense that are modules of WebAssembly. It needs no package: the messages of condense.proto, of which
// plugin-sdk/wasm.md has the list, are read and written here by hand. Do not change this file.

@external("condense", "log")
declare function hostLog(level: i32, text: usize, size: usize): void;
@external("condense", "report")
declare function hostReport(step: usize, size: usize): void;
@external("condense", "generate")
declare function hostGenerate(request: usize, size: usize): u64;
@external("condense", "fail")
declare function hostFail(code: i32, text: usize, size: usize): void;

/** Memory that the host writes to. An instance lives for one call, so nothing needs to be freed. */
export function alloc(size: usize): usize {
  return heap.alloc(size);
}

/** Writes to the host's log: -4 debug, 0 info, 4 warn, 8 error. */
export function log(level: i32, text: string): void {
  const b = Bytes.of(text);
  hostLog(level, b.at, b.size);
}

/** Ends the call with an error; code is a status of gRPC: 14 cannot work at the moment, 12 does not do this, 9 declines, 13 a bug. */
export function fail(code: i32, text: string): void {
  const b = Bytes.of(text);
  hostFail(code, b.at, b.size);
}

/** What AssemblyScript calls when an assertion fails: see the build in package.json. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  fail(13, (message ? message : "abort") + " at " + (file ? file : "") + ":" + line.toString());
}

/** Adds a step to the report: its name, and the numbers of pieces that were examined and changed. */
export function report(step: string, looked: u64, changed: u64): void {
  const w = new Writer();
  w.text(1, step);
  w.number(2, looked);
  w.number(3, changed);
  hostReport(w.at, w.size);
}

/** Asks a language model of the host: a name from the user's settings, or empty. Null if it refused; the log says why. */
export function generate(model: string, system: string, prompt: string, maxTokens: u64): string | null {
  const part = new Writer();
  part.text(1, prompt);
  const message = new Writer();
  message.text(1, "user");
  message.message(2, part);
  const input = new Writer();
  input.message(2, message);
  const w = new Writer();
  w.text(1, model);
  w.text(2, system);
  w.message(3, input);
  w.number(4, maxTokens);
  const reply = hostGenerate(w.at, w.size);
  const r = new Reader(<usize>(reply >> 32), <usize>(reply & 0xffffffff));
  while (r.next()) {
    if (r.field == 3) return strings(r)[0].toString();
    if (r.field == 4) log(4, strings(r)[1].toString());
  }
  return null;
}

/** A piece of memory: a text of a conversation, nearly always UTF-8. */
export class Bytes {
  constructor(
    public at: usize = 0,
    public size: usize = 0,
  ) {}
  static of(text: string): Bytes {
    const b = String.UTF8.encode(text);
    return new Bytes(changetype<usize>(b), b.byteLength);
  }
  toString(): string {
    return String.UTF8.decodeUnsafe(this.at, this.size);
  }
}

/** A part of a message. Kind 1 is text, 2 a tool call, 3 a tool result; keep others or leave them out. */
export class Part {
  kind: u32 = 0;
  text: Bytes = new Bytes();
  id: Bytes = new Bytes(); // of a call, also in its result
  name: Bytes = new Bytes();
  args: Bytes = new Bytes();
  content: Part[] = [];
  isError: bool = false;

  static read(from: Reader): Part {
    const p = new Part();
    const r = from.inside();
    while (r.next()) {
      if (r.field > 6) continue;
      p.kind = r.field;
      if (r.field == 1) p.text = r.bytes();
      if (r.field == 2) {
        const s = strings(r);
        p.id = s[0];
        p.name = s[1];
        p.args = s[2];
      }
      if (r.field == 3) {
        const result = r.inside();
        while (result.next()) {
          if (result.field == 1) p.id = result.bytes();
          if (result.field == 2) p.content.push(Part.read(result));
          if (result.field == 3) p.isError = result.value != 0;
        }
      }
    }
    return p;
  }
}

export class Message {
  id: Bytes = new Bytes();
  role: string = "";
  kind: string = "";
  parts: Part[] = [];
  isProtected: bool = false;
  tokens: u64 = 0;
}

/** A conversation to shorten. Sizes are in tokens: the messages should have at most target - overhead. */
export class Call {
  messages: Message[] = [];
  window: u64 = 0;
  reserve: u64 = 0;
  overhead: u64 = 0;
  limit: u64 = 0;
  target: u64 = 0;
  noRecall: bool = false;
  private settings: Map<string, string> = new Map();

  /** The text of a setting, checked by the host. */
  text(name: string): string {
    return this.settings.has(name) ? this.settings.get(name) : "";
  }
  /** A setting that is a number. */
  int(name: string): i32 {
    return <i32>parseInt(this.text(name));
  }
  static read(at: usize, size: usize): Call {
    const c = new Call();
    const r = new Reader(at, size);
    while (r.next()) {
      if (r.field == 1) c.messages.push(c.message(r.inside()));
      if (r.field == 2) c.start(r.inside());
      if (r.field == 3) {
        const s = strings(r);
        c.settings.set(s[0].toString(), s[1].toString());
      }
    }
    return c;
  }
  private message(r: Reader): Message {
    const m = new Message();
    while (r.next()) {
      if (r.field == 1) m.id = r.bytes();
      if (r.field == 2) m.role = r.bytes().toString();
      if (r.field == 3) m.kind = r.bytes().toString();
      if (r.field == 4) m.parts.push(Part.read(r));
      if (r.field == 6) m.isProtected = r.value != 0;
      if (r.field == 7) m.tokens = r.value;
    }
    return m;
  }
  private start(r: Reader): void {
    while (r.next()) {
      if (r.field == 15) this.noRecall = r.value != 0;
      if (r.field != 2) continue;
      const b = r.inside();
      while (b.next()) {
        if (b.field == 1) this.window = b.value;
        if (b.field == 2) this.reserve = b.value;
        if (b.field == 3) this.overhead = b.value;
        if (b.field == 4) this.limit = b.value;
        if (b.field == 5) this.target = b.value;
      }
    }
  }
}

/** The parts of a rewritten message, or the content of a rewritten tool result. */
export class NewParts {
  constructor(public field: u32 = 2) {}
  encoded: Writer = new Writer();
  /** The original part with this index. */
  keep(index: u32): void {
    const w = new Writer();
    w.number(1, index);
    this.encoded.message(this.field, w);
  }
  /** The tool result with this index, with other content. */
  result(index: u32, content: NewParts): void {
    const edit = new Writer();
    edit.number(1, index);
    edit.append(content.encoded);
    const w = new Writer();
    w.message(2, edit);
    this.encoded.message(this.field, w);
  }
  text(text: string): void {
    const part = new Writer();
    part.text(1, text);
    const w = new Writer();
    w.message(3, part);
    this.encoded.message(this.field, w);
  }
}

/** The answer: what to change. Everything else stays. */
export class Edit {
  private encoded: Writer = new Writer();

  /** Hides the messages from first to last. Nothing is ever deleted. */
  hide(first: Bytes, last: Bytes): void {
    const w = new Writer();
    w.bytes(1, first);
    w.bytes(2, last);
    this.encoded.message(1, w);
  }
  /** Replaces the parts of a message. */
  rewrite(id: Bytes, parts: NewParts): void {
    const w = new Writer();
    w.bytes(1, id);
    w.append(parts.encoded);
    this.encoded.message(2, w);
  }
  /** Adds a message, of the kind summary or marker, after another or, if that is empty, at the front. */
  insert(after: Bytes, role: string, kind: string, text: string): void {
    const part = new Writer();
    part.text(1, text);
    const w = new Writer();
    w.bytes(1, after);
    w.text(2, role);
    w.text(3, kind);
    w.message(4, part);
    this.encoded.message(3, w);
  }
  give(): u64 {
    return this.encoded.give();
  }
}

/** Describes a provider. Abilities: hides, rewrites, inserts, asks_models, keeps_words; the host rejects an answer that does anything else. */
export class Strategy {
  private encoded: Writer = new Writer();

  constructor(name: string, version: string, doc: string) {
    this.encoded.text(1, name);
    this.encoded.text(2, version);
    this.encoded.text(3, doc);
  }
  /** Type and default of a setting are those of JSON. */
  setting(name: string, type: string, defaultJSON: string, doc: string): Strategy {
    const w = new Writer();
    w.text(1, name);
    w.text(2, type);
    w.text(3, defaultJSON);
    w.text(4, doc);
    this.encoded.message(4, w);
    return this;
  }
  can(ability: string): Strategy {
    this.encoded.text(6, ability);
    return this;
  }
  give(): u64 {
    return this.encoded.give();
  }
}

/** Reads fields of protobuf. */
class Reader {
  field: u32 = 0;
  value: u64 = 0;
  private from: usize = 0;
  private end: usize;

  constructor(
    private at: usize,
    size: usize,
  ) {
    this.end = at + size;
  }
  next(): bool {
    if (this.at >= this.end) return false;
    const tag = this.varint();
    this.field = <u32>(tag >> 3);
    const type = <u32>(tag & 7);
    if (type == 0) {
      this.value = this.varint();
      return true;
    }
    assert(type == 1 || type == 2 || type == 5, "the call cannot be decoded");
    const size: u64 = type == 1 ? 8 : type == 5 ? 4 : this.varint();
    assert(size <= <u64>(this.end - this.at), "the call cannot be decoded");
    this.from = this.at;
    this.at += <usize>size;
    return true;
  }
  bytes(): Bytes {
    return new Bytes(this.from, this.at - this.from);
  }
  inside(): Reader {
    return new Reader(this.from, this.at - this.from);
  }
  private varint(): u64 {
    let v: u64 = 0;
    for (let shift: u64 = 0; shift < 70 && this.at < this.end; shift += 7) {
      const b = load<u8>(this.at++);
      v |= (<u64>(b & 127)) << shift;
      if (b < 128) return v;
    }
    assert(false, "the call cannot be decoded");
    return 0;
  }
}

/** The fields 1, 2 and 3. */
function strings(from: Reader): Bytes[] {
  const s = [new Bytes(), new Bytes(), new Bytes()];
  const r = from.inside();
  while (r.next()) {
    if (r.field >= 1 && r.field <= 3) s[r.field - 1] = r.bytes();
  }
  return s;
}

/** Writes fields of protobuf. */
class Writer {
  at: usize = heap.alloc(64);
  size: usize = 0;
  private room: usize = 64;

  number(field: u32, value: u64): void {
    this.varint(field << 3);
    this.varint(value);
  }
  text(field: u32, text: string): void {
    this.bytes(field, Bytes.of(text));
  }
  message(field: u32, message: Writer): void {
    this.bytes(field, new Bytes(message.at, message.size));
  }
  bytes(field: u32, b: Bytes): void {
    this.varint((field << 3) | 2);
    this.varint(b.size);
    this.raw(b.at, b.size);
  }
  append(other: Writer): void {
    this.raw(other.at, other.size);
  }
  give(): u64 {
    return ((<u64>this.at) << 32) | this.size;
  }
  private varint(value: u64): void {
    this.grow(10);
    while (value >= 128) {
      store<u8>(this.at + this.size++, <u8>value | 128);
      value >>= 7;
    }
    store<u8>(this.at + this.size++, <u8>value);
  }
  private raw(at: usize, size: usize): void {
    this.grow(size);
    memory.copy(this.at + this.size, at, size);
    this.size += size;
  }
  private grow(more: usize): void {
    if (this.size + more <= this.room) return;
    this.room = max<usize>(2 * this.room, this.size + more);
    const to = heap.alloc(this.room);
    memory.copy(to, this.at, this.size);
    this.at = to;
  }
}
