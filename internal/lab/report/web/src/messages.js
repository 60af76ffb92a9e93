import { h } from "./dom.js";
import { inflate, row } from "./data.js";
import { number, plural, thousands } from "./format.js";
import { crumbs, sessionsHref } from "./sessions.js";
import { messageList } from "./messagelist.js";

// messagesView shows what a strategy made of the messages of one session.
export async function messagesView(data, q) {
  const index = Number(q.get("row"));
  const r = index >= 0 && index < data.rows.strategy.length ? row(data, index) : null;
  if (!r?.block) {
    return h("div", { class: "view" }, crumbs({ text: "Report", href: "#report" }), h("h1", { tabindex: "-1" }, "Not included in this page"), h("p", {}, "The messages of this session are not included in this page."));
  }
  const block = await inflate(r.block);
  const view = block.views.find((v) => v.row === index);
  const needs = (view.found ?? []).map((f) => ({ ...block.needs[view.cut][f.need], state: f.verdict }));
  const of = new Map();
  needs.forEach((n) => {
    for (const m of n.messages ?? []) of.set(m, [...(of.get(m) ?? []), n]);
  });
  const items = view.entries.map((e) => {
    const original = e.at < 0 ? e.new : block.messages[e.at];
    return { at: e.at, state: e.state, role: original.role, kind: original.kind, parts: original.parts, after: e.after, before: e.at < 0 ? 0 : original.tokens, tokens: e.tokens, needs: e.at < 0 ? [] : of.get(e.at) ?? [] };
  });
  const measure = data.measure.get(q.get("measure")) ?? data.measures[0];
  const others = siblings(data, r, measure);
  return h("div", { class: "view" },
    crumbs({ text: "Report", href: "#report" }, { text: `${r.strategy.name}, ${r.budget}`, href: sessionsHref(r.strategy.name, r.budget, "", measure.name) }, { text: r.session.name }),
    h("h1", { tabindex: "-1" }, h("bdi", {}, r.session.name)),
    h("p", { class: "lead" }, "What ", h("strong", {}, h("bdi", {}, r.strategy.name)), ` made of the ${plural(r.at, "message")} before the cut “${r.cut}”, budget ${r.budget}: `,
      `${thousands(r.before)} tokens → ${thousands(r.after)} (${thousands(r.room)} allowed), ${r.outcome}.`),
    r.error ? h("p", { class: "note warn" }, r.error) : null,
    h("dl", { class: "facts" }, data.measures.filter((m) => r.value(m.name) !== null && ["panel", "reachable", "far", "user", "artefacts", "errors", "recent", "altered", "stale", "kept", "ms"].includes(m.name)).map((m) => h("div", {}, h("dt", { title: m.doc }, m.title), h("dd", {}, number(m.unit, r.value(m.name)), m.unit === "ms" ? " ms" : "")))),
    others.length > 1 ? h("p", { class: "choice-line" }, h("label", {}, "Same cut, strategy ", h("select", { onchange: (e) => (location.hash = `messages?row=${e.target.value}&measure=${measure.name}`) }, others.map((o) => { const option = h("option", { value: o.index }, `${o.strategy.label}: ${measure.title} ${number(measure.unit, o.value(measure.name))}`); option.selected = o.index === index; return option; })))) : null,
    ...messageList(items, needs));
}

// siblings are what others made of the same cut.
function siblings(data, r) {
  const out = [];
  for (const key of Object.keys(data.blocks)) {
    const i = Number(key);
    if (data.rows.session[i] === r.sessionIndex && data.rows.cut[i] === r.cut && data.budgets[data.rows.budget[i]] === r.budget) out.push(row(data, i));
  }
  return out;
}
