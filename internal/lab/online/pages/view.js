// Draws conversations: how full they are and of what, their curve, and each epoch as a difference.
import { clock, group, h, plural, s, short, usd, when } from "./dom.js";

const parts = [["system", "system prompt"], ["tools", "tools"], ["condensed", "condensed before"], ["person", "person"], ["results", "results"], ["model", "model"]];

// lineOf begins a title: the last folder, and the first words of the person.
export const lineOf = (c) => {
  const folder = c.folder?.split(/[\\/]/).filter(Boolean).pop();
  return [folder, c.title].filter(Boolean).join(" · ") || [c.agent || "unknown agent", c.model].filter(Boolean).join(", ");
};

const dueOf = (c) => c.due_at || 0;
const fullOf = (c) => (c.window ? c.size / c.window : 0);

// bar shows how full the window is, and of what.
export function bar(c, large) {
  const scale = Math.max(c.window, c.size, 1), made = parts.filter(([k]) => c.parts?.[k] > 0);
  const sum = made.reduce((n, [k]) => n + c.parts[k], 0);
  const share = (n) => (100 * n) / scale + "%";
  const pieces = made.length ? made.map(([k, name]) => [k, name, (c.parts[k] / sum) * c.size]) : [["all", "sent", c.size]];
  const due = dueOf(c);
  const told = [`${group(c.size)} of ${c.window ? group(c.window) : "unknown"} tokens`, due ? `condenses at ${group(due)}` : "", ...(made.length ? pieces.map(([, name, n]) => `${name} ${group(n)}`) : [])].filter(Boolean).join("; ");
  return h("div", { class: "fill" },
    h("p", { class: "size" }, h("strong", {}, short(c.size)), c.window ? ` of ${short(c.window)} tokens` : " tokens", c.window ? h("span", { class: "share" + (due && c.size >= due ? " full" : "") }, Math.round(100 * fullOf(c)) + " %") : ""),
    h("div", { class: "bar", role: "img", "aria-label": told },
      pieces.map(([k, name, n]) => h("span", { class: "piece p-" + k, title: `${name}: ${group(n)}`, style: { width: share(n) } })),
      due > 0 && due < scale ? h("span", { class: "tick due", style: { left: share(due) } }) : null,
      c.window && c.window < scale ? h("span", { class: "tick window", style: { left: share(c.window) } }) : null),
    large && made.length ? h("ul", { class: "legend parts" }, pieces.map(([k, name, n]) => h("li", { class: "p-" + k }, `${name} ${short(Math.round(n))}`)), due ? h("li", { class: "due" }, `condenses at ${short(due)}`) : null) : null);
}

// curve draws the sizes of the client's history and of what was sent, request by request, below the window. Before the first epoch it
// shows where that is expected. A history that no vendor would take leaves the picture at the top.
export function curve(e, c, page, width, small) {
  const points = e?.curve ?? [];
  if (points.length === 0) return null;
  const window = c?.window || e.window || 0, due = (c ? c.due_at : e.due_at) || 0;
  const height = small ? 170 : width < 500 ? 200 : 250, left = 40, right = 8, top = 20, bottom = 22;
  const full = Math.max(1, window, due, ...points.map((p) => p.sent)), last = points.length - 1, at = points[last];
  const highest = Math.max(full, Math.min(1.3 * full, ...[Math.max(...points.map((p) => p.history))]));
  const ahead = c && c.due_in > 0 && points.length > 2 && !e.observe ? Math.min(c.due_in, points.length) : 0;
  const span = Math.max(1, last + ahead);
  const x = (i) => left + (i * (width - left - right)) / span;
  const y = (n) => height - bottom - (n * (height - top - bottom)) / highest;
  const line = (cls, of) => s("polyline", { class: cls, points: points.map((p, i) => `${x(i).toFixed(1)},${y(of(p)).toFixed(1)}`).join(" ") });
  const level = (cls, n, text, below) => [
    s("line", { class: cls, x1: left, x2: width - right, y1: y(n).toFixed(1), y2: y(n).toFixed(1) }),
    s("text", { class: "level", x: left + 4, y: (below ? y(n) + 13 : y(n) - 4).toFixed(1) }, text)];
  const epochs = e.epochs ?? [], near = due > 0 && window > 0 && y(due) - y(window) < 18;
  const ticks = window ? [0, window / 2, window] : [0, full / 2, full];
  const told = `After ${plural(e.turns, "request")} the client has ${group(at.history)} tokens and ${group(at.sent)} are sent` +
    (window ? `, of a window of ${group(window)}` : "") + (due ? `; condenses at ${group(due)}` : "") + (epochs.length ? `; ${plural(epochs.length, "epoch")}.` : "; no epoch yet.");
  return s("svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": told },
    ticks.map((n) => [
      s("line", { class: "grid", x1: left, x2: width - right, y1: y(n), y2: y(n) }),
      s("text", { class: "grid", x: left - 6, y: y(n) + 4, "text-anchor": "end" }, short(Math.round(n)))]),
    s("text", { class: "grid", x: left, y: height - 6 }, "first request"),
    last > 0 && x(last) > left + 150 ? s("text", { class: "grid", x: x(last), y: height - 6, "text-anchor": x(last) > width - 60 ? "end" : "middle" }, `request ${group(e.turns)}`) : null,
    window ? level("window", window, "window") : null,
    due && due !== window ? level("due", due, `condenses at ${short(due)}`, near) : null,
    line("history", (p) => p.history), line("sent", (p) => p.sent),
    y(at.history) < 0 ? s("text", { class: "grid", x: width - right, y: 11, "text-anchor": "end" }, `history ${short(at.history)} ↑`) : null,
    points.length === 1 ? s("circle", { class: "now", cx: x(0), cy: y(at.sent), r: 4 }) : null,
    ahead ? s("line", { class: "ahead", x1: x(last), y1: y(at.sent), x2: x(last + ahead), y2: y(at.sent + ((due - at.sent) * ahead) / c.due_in) }) : null,
    points.map((p, i) => {
      const n = p.epoch ? epochs.findIndex((o) => o.time === p.t) : -1;
      if (n < 0) return null;
      const says = `Epoch ${n + 1}: ${group(epochs[n].before)} to ${group(epochs[n].after)} tokens`;
      return s("a", { href: `${page}#epoch-${n + 1}`, "aria-label": says, "data-k": "mark" + e.id + n }, s("title", {}, says), s("circle", { cx: x(i), cy: y(p.sent), r: 6 }));
    }));
}

export const legend = () => h("ul", { class: "legend lines" }, [["history", "the client’s history"], ["sent", "sent in its place"], ["ahead", "expected"], ["due", "condenses at"], ["window", "window"], ["mark", "epoch: opens it"]].map(([k, text]) => h("li", { class: k }, text)));

const saved = (v, observed) => (observed ? "would have saved " : v < 0 ? "has cost " : "saved ") + usd(Math.abs(v));

// card is a conversation in the list, with its sub-agents.
export function card(x, root, width, subs) {
  const { c, e } = x, link = root + "conversations/" + x.id, n = e?.epochs?.length || c.epochs || 0;
  const beside = width > 820, drawn = subs ? curve(e, c, link, beside ? Math.round(width * 0.42) : width, true) : null;
  return h("article", { class: "card" + (subs ? "" : " sub"), "data-conversation": x.id },
    h("div", { class: drawn && beside ? "pair" : null },
      h("div", {},
        h(subs ? "h2" : "h3", { class: "title" }, x.sub ? h("span", { class: "tag" }, "sub-agent") : null, h("a", { href: link, "data-k": "open" + x.id }, lineOf(c))),
        h("p", { class: "faint meta" }, [c.agent, c.model, when(c.last), n ? plural(n, "epoch") : "", recalls(e), c.money || (e && n && e.cost_saved && !e.unpriced ? saved(e.cost_saved, e.observe) : "")].filter(Boolean).join(" · ")),
        c.folder && !x.sub ? h("p", { class: "faint folder" }, c.folder) : null,
        bar(c, subs), c.next ? h("p", { class: "next" + (x.troubles?.length ? " bad" : "") }, nextOf(c)) : null),
      drawn),
    subs?.length ? h("section", { class: "subs", "aria-label": "Sub-agents" }, subs.map((o) => card(o, root, width))) : null);
}

// nextOf says when the next epoch is due, or what keeps it off.
export const nextOf = (c) => (/^[A-Z]{2}/.test(c.next) ? c.next : "Next epoch: " + c.next);

const recalls = (e) => {
  const n = (e?.epochs ?? []).reduce((sum, o) => sum + o.recalls, 0);
  return n ? plural(n, "recall") : "";
};

const facts = (rows) => h("dl", { class: "facts" }, rows.filter(Boolean).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))));

// actions are the buttons of a conversation, each only where it does something.
export function actions(x) {
  const { c } = x;
  if (c.observed) return h("p", { class: "note" }, "This gateway only observes: it changes nothing, so there is nothing to direct.");
  const pending = c.order, last = c.last_order;
  const button = (action, text, said) => h("button", { type: "button", "data-do": action, "data-said": said, "data-k": action }, text);
  return h("section", { class: "hand", "aria-label": "Direct this conversation" },
    h("p", { class: "actions" },
      pending ? null : button("now", "Condense now", "It is condensed before its next request."),
      c.condensed && !c.undone && pending?.do !== "undo" ? button("undo", "Undo the last condensation", "Its last condensation is undone with the next request.") : null,
      c.paused ? button("resume", "Resume", "It is condensed as ever.") : button("pause", "Pause", "It is condensed only where the vendor would refuse it.")),
    pending ? h("p", { class: "faint" }, `Ordered: ${pending.do}, ` + (pending.waits ? "waits: " + pending.waits : "with the next request.")) : null,
    last ? h("p", { class: "faint" }, last.changed ? `Last order: ${last.do}, ${group(last.before)} to ${group(last.after)} tokens.` : `Last order: ${last.do} changed nothing: ${last.result}`) : null,
    h("form", { class: "protect" }, h("label", {}, "Keep verbatim ", h("input", { name: "text", "data-k": "protect", autocomplete: "off", minlength: "3", placeholder: "a text in its messages" })), h("button", { type: "submit", "data-k": "protect-do" }, "Protect")),
    c.protections?.length ? h("ul", { class: "protected", "aria-label": "Protected" }, c.protections.map((p, i) => h("li", {}, h("span", {}, p.text ? `“${p.text}”` : `message ${p.message}`),
      h("button", { type: "button", "data-do": "unprotect", "data-said": "It is no longer protected.", "data-body": JSON.stringify(p.text ? { text: p.text } : { message: p.message }), "data-k": "unprotect" + i }, "Remove")))) : null);
}

// said is a message of a view: its first line, and the rest on request.
function said(m, key, open, counts, what) {
  const text = m.text || "(no text)", first = text.split("\n").find((l) => l.trim()) || text;
  const kind = what ?? (m.number ? `${m.number} ` : "") + m.role;
  return h("li", {}, h("details", { id: key, open: open.has(key) }, h("summary", { "data-k": key }, h("span", { class: "who" }, kind), h("span", { class: "excerpt" }, [...counts.keys()].some((k) => text.includes("h:" + k)) ? h("mark", { class: "kept" }, "recalled") : "", " ", first.slice(0, 200)), h("span", { class: "faint" }, short(Math.ceil(text.length / 4)))),
    open.has(key) ? h("pre", { tabindex: "0", class: "scroll" }, marked(text.length > 60000 ? text.slice(0, 60000) + "\n[… the rest: condense live show]" : text, counts)) : null));
}

// marked marks the handles in a text that were recalled.
function marked(text, counts) {
  const out = [];
  for (const piece of text.split(/(h:[a-z0-9]+)/)) {
    const n = counts.get(piece.slice(2));
    out.push(piece.startsWith("h:") && n ? h("mark", { class: "kept" }, `${piece} (recalled ${n === 1 ? "once" : n + " times"})`) : piece);
  }
  return out;
}

// difference is what an epoch changed: what went, and what stands for it.
function difference(id, view, epoch, open) {
  const counts = new Map((epoch.pieces ?? []).map((p) => [p.handle, p.count]));
  const gone = view.messages.filter((m) => m.hidden), now = view.messages.filter((m) => !m.hidden && m.condensed), kept = view.messages.filter((m) => !m.hidden && !m.condensed);
  const column = (title, all, what, none) => h("section", {}, h("h3", {}, `${title} `, h("span", { class: "count" }, plural(all.length, "message"))), all.length ? h("ol", { class: "said" }, all.map((m, i) => said(m, `${id}-${what}${i}`, open, counts, what === "gone" && m.condensed ? "earlier epoch" : undefined))) : h("p", { class: "faint" }, none));
  return h("div", {},
    h("div", { class: "diff" },
      column("What went", gone, "gone", view.unknown ? "" : "Nothing."),
      column("What stands for it", now, "now", "Nothing: they are left out.")),
    view.unknown ? h("p", { class: "faint" }, `${plural(view.unknown, "message")} that went are not stored, because the agent cannot recall.`) : null,
    kept.length ? h("p", { class: "faint" }, `${plural(kept.length, "message")} of the replaced part stayed as they were.`) : null);
}

// epochs lists the epochs of a conversation, the newest first.
export function epochs(x, faults, reasons, open, views) {
  const all = x.e?.epochs ?? [], undone = x.c.undone;
  if (!all.length) return h("p", { class: "faint" }, "No epoch yet. Each will be listed here with what went and what stands for it.");
  return all.map((e, i) => {
    const key = "epoch-" + (i + 1), view = views.get(e.time), latest = i === all.length - 1;
    return h("details", { class: "epoch", id: key, open: open.has(key), "data-began": e.time },
      h("summary", { "data-k": key }, h("strong", {}, `Epoch ${i + 1}`), h("span", { class: "move" }, `${short(e.before)} → ${short(e.after)}`), h("span", { class: "faint" }, [clock(e.time), reasons[e.reason] || e.reason, e.provider ? "by " + e.provider : "", e.recalls ? `recalled ${e.recalls === 1 ? "once" : e.recalls + " times"}` : ""].filter(Boolean).join(" · ")),
        undone && latest ? h("span", { class: "tag warn" }, "undone") : null, e.fallback ? h("span", { class: "tag warn" }, "in place of another") : null, e.observed ? h("span", { class: "tag" }, "only observed") : null),
      !open.has(key) ? null : [
        e.cause ? h("p", { class: "note warn" }, `Condensed by ${e.provider || "another"} in place of another provider: ${e.cause}`) : null,
        e.words_lost ? h("p", { class: "note warn" }, `${plural(e.words_lost, "token")} of the user’s words were left out.`) : null,
        (faults?.[i] ?? []).map((f) => h("p", { class: "note warn" }, f)),
        facts([["Before", group(e.before)], ["After", group(e.after)], ["Cache read", group(e.cache_read)], ["Cache written", group(e.cache_write)], e.unpriced ? null : ["Since", saved(e.cost_saved, e.observed)], e.unpriced || !e.turns ? null : ["Paid for itself", e.paid_at ? `after ${plural(e.paid_at, "answer")}` : "not yet"], e.turns ? ["Expected", `after ${e.turns.toFixed(1)}`] : null]),
        (e.pieces ?? []).length ? h("section", {}, h("h3", {}, "Recalled of it later"), h("ul", { class: "recalled" }, e.pieces.map((p) => h("li", {}, `${p.what || "text"}`, h("span", { class: "faint" }, [` h:${p.handle}`, p.count > 1 ? p.count + " times" : "once", p.tokens ? plural(p.tokens, "token") : "", p.pass ? "left out by " + p.pass : ""].filter(Boolean).join(" · ")))))) : e.recalls ? h("p", { class: "faint" }, `Recalled ${plural(e.recalls, "time")}, ${plural(e.recalled, "token")}.`) : h("p", { class: "faint" }, "Nothing of it was recalled later."),
        view === undefined ? h("p", { class: "faint" }, "Reading …") : view.error ? h("p", { class: "faint" }, "What went is not shown: " + view.error) : difference(key, view, e, open)]);
  }).reverse();
}

// details are the numbers of one conversation.
export const numbers = (x) => {
  const { c, e } = x;
  return facts([["Agent", c.agent || "unknown"], ["Model", c.model || "–"], c.profile || e?.mode ? ["Mode or profile", c.profile || e.mode] : null, ["Messages", group(c.messages)], e ? ["Requests", group(e.turns)] : null,
    c.history ? ["The client’s own history", group(c.history)] : null, e ? ["Cost", usd(e.cost)] : null, e ? [e.observe ? "Would have saved" : e.cost_saved < 0 ? "Not paid yet" : "Saved", usd(e.observe ? e.cost_saved : Math.abs(e.cost_saved))] : null, e?.input ? ["From the cache", Math.round((100 * e.cache_read) / e.input) + " %"] : null, ["Last request", when(c.last)], c.folder ? ["Folder", c.folder] : null]);
};

// table is a table that scrolls sideways by itself.
export const table = (title, heads, rows, none) => h("section", {}, h("h3", {}, title), rows.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title, "data-k": title }, h("table", { class: "data" },
  h("thead", {}, h("tr", {}, heads.map(([text, num]) => h("th", { scope: "col", class: num ? "num" : null }, text)))),
  h("tbody", {}, rows.map((r) => h("tr", {}, r.map((v, i) => (i === 0 ? h("th", { scope: "row" }, v) : h("td", { class: heads[i][1] ? null : "words" }, v)))))))) : h("p", { class: "faint" }, none));
