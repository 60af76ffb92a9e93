// tricks does what the instructions of a call say: whatever a plugin can do, right or wrong. With others it shortens old results,
// counts in its state how often that was applied, and waits at first if it may.
import { Bytes, Call, Edit, Items, MAX_STATE, NewParts, Part, Problems, Prompt, Range, Strategy, fail, log, progress, report } from "./condense";

export { alloc } from "./condense";

export function describe(): u64 {
  return new Strategy("tricks", "1.2.3", "Does what it is told.")
    .setting("greeting|word", "string", '"hello"', "What to say.")
    .setting("share", "number", "0.5", "Between 0 and 1.")
    .setting("style", "plain|fancy", '"plain"', "How.")
    .setting("mark.text|sign", "string", '"gone"', "Of the note.")
    .setting("mark.many", "integer", "1", "How often.")
    .give();
}

export function check_settings(at: usize, size: usize): u64 {
  const call = Call.read(at, size);
  const problems = new Problems();
  if (call.float("share") < 0 || call.float("share") > 1) problems.add("share", "must be from 0 to 1");
  if (call.int("mark.many") < 1) problems.add("mark.many", "must be positive");
  return problems.give();
}

export function condense(at: usize, size: usize): u64 {
  const call = Call.read(at, size);
  return act(call, call.instructions.toString()).give();
}

// say has text stand for everything.
function say(call: Call, text: string): Edit {
  const edit = new Edit();
  edit.hide(call.messages[0].id, call.messages[call.messages.length - 1].id);
  edit.insert(new Bytes(), "user", "summary", text);
  return edit;
}

// refused ends the call with the reason of the host.
function refused(call: Call): Edit {
  fail(9, call.refusal);
  return new Edit();
}

function act(call: Call, trick: string): Edit {
  const m = call.messages;
  if (trick == "boom") assert(false, "boom");
  if (trick == "start") {
    let text = [call.trigger, call.profile, call.mode, call.system.toString(), call.environment.toString()].join(" ");
    for (let i = 0; i < call.filesRead.length; i++) text += " " + call.filesRead[i].toString();
    return say(call, [text, call.target.toString(), (<i32>call.noRecall).toString(), call.api].join(" "));
  }
  if (trick == "settings") {
    const names = ["greeting", "share", "style", "mark.text", "mark.many"];
    for (let i = 0; i < names.length; i++) names[i] = call.text(names[i]);
    return say(call, names.join(" "));
  }
  if (trick == "remember") {
    const edit = say(call, call.conversation + ": " + call.state.toString());
    edit.state = appended(call.state, 0xff);
    return edit;
  }
  if (trick == "too much") {
    const edit = say(call, "");
    edit.state = new Bytes(heap.alloc(MAX_STATE + 1), MAX_STATE + 1);
    return edit;
  }
  if (trick == "later") {
    const edit = new Edit();
    edit.later = "not now, " + call.mayWait.toString();
    return edit;
  }
  if (trick == "part") {
    const last = m[m.length - 3].id;
    const ran = call.run("smart", '{"preset": "aggressive"}', [new Range(m[2].id, last)], 0);
    if (!ran) return refused(call);
    ran.edit.insert(last, "user", "summary", ran.tokens.toString() + " tokens left");
    return ran.edit;
  }
  if (trick == "reopen") {
    const all = call.hidden([]);
    if (!all) return refused(call);
    const was = call.hidden([all[0].id]);
    if (!was) return refused(call);
    const edit = new Edit();
    edit.insert(m[0].id, "user", "summary", was[0].parts[0].text.toString());
    return edit;
  }
  if (trick == "newest") {
    const a = call.file("a.go");
    const b = call.file("b.go");
    if (!a || !b) return refused(call);
    const piece = [a[0].first.toString(), a[0].text.toString(), a[0].unsure.toString()].join(" ");
    const kept = m[0].labels.has("kept") ? m[0].labels.get("kept") : "";
    return say(call, [piece, b.length.toString(), call.cachedMessages.toString(), call.cachedUntil.toString(), kept].join(" "));
  }
  if (trick == "vectors") {
    const texts: Bytes[] = [];
    for (let i = 0; i < 2000; i++) texts.push(Bytes.of("text " + i.toString()));
    const found = call.embed(texts);
    if (!found) return refused(call);
    return say(call, [found.length.toString(), found[0].length.toString(), found[7][7].toString()].join(" "));
  }
  if (trick == "schema" || trick == "generate") {
    const prompt = new Prompt(trick == "schema" ? "" : "Summarize.");
    prompt.messages = [new Range(m[0].id)];
    if (trick == "schema") {
      prompt.schema = '{"type":"object"}';
      prompt.temperature = 0.5;
      prompt.effort = "low";
    } else {
      prompt.system = "Be brief.";
    }
    const answer = call.generate(prompt);
    if (answer) return say(call, answer.text);
    return trick == "schema" ? refused(call) : say(call, call.refusalCode.toString());
  }
  if (trick == "lacking") {
    const told: string[] = [];
    if (!call.hidden([])) told.push(call.refusalCode.toString() + " " + call.refusal);
    if (!call.run("smart", "", [], 0)) told.push(call.refusalCode.toString() + " " + call.refusal);
    if (!call.embed([Bytes.of("x")])) told.push(call.refusalCode.toString() + " " + call.refusal);
    if (!call.file("x")) told.push(call.refusalCode.toString() + " " + call.refusal);
    return say(call, told.join(", "));
  }
  if (trick == "count" || trick == "count_wrong") {
    const items = new Items();
    if (trick == "count_wrong") items.messages(new Range(Bytes.of("nobody")));
    else items.messages(new Range(m[0].id, m[1].id));
    items.part(m[1].id, 0);
    items.text("12345678");
    const counts = call.count(items);
    return counts ? say(call, counts.join(" ")) : refused(call);
  }
  if (trick == "count_many") {
    const items = new Items();
    for (let i = 0; i < 50000; i++) items.text("12345678");
    const counts = call.count(items);
    return counts ? say(call, counts.filter((n) => n == 2).length.toString()) : refused(call);
  }
  if (trick == "tell") {
    log(4, "attention");
    progress(0.5, "half");
    return new Edit();
  }
  return shorten(call);
}

function shorten(call: Call): Edit {
  const edit = new Edit();
  if (call.mayWait && call.state.size == 0) {
    edit.later = "a task is half done";
    return edit;
  }
  let shortened = 0;
  for (let i = 0; i < call.messages.length - 2; i++) {
    const m = call.messages[i];
    const parts = new NewParts();
    let changed = false;
    for (let j = 0; j < m.parts.length; j++) {
      if (!m.isProtected && note(call, m.parts[j], j, parts)) changed = true;
      else parts.keep(j);
    }
    if (!changed) continue;
    edit.rewrite(m.id, parts);
    shortened++;
  }
  log(0, call.state.size.toString() + " strokes");
  report("results", call.messages.length, shortened);
  edit.state = appended(call.state, 0x7c);
  return edit;
}

function note(call: Call, part: Part, index: i32, to: NewParts): bool {
  if (part.kind != 3 || part.content.length != 1 || part.content[0].text.size <= 200) return false;
  const content = new NewParts();
  content.text("[" + part.content[0].text.size.toString() + " bytes are " + call.text("mark.text") + call.state.toString() + "]");
  to.result(index, content);
  return true;
}

// appended returns bytes and one more.
function appended(b: Bytes, last: u8): Bytes {
  const to = new Bytes(heap.alloc(b.size + 1), b.size + 1);
  memory.copy(to.at, b.at, b.size);
  store<u8>(to.at + b.size, last);
  return to;
}
