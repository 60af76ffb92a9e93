import { $, $$, figure, h, say } from "./dom.js";
import { excerpt, plural, thousands } from "./format.js";
import * as Plot from "@observablehq/plot";
import { frame, halfOf } from "./plots.js";

const states = [
  { name: "kept", sign: "●", words: "kept" },
  { name: "rewritten", sign: "◐", words: "rewritten" },
  { name: "hidden", sign: "○", words: "hidden" },
  { name: "new", sign: "+", words: "new" },
];
// The verdicts on a name that was needed later, the worst first.
const needStates = {
  missing: { sign: "✕", words: "needed later, missing", doc: "It is not there." },
  stale: { sign: "△", words: "needed later, stale", doc: "Only text that was replaced before the cut is there." },
  altered: { sign: "≈", words: "needed later, altered", doc: "Only the name is there, without the text around it or in another." },
  reachable: { sign: "↗", words: "needed later, reachable", doc: "It is not there, but what is there says where it is: one recall or one read brings it back." },
  kept: { sign: "✓", words: "needed later, kept", doc: "It is there in its text." },
};
const verdicts = Object.keys(needStates);
const isLost = (n) => n.state !== "kept" && n.state !== "reachable";
const mostNeeds = 24;
const batch = 300; // messages put on the page at a time

// messageList returns the elements that show messages: what became of each, over the
// conversation; what of them was needed later; and the messages themselves.
export function messageList(items, needs, options = {}) {
  const list = h("ol", { class: "messages" });
  const shown = { states: new Set(states.map((s) => s.name)), losses: false };
  const visible = () => items.filter((i) => shown.states.has(i.state) && (!shown.losses || i.needs.some(isLost)));
  let drawn = 0;
  let current = items;
  const more = h("button", { type: "button", class: "button", onclick: () => draw(drawn + batch) }, "Show more messages");
  const draw = (to) => {
    for (const item of current.slice(drawn, to)) list.append(message(item, options));
    drawn = Math.min(to, current.length);
    more.hidden = drawn >= current.length;
    more.textContent = `Show more of the ${thousands(current.length - drawn)} messages that follow`;
  };
  const restart = (spoken) => {
    current = visible();
    list.replaceChildren();
    drawn = 0;
    draw(batch);
    if (spoken) say(`${plural(current.length, "message")} listed`);
  };
  // jump opens the message at an index of the session.
  const jump = (at) => {
    if (!current.some((i) => i.at === at)) {
      for (const box of $$("input", filters)) box.checked = box.dataset.losses === undefined;
      for (const s of states) shown.states.add(s.name);
      shown.losses = false;
      restart(false);
    }
    const position = current.findIndex((i) => i.at === at);
    if (position < 0) return;
    if (position >= drawn) draw(position + batch);
    const details = $("details", list.children[position]);
    details.open = true;
    $("summary", details).focus({ preventScroll: true });
    details.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  };
  const occurring = states.filter((s) => items.some((i) => i.state === s.name));
  const filters = h("fieldset", { class: "choices" }, h("legend", {}, "Messages listed"),
    occurring.map((s) => {
      const of = items.filter((i) => i.state === s.name);
      const box = h("input", { type: "checkbox", checked: true, onchange: () => { if (box.checked) shown.states.add(s.name); else shown.states.delete(s.name); restart(true); } });
      return h("label", {}, box, chip(s), ` ${plural(of.length, "message")}`);
    }));
  if (needs.some(isLost)) {
    const box = h("input", { type: "checkbox", "data-losses": "", onchange: () => { shown.losses = box.checked; restart(true); } });
    filters.append(h("label", {}, box, "only those with something missing, stale or altered"));
  }
  let opened = false;
  const toggle = h("button", { type: "button", class: "button", onclick: () => {
    opened = !opened;
    for (const d of $$(":scope > li > details", list)) d.open = opened;
    toggle.textContent = opened ? "Close all" : "Open all";
  } }, "Open all");
  restart(false);
  const strip = h("div");
  figure(strip, stripLabel(items), (width) => ribbon(width, items), "The conversation from left to right, each message as wide as its tokens were");
  strip.append(h("ul", { class: "legend" }, occurring.map((s) => h("li", {}, chip(s)))));
  return [
    h("h2", {}, "Outcome by message"),
    strip,
    ...beforeAfter(items, options),
    ...(needs.length > 0 ? needLists(needs, jump) : []),
    h("h2", {}, "Messages"),
    h("div", { class: "tools" }, filters, toggle),
    list,
    more,
  ];
}

// beforeAfter tells the conversation as it was and as it is sent: a stretch that changed has what went on one side, and what stands for it on
// the other. Stretches are drawn when they are opened.
function beforeAfter(items, options) {
  const stretches = [];
  for (const i of items) {
    const kept = i.state === "kept";
    if (stretches.at(-1)?.kept !== kept) stretches.push({ kept, items: [] });
    stretches.at(-1).items.push(i);
  }
  if (!stretches.some((s) => !s.kept)) return [];
  const sum = (l, of) => l.reduce((n, i) => n + of(i), 0);
  const was = (l) => sum(l, (i) => (i.at < 0 ? 0 : i.before)), is = (l) => sum(l, (i) => (i.state === "hidden" ? 0 : i.tokens));
  const most = Math.max(1, was(items));
  const bar = (words, n, of) => {
    const row = h("div", { class: "weighed" }, h("span", { class: "words" }, words), h("span", { class: "track", "aria-hidden": "true" }, states.filter((s) => of[s.name]).map((s) => {
      const piece = h("span", { class: s.name });
      piece.style.width = `${(100 * of[s.name]) / most}%`;
      return piece;
    })), h("strong", {}, `${thousands(n)} tokens`));
    return row;
  };
  const by = (size) => Object.fromEntries(states.map((s) => [s.name, size(items.filter((i) => i.state === s.name))]));
  const range = (l) => {
    const at = l.filter((i) => i.at >= 0).map((i) => i.at + 1);
    return at.length === 0 ? "Inserted" : at[0] === at.at(-1) ? `Message ${at[0]}` : `Messages ${at[0]}–${at.at(-1)}`;
  };
  const side = (title, l, none) => h("section", {}, h("h3", {}, title, h("span", { class: "count" }, plural(l.length, "message"))), l.length ? h("ol", { class: "messages" }, l.map((i) => message(i, options))) : h("p", { class: "faint" }, none));
  const stretch = (s) => {
    if (s.kept) return h("li", { class: "same" }, `${range(s.items)} ${s.items.length === 1 ? "stays as it is" : "stay as they are"}: ${thousands(is(s.items))} tokens`);
    const body = h("div", { class: "versions" });
    const details = h("details", {
      ontoggle: () => {
        if (details.open && body.childElementCount === 0) body.append(side("What went", s.items.filter((i) => i.state === "hidden"), "Nothing."), side("What stands for it", s.items.filter((i) => i.state !== "hidden"), "Nothing: they are left out."));
      },
    }, h("summary", {}, `${range(s.items)}: ${thousands(was(s.items))} tokens → `, h("strong", {}, thousands(is(s.items)))), body);
    return h("li", {}, details);
  };
  return [
    h("h2", {}, "Before and after"),
    h("div", { class: "scale" }, bar("Before", was(items), by(was)), bar("After", is(items), by(is))),
    h("ol", { class: "stretches" }, stretches.map(stretch)),
  ];
}

function chip(s) {
  return h("span", { class: `chip ${s.name}` }, h("span", { "aria-hidden": "true" }, s.sign), " ", s.words);
}

function stripLabel(items) {
  return "Messages by outcome: " + states.map((s) => items.filter((i) => i.state === s.name)).filter((l) => l.length > 0).map((l) => `${l.length} ${l[0].state}`).join(", ") + ". They are listed below.";
}

// ribbon draws the conversation as one bar.
function ribbon(width, items) {
  let x = 0;
  const boxes = [];
  const marks = [];
  for (const i of items) {
    const size = i.at < 0 ? 0 : i.before;
    boxes.push({ x1: x, x2: x + Math.max(size, 0), state: i.state, item: i });
    if (i.state === "new") marks.push({ x, kind: "new" });
    const lost = i.needs.filter((n) => isLost(n) && n.last === i.at).length;
    if (lost > 0) marks.push({ x: x + size / 2, kind: "lost", n: lost });
    x += size;
  }
  const title = (b) => `message ${b.item.at + 1}, ${b.item.role}, ${b.state}: ${thousands(b.item.before)} → ${thousands(b.item.tokens)} tokens`;
  return Plot.plot(
    frame(width, {
      height: 86,
      marginLeft: 8,
      marginRight: halfOf(thousands(Math.round(x)), 8),
      marginTop: 18,
      marginBottom: 36,
      x: { label: "tokens from the beginning", labelAnchor: "center", labelArrow: "none", domain: [0, Math.max(1, x)], ticks: width > 600 ? 8 : 4 },
      y: { axis: null, domain: [0, 1] },
      symbol: { type: "identity" },
      marks: [
        Plot.rect(boxes, { x1: "x1", x2: "x2", y1: (b) => (b.state === "hidden" ? 0.32 : 0), y2: (b) => (b.state === "hidden" ? 0.68 : 1), fill: (b) => `var(--state-${b.state})`, insetRight: x > 0 && boxes.length < width / 3 ? 0.5 : 0, title }),
        Plot.dot(marks.filter((m) => m.kind === "lost"), { x: "x", y: 1, dy: -8, symbol: "times", stroke: "var(--lost)", strokeWidth: 1.6, r: 3, title: (m) => `${m.n} needed later and missing, stale or altered` }),
        Plot.dot(marks.filter((m) => m.kind === "new"), { x: "x", y: 1, dy: -8, symbol: "plus", stroke: "var(--state-new)", strokeWidth: 2.4, r: 4, title: () => "new message" }),
      ],
    }),
  );
}

function needLists(needs, jump) {
  const by = (state) => needs.filter((n) => n.state === state).sort((a, b) => b.weight - a.weight);
  const weight = (l) => l.reduce((s, n) => s + n.weight, 0);
  const total = weight(needs) || 1;
  return [
    h("h2", {}, "Needed after the cut"),
    h("p", { class: "hint" }, `${plural(needs.length, "name")} from before the cut came up again afterwards. Choosing one opens the last message that has it.`),
    h("div", { class: "needs" }, verdicts.map((state) => {
      const l = by(state);
      if (l.length === 0) return null;
      const words = needStates[state];
      const list = h("ul", {}, l.slice(0, mostNeeds).map((n) => need(n, jump)));
      const more = l.length > mostNeeds ? h("button", { type: "button", class: "button", onclick: () => { list.append(...l.slice(mostNeeds).map((n) => need(n, jump))); more.remove(); } }, `Show all ${thousands(l.length)}`) : null;
      return h("section", { class: `need ${state}` }, h("h3", {}, h("span", { "aria-hidden": "true" }, words.sign), ` ${words.words} `, h("span", { class: "count" }, `${thousands(l.length)}, ${Math.round((100 * weight(l)) / total)} % of the weight`)), h("p", { class: "hint" }, words.doc), list, more);
    })),
  ];
}

function need(n, jump) {
  return h("li", {}, h("button", { type: "button", class: "link", onclick: () => jump(n.last) }, h("bdi", {}, n.text)), h("small", {}, ` ${n.kind}${n.far ? ", from far back" : ""}; last in ${n.last + 1}, needed in ${n.by + 1}`));
}

// message returns the item of the list; its text is put there when it is opened.
function message(item, options) {
  const state = states.find((s) => s.name === item.state);
  const counts = verdicts.map((s) => [item.needs.filter((n) => n.state === s).length, s]).filter(([n]) => n > 0).map(([n, s]) => h("span", { class: `mark-count ${s}`, title: needStates[s].words }, h("span", { "aria-hidden": "true" }, needStates[s].sign), ` ${n}`, h("span", { class: "hush" }, ` ${needStates[s].words}`)));
  const size = item.state === "kept" ? thousands(item.tokens) : item.state === "new" ? `+${thousands(item.tokens)}` : `${thousands(item.before)} → ${thousands(item.tokens)}`;
  const body = h("div", { class: "body" });
  const details = h("details", {
    ontoggle: () => {
      if (details.open && body.childElementCount === 0) fill(body, item);
    },
  },
    h("summary", {},
      chip(state), h("span", { class: "who" }, item.at < 0 ? "" : h("span", { class: "number" }, `${item.at + 1} `), item.role, item.kind && item.kind !== "original" ? ` (${item.kind})` : ""),
      h("span", { class: "excerpt" }, h("bdi", {}, preview(item.state === "rewritten" && item.after ? item.after : item.parts))),
      h("span", { class: "marks" }, counts), h("span", { class: "size" }, size, h("span", { class: "hush" }, " tokens"))),
    body);
  return h("li", { class: item.state, ...(item.note ? { "data-note": "" } : {}) }, item.note ? h("p", { class: "between" }, item.note) : null, details);
}

function preview(parts) {
  return parts.map((p) => (p.type === "call" ? `${p.name}(${excerpt(p.text, 90)})` : (p.error ? "error: " : "") + excerpt(p.text, 140))).join(" · ").slice(0, 220);
}

function fill(body, item) {
  const marker = marking(item.needs);
  if (item.state === "rewritten" && item.after) {
    body.append(h("div", { class: "versions" }, h("section", {}, h("h3", {}, "As it was"), parts(item.parts, marker)), h("section", {}, h("h3", {}, "As it is sent"), parts(item.after, marker))));
  } else {
    body.append(parts(item.parts, marker));
  }
}

function parts(list, marker) {
  if (list.length === 0) return h("p", { class: "faint" }, "nothing in it");
  return h("div", {}, list.map((p) => {
    const label = { text: "text", call: "calls " + (p.name ?? ""), result: p.error ? "result, an error" : "result", image: "image", reasoning: "reasoning", opaque: "other" }[p.type] ?? p.type;
    return h("div", { class: "part" }, p.type === "text" && list.length === 1 ? null : h("p", { class: "label" }, h("bdi", {}, label)), h("pre", { dir: "auto", class: p.error ? "error" : null }, marker(p.text)));
  }));
}

// marking returns a function that puts marks around what was needed later.
function marking(needs) {
  const by = new Map(needs.map((n) => [n.text, n]));
  const words = [...by.keys()].filter((t) => t.length > 1).sort((a, b) => b.length - a.length).map((t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return (text) => [text];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${words.join("|")})(?![\\p{L}\\p{N}_])`, "gu");
  return (text) => {
    const out = [];
    let at = 0;
    for (const m of text.matchAll(pattern)) {
      const n = by.get(m[0]);
      out.push(text.slice(at, m.index), h("mark", { class: n.state, title: needStates[n.state].words }, m[0], h("span", { class: "hush" }, ` (${needStates[n.state].words})`)));
      at = m.index + m[0].length;
    }
    out.push(text.slice(at));
    return out;
  };
}

