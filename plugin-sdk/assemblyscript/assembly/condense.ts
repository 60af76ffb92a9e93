// The SDK for providers of condense that are modules of WebAssembly. It needs no package: the messages of condense.proto, of which
// plugin-sdk/wasm.md has the list, are read and written here by hand. Do not change this file.

@external("condense", "log")
declare function hostLog(level: i32, text: usize, size: usize): void;
@external("condense", "report")
declare function hostReport(step: usize, size: usize): void;
@external("condense", "progress")
declare function hostProgress(fraction: f64, text: usize, size: usize): void;
@external("condense", "generate")
declare function hostGenerate(request: usize, size: usize): u64;
@external("condense", "count")
declare function hostCount(request: usize, size: usize): u64;
@external("condense", "clock")
declare function hostClock(): i64;
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

/** Tells the user how far it is: 0 to 1, negative if unknown. */
export function progress(fraction: f64, text: string): void {
  const b = Bytes.of(text);
  hostProgress(fraction, b.at, b.size);
}

/** The time in milliseconds since 1970. A module that uses it asks for a clock, which users see before they approve it. */
export function now(): i64 {
  return hostClock();
}

/** Asks a language model of the host: a name from the user's settings, or empty. Null if it refused; the log says why. */
export function generate(model: string, system: string, prompt: string, maxTokens: u64): string | null {
  const p = new Prompt(prompt);
  p.model = model;
  p.system = system;
  p.maxTokens = maxTokens;
  const call = new Call();
  const answer = call.generate(p);
  if (!answer) log(4, call.refusal);
  return answer ? answer.text : null;
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
  timeMs: i64 = 0; // since 1970; 0 if unknown
  isProtected: bool = false;
  tokens: u64 = 0;
  number: i64 = 0; // its place in the conversation as recorded, from 1; 0 if unknown
  program: bool = false; // the agent's program wrote it: the user typed nothing of it
  labels: Map<string, string> = new Map(); // what is known about it: kept is why it must stay

  static read(r: Reader): Message {
    const m = new Message();
    while (r.next()) {
      if (r.field == 1) m.id = r.bytes();
      if (r.field == 2) m.role = r.bytes().toString();
      if (r.field == 3) m.kind = r.bytes().toString();
      if (r.field == 4) m.parts.push(Part.read(r));
      if (r.field == 5) m.timeMs = <i64>r.value;
      if (r.field == 6) m.isProtected = r.value != 0;
      if (r.field == 7) m.tokens = r.value;
      if (r.field == 8) m.number = <i64>r.value;
      if (r.field == 9) m.program = r.value != 0;
      if (r.field == 10) {
        const s = strings(r);
        m.labels.set(s[0].toString(), s[1].toString());
      }
    }
    return m;
  }
}

/** Messages of the conversation, from first to last. */
export class Range {
  constructor(
    public first: Bytes,
    public last: Bytes = new Bytes(),
  ) {}
  encode(): Writer {
    const w = new Writer();
    w.bytes(1, this.first);
    w.bytes(2, this.last);
    return w;
  }
}

/** A question to a language model of the host. */
export class Prompt {
  model: string = ""; // a name from the user's settings, or empty
  system: string = "";
  messages: Range[] = []; // of the conversation, which the model reads first
  maxTokens: u64 = 0;
  tools: Bytes = new Bytes(); // the definitions of tools that the messages call, as in Call.tools
  cached: bool = false; // all but the last message was sent to this model before
  schema: string = ""; // a JSON schema that the answer must match; empty for text
  temperature: f64 = NaN; // for the model's own
  effort: string = ""; // of reasoning: low, medium, high; empty for the host's choice

  /** Text is the last message, of the user; it may be empty. */
  constructor(public text: string) {}
  encode(): Writer {
    const w = new Writer();
    w.text(1, this.model);
    w.text(2, this.system);
    for (let i = 0; i < this.messages.length; i++) w.message(3, holding(1, this.messages[i].encode()));
    if (this.text != "") {
      const message = new Writer();
      message.text(1, "user");
      message.message(2, textPart(this.text));
      w.message(3, holding(2, message));
    }
    w.number(4, this.maxTokens);
    w.bytes(5, this.tools);
    w.number(6, this.cached ? 1 : 0);
    w.text(7, this.schema);
    if (this.temperature == this.temperature) w.float(8, this.temperature);
    w.text(9, this.effort);
    return w;
  }
}

export class Answer {
  text: string = "";
  truncated: bool = false; // the model stopped at maxTokens
}

/** What to count. */
export class Items {
  encoded: Writer[] = [];
  messages(range: Range): void {
    this.encoded.push(holding(1, range.encode()));
  }
  /** A part of a message. */
  part(message: Bytes, index: u32): void {
    const w = new Writer();
    w.bytes(1, message);
    w.number(2, index);
    this.encoded.push(holding(2, w));
  }
  text(text: string): void {
    this.encoded.push(holding(3, holding(1, textPart(text))));
  }
}

/** What a strategy of the host did: Edit.add sends it on. */
export class Ran {
  edit: Edit = new Edit();
  tokens: u64 = 0; // of the conversation afterwards
}

/** Known lines of a file. */
export class Piece {
  first: u64 = 0; // the number of the first one; 0 if unknown
  text: Bytes = new Bytes();
  unsure: bool = false; // the file was changed since, in a way that is not known
}

const MOST = 1024; // items and texts in a request

/** A conversation to shorten: Start in condense.proto. Sizes are in tokens: the messages should have at most target - overhead. */
export class Call {
  messages: Message[] = [];
  window: u64 = 0;
  reserve: u64 = 0;
  overhead: u64 = 0;
  limit: u64 = 0;
  target: u64 = 0;
  instructions: Bytes = new Bytes();
  noRecall: bool = false;
  state: Bytes = new Bytes(); // what Edit.state was in the newest answer that is still applied in this conversation
  mayWait: bool = false; // Edit.later is an answer: the conversation is below its limit
  conversation: string = "";
  trigger: string = "";
  profile: string = "";
  mode: string = "";
  api: string = "";
  model: string = "";
  system: Bytes = new Bytes();
  environment: Bytes = new Bytes();
  filesRead: Bytes[] = [];
  dir: Bytes = new Bytes();
  tools: Bytes = new Bytes();
  originals: Bytes = new Bytes();
  modelCalls: u64 = 0; // the most requests to models, and US dollars for them; 0 for no limit
  usd: f64 = 0;
  cachedMessages: u64 = 0; // that the vendor's prompt cache has, and until when, in milliseconds since 1970
  cachedUntil: i64 = 0;
  /** Why the host did not answer the last question: the text, and a code of CallbackError (1 not supported, 2 over the quota, …). */
  refusal: string = "";
  refusalCode: u64 = 0;
  private callbacks: string[] = [];
  private settings: Map<string, string> = new Map();

  /** A setting as its text, or as JSON if it is no string. The host has checked its type; mark.style is a nested one. */
  text(name: string): string {
    return this.settings.has(name) ? this.settings.get(name) : "";
  }
  /** A setting that is an integer. */
  int(name: string): i32 {
    return <i32>parseInt(this.text(name));
  }
  /** A setting that is a number. */
  float(name: string): f64 {
    return parseFloat(this.text(name));
  }
  /** Asks a language model. Like all that ask the host it gives null if that refuses: see refusal. */
  generate(prompt: Prompt): Answer | null {
    const isNew = prompt.schema != "" || prompt.effort != "" || prompt.temperature == prompt.temperature;
    const r = this.ask(isNew ? "schema" : "", 3, prompt.encode());
    if (!r) return null;
    const answer = new Answer();
    while (r.next()) {
      if (r.field == 1) answer.text = r.bytes().toString();
      if (r.field == 3) answer.truncated = r.value != 0;
    }
    return answer;
  }
  /** The tokens of each item, by the host's counter. Count many at once. */
  count(items: Items): u64[] | null {
    const counts: u64[] = [];
    for (let i = 0; i < items.encoded.length; i += MOST) {
      const w = new Writer();
      for (let k = i; k < min(i + MOST, items.encoded.length); k++) w.message(1, items.encoded[k]);
      const r = this.ask("", 2, w);
      if (!r) return null;
      while (r.next()) {
        if (r.field != 1) continue;
        const packed = r.inside();
        while (packed.more()) counts.push(packed.varint());
      }
    }
    return counts.length == items.encoded.length ? counts : this.lacks<u64[]>("count");
  }
  /**
   * Messages that earlier condensations hid or rewrote, as they were; without IDs a list of all, without parts. Their IDs cannot stand
   * in edits: insert what is worth reading again.
   */
  hidden(ids: Bytes[]): Message[] | null {
    const w = new Writer();
    for (let i = 0; i < ids.length; i++) w.bytes(1, ids[i]);
    const r = this.ask("hidden", 4, w);
    if (!r) return null;
    const messages: Message[] = [];
    while (r.next()) {
      if (r.field == 1) messages.push(Message.read(r.inside()));
    }
    return messages;
  }
  /** Lets a built-in strategy shorten these messages, by default all. The target is of the whole conversation, 0 for that of the call. */
  run(strategy: string, settings: string, messages: Range[], target: u64): Ran | null {
    const w = new Writer();
    w.text(1, strategy);
    w.text(2, settings);
    for (let i = 0; i < messages.length; i++) w.message(3, messages[i].encode());
    w.number(4, target);
    const r = this.ask("run", 5, w);
    if (!r) return null;
    const ran = new Ran();
    while (r.next()) {
      if (r.field == 1) ran.edit.encoded.raw(r.bytes());
      if (r.field == 2) ran.tokens = r.value;
    }
    return ran;
  }
  /** A vector for each text, by the model of the user's configuration. */
  embed(texts: Bytes[]): StaticArray<f32>[] | null {
    const vectors: StaticArray<f32>[] = [];
    for (let i = 0; i < texts.length; i += MOST) {
      const w = new Writer();
      for (let k = i; k < min(i + MOST, texts.length); k++) w.bytes(1, texts[k]);
      const r = this.ask("embed", 6, w);
      if (!r) return null;
      while (r.next()) {
        if (r.field != 1) continue;
        const floats = strings(r)[0];
        const vector = new StaticArray<f32>(<i32>(floats.size / 4));
        memory.copy(changetype<usize>(vector), floats.at, 4 * vector.length);
        vectors.push(vector);
      }
    }
    return vectors;
  }
  /** The newest text of a file as the conversation shows it, hidden messages included; nothing if it does not. */
  file(path: string): Piece[] | null {
    const w = new Writer();
    w.text(1, path);
    const r = this.ask("file", 7, w);
    if (!r) return null;
    const pieces: Piece[] = [];
    while (r.next()) {
      if (r.field != 1) continue;
      const piece = new Piece();
      const p = r.inside();
      while (p.next()) {
        if (p.field == 1) piece.first = p.value;
        if (p.field == 2) piece.text = p.bytes();
        if (p.field == 3) piece.unsure = p.value != 0;
      }
      pieces.push(piece);
    }
    return pieces;
  }
  /** Sends a Callback with the request in that field, and returns the answer in the Reply. */
  private ask(needs: string, field: u32, request: Writer): Reader | null {
    if (needs != "" && !this.callbacks.includes(needs)) return this.lacks<Reader>(needs);
    const sent = field < 4 ? request : holding(15, holding(field, request));
    const reply = field == 3 ? hostGenerate(sent.at, sent.size) : hostCount(sent.at, sent.size);
    const r = new Reader(<usize>(reply >> 32), <usize>(reply & 0xffffffff));
    const answer = field < 4 ? field : field + 1;
    while (r.next()) {
      if (r.field == answer) return r.inside();
      if (r.field != 4) continue;
      const e = r.inside();
      while (e.next()) {
        if (e.field == 1) this.refusalCode = e.value;
        if (e.field == 2) this.refusal = "host: " + e.bytes().toString();
      }
      return null;
    }
    return this.lacks<Reader>(needs);
  }
  private lacks<T>(callback: string): T | null {
    this.refusalCode = 1;
    this.refusal = "host: " + callback + ": not supported by this host";
    return null;
  }
  static read(at: usize, size: usize): Call {
    const c = new Call();
    const r = new Reader(at, size);
    while (r.next()) {
      if (r.field == 1) c.messages.push(Message.read(r.inside()));
      if (r.field == 2) c.start(r.inside());
      if (r.field == 3) {
        const s = strings(r);
        c.settings.set(s[0].toString(), s[1].toString());
      }
    }
    return c;
  }
  private start(r: Reader): void {
    while (r.next()) {
      if (r.field == 2) {
        const b = r.inside();
        while (b.next()) {
          if (b.field == 1) this.window = b.value;
          if (b.field == 2) this.reserve = b.value;
          if (b.field == 3) this.overhead = b.value;
          if (b.field == 4) this.limit = b.value;
          if (b.field == 5) this.target = b.value;
        }
      }
      if (r.field == 3) this.trigger = r.bytes().toString();
      if (r.field == 4) this.profile = r.bytes().toString();
      if (r.field == 5) this.mode = r.bytes().toString();
      if (r.field == 6) this.system = r.bytes();
      if (r.field == 7) this.environment = r.bytes();
      if (r.field == 8) this.filesRead.push(r.bytes());
      if (r.field == 9) this.instructions = r.bytes();
      if (r.field == 11) this.dir = r.bytes();
      if (r.field == 12) this.tools = r.bytes();
      if (r.field == 13) this.originals = r.bytes();
      if (r.field == 15) this.noRecall = r.value != 0;
      if (r.field == 16) this.api = r.bytes().toString();
      if (r.field == 18) this.model = r.bytes().toString();
      if (r.field == 21) this.conversation = r.bytes().toString();
      if (r.field == 22) this.state = r.bytes();
      if (r.field == 23) this.mayWait = r.value != 0;
      if (r.field == 24) {
        const q = r.inside();
        while (q.next()) {
          if (q.field == 1) this.modelCalls = q.value;
          if (q.field == 2) this.usd = reinterpret<f64>(q.value);
        }
      }
      if (r.field == 25) this.callbacks.push(r.bytes().toString());
      if (r.field == 26) {
        const c = r.inside();
        while (c.next()) {
          if (c.field == 1) this.cachedMessages = c.value;
          if (c.field == 2) this.cachedUntil = <i64>c.value;
        }
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
    edit.raw(content.encoded.written());
    const w = new Writer();
    w.message(2, edit);
    this.encoded.message(this.field, w);
  }
  text(text: string): void {
    this.encoded.message(this.field, holding(3, textPart(text)));
  }
}

/** The answer: what to change. Everything else stays. */
export class Edit {
  /**
   * Comes back as Call.state in the next call about the conversation, if this answer is applied, and is undone with it. At most
   * MAX_STATE bytes; empty keeps the state as it is.
   */
  state: Bytes = new Bytes();
  /**
   * Why it is better not to condense yet, a line, in place of changes. The host asks again after the conversation has grown, or asks the
   * next provider unless Call.mayWait is set.
   */
  later: string = "";
  encoded: Writer = new Writer();

  /** Hides the messages from first to last. Nothing is ever deleted. */
  hide(first: Bytes, last: Bytes): void {
    this.encoded.message(1, new Range(first, last).encode());
  }
  /** Adds the changes of another, such as those of Call.run. */
  add(other: Edit): void {
    this.encoded.raw(other.encoded.written());
  }
  /** Replaces the parts of a message. */
  rewrite(id: Bytes, parts: NewParts): void {
    const w = new Writer();
    w.bytes(1, id);
    w.raw(parts.encoded.written());
    this.encoded.message(2, w);
  }
  /** Adds a message, of the kind summary or marker, after another or, if that is empty, at the front. */
  insert(after: Bytes, role: string, kind: string, text: string): void {
    const w = new Writer();
    w.bytes(1, after);
    w.text(2, role);
    w.text(3, kind);
    w.message(4, textPart(text));
    this.encoded.message(3, w);
  }
  give(): u64 {
    const done = new Writer();
    done.bytes(3, this.state);
    done.text(4, this.later);
    this.encoded.message(15, done);
    return this.encoded.give();
  }
}

/** The most bytes of a state: the host refuses an answer with more. */
export const MAX_STATE: usize = 64 << 10;

/** Wrong values of settings, as the answer of a function check_settings. */
export class Problems {
  private encoded: Writer = new Writer();
  add(setting: string, message: string): void {
    const w = new Writer();
    w.text(1, setting);
    w.text(2, message);
    this.encoded.message(1, w);
  }
  give(): u64 {
    return this.encoded.give();
  }
}

class Setting {
  constructor(
    public name: string,
    public type: string,
    public value: string,
    public doc: string,
  ) {}
}

/** Describes a provider. Abilities: hides, rewrites, inserts, asks_models, keeps_words; the host rejects an answer that does anything else. */
export class Strategy {
  private encoded: Writer = new Writer();
  private settings: Setting[] = [];

  constructor(name: string, version: string, doc: string) {
    this.encoded.text(1, name);
    this.encoded.text(2, version);
    this.encoded.text(3, doc);
  }
  /**
   * Dots join the names of nested settings, as in mark.style; former names, which are read as well, follow after |. The type is one of
   * JSON (string, integer, number, boolean, array, object), or the texts that it may be: plain|fancy.
   */
  setting(name: string, type: string, defaultJSON: string, doc: string): Strategy {
    this.settings.push(new Setting(name, type, defaultJSON, doc));
    return this;
  }
  can(ability: string): Strategy {
    this.encoded.text(6, ability);
    return this;
  }
  give(): u64 {
    this.describe(this.encoded, 4, "");
    return this.encoded.give();
  }
  /** Describes the settings whose names begin with prefix, in that field: those of one object come together. */
  private describe(to: Writer, field: u32, prefix: string): void {
    const objects = new Set<string>();
    for (let i = 0; i < this.settings.length; i++) {
      const s = this.settings[i];
      if (!s.name.startsWith(prefix)) continue;
      const names = s.name.slice(prefix.length).split("|");
      const path = names[0].split(".");
      const w = new Writer();
      w.text(1, path[0]);
      if (path.length > 1) {
        if (objects.has(path[0])) continue;
        objects.add(path[0]);
        w.text(2, "object");
        w.text(3, "{}");
        this.describe(w, 6, prefix + path[0] + ".");
      } else {
        const texts = s.type.split("|");
        w.text(2, texts.length > 1 ? "string" : s.type);
        w.text(3, s.value);
        w.text(4, s.doc);
        for (let k = 0; texts.length > 1 && k < texts.length; k++) w.text(5, texts[k]);
        for (let k = 1; k < names.length; k++) w.text(7, names[k]);
      }
      to.message(field, w);
    }
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
  more(): bool {
    return this.at < this.end;
  }
  next(): bool {
    if (!this.more()) return false;
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
    if (type == 1) this.value = load<u64>(this.from);
    return true;
  }
  bytes(): Bytes {
    return new Bytes(this.from, this.at - this.from);
  }
  inside(): Reader {
    return new Reader(this.from, this.at - this.from);
  }
  varint(): u64 {
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

/** A message whose only field is another message. */
function holding(field: u32, message: Writer): Writer {
  const w = new Writer();
  w.message(field, message);
  return w;
}

/** A Part that is a text. */
function textPart(text: string): Writer {
  const w = new Writer();
  w.text(1, text);
  return w;
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
  float(field: u32, value: f64): void {
    this.varint((field << 3) | 1);
    this.grow(8);
    store<f64>(this.at + this.size, value);
    this.size += 8;
  }
  message(field: u32, message: Writer): void {
    this.bytes(field, message.written());
  }
  bytes(field: u32, b: Bytes): void {
    this.varint((field << 3) | 2);
    this.varint(b.size);
    this.raw(b);
  }
  written(): Bytes {
    return new Bytes(this.at, this.size);
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
  raw(b: Bytes): void {
    this.grow(b.size);
    memory.copy(this.at + this.size, b.at, b.size);
    this.size += b.size;
  }
  private grow(more: usize): void {
    if (this.size + more <= this.room) return;
    this.room = max<usize>(2 * this.room, this.size + more);
    const to = heap.alloc(this.room);
    memory.copy(to, this.at, this.size);
    this.at = to;
  }
}
