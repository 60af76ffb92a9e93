// Asks the gateway for its conversations again and again, and shows them.
import { clock, group, h, plural, put, short, usd, visible, when } from "./dom.js";
import { actions, bar, card, curve, epochs, legend, lineOf, nextOf, numbers, table } from "./view.js";

const root = new URL(".", import.meta.url).pathname;
const one = decodeURIComponent(location.pathname.slice(root.length).match(/^conversations\/(.+)$/)?.[1] ?? "");
const $ = (id) => document.getElementById(id);
const every = 3000, recent = 15 * 60000;

// Where no token is needed, the secret of the user stands for it, and only this tab of the browser keeps it. 'condense live --open' gives
// it behind the #, which is sent to nobody.
const kept = "condense-orders";
if (location.hash.startsWith("#key=")) {
  sessionStorage.setItem(kept, decodeURIComponent(location.hash.slice(5)));
  history.replaceState(null, "", location.pathname);
}
async function ask(path, options = {}) {
  const secret = sessionStorage.getItem(kept);
  const answer = await fetch(root + path, { ...options, headers: { ...options.headers, ...(secret && { "X-Condense-Token": secret }) }, credentials: "same-origin" });
  if (answer.status !== 401 || !secret) return answer;
  sessionStorage.removeItem(kept); // a token is needed here, which the browser has asked for
  return ask(path, options);
}
async function answered(path, options) {
  const answer = await ask(path, options), body = await answer.json().catch(() => ({ error: answer.statusText }));
  if (!answer.ok) throw new Error(body.error);
  return body;
}

let data = null, live = null, version = "", since = "1h", awaySince = null;
const open = new Set(location.hash ? [location.hash.slice(1)] : []), views = new Map();

// joined are the conversations: what the gateway says of each, and what was measured of it.
function joined() {
  const measured = new Map((data?.conversations ?? []).map((m) => [m.of.id, m]));
  const all = [];
  for (const c of live?.conversations ?? []) {
    const ids = c.branches.filter((id) => measured.has(id));
    const m = ids.map((id) => measured.get(id)).sort((a, b) => b.of.last.localeCompare(a.of.last))[0];
    for (const id of ids) measured.delete(id);
    all.push({ id: m ? m.of.id : c.id, c, e: m?.of, faults: m?.faults, sub: Boolean(c.sub_agent), troubles: live.troubles?.[c.id], known: m !== undefined });
  }
  const oldest = Date.now() - { "1h": 3.6e6, "24h": 8.64e7 }[since] || 0;
  for (const m of measured.values())
    if (one === m.of.id || new Date(m.of.last) > oldest)
      all.push({ id: m.of.id, c: { id: m.of.id, branches: [m.of.id], agent: m.of.agent, model: m.of.model, last: m.of.last, size: m.of.tokens, window: m.of.window ?? 0, due_at: m.of.due_at, messages: m.of.messages, observed: m.of.observe, unlisted: true }, e: m.of, faults: m.faults, known: true });
  return all.sort((a, b) => new Date(b.c.last) - new Date(a.c.last));
}

// problems are what fails: since when, what it costs, what to do.
function problems(all) {
  const now = [], before = [], stats = data.stats;
  const add = (last, ...text) => (!last || Date.now() - new Date(last) < recent ? now : before).push(h("li", {}, text));
  for (const x of all) for (const t of x.troubles ?? []) add(null, h("a", { href: root + "conversations/" + x.id, "data-k": "trouble" + x.id }, lineOf(x.c)), ": " + t);
  const told = all.flatMap((x) => x.troubles ?? []).join("\n");
  (stats.failures ?? []).forEach((f, i) => {
    if (told.includes(f.reason)) return; // its conversation says more
    const what = f.kind.startsWith("vendor_") ? "The vendor refused" : f.kind === "commit" || f.kind === "epoch" ? "An epoch failed" : "Failed at " + f.kind;
    add(f.last, h("strong", {}, `${what}, ${plural(f.count, "time")} since ${clock(f.since)}`), `, the last time at ${clock(f.last)}: ${f.reason}`, data.advice?.[i] ? h("span", { class: "todo" }, " → " + data.advice[i]) : "");
  });
  for (const u of stats.unreachable ?? []) add(u.last, h("strong", {}, `${u.upstream} could not be reached, ${plural(u.count, "time")}`), `, the last time at ${clock(u.last)}, at ${u.address}: ${u.reason}`, h("span", { class: "todo" }, " → check the network and the address"));
  (stats.windows ?? []).forEach((w, i) => {
    if (!data.remedies?.[i]) return;
    add(null, w.truncated ? `The server of ${w.model} has cut ${plural(w.truncated, "prompt")} without a word: it took ${group(w.taken)} of about ${group(w.counted)} tokens, and the model does not see the rest.` : `The window of ${w.model} is not known, and ${group(w.window)} tokens are assumed.`, h("span", { class: "todo" }, " → " + data.remedies[i]));
  });
  for (const a of stats.attempts ?? []) if (["failed", "rejected", "skipped", "replaced"].includes(a.outcome)) add(a.last, h("strong", {}, `${a.provider} ${a.outcome === "skipped" ? "was skipped" : a.outcome === "failed" ? "failed" : "was " + a.outcome}, ${plural(a.count, "time")}`), `, the last time at ${clock(a.last)}${a.mode ? " in " + a.mode : ""}${a.reason ? ": " + a.reason : ""}`);
  if (stats.configuration_pending) add(null, h("strong", {}, "The changed configuration is not used: "), stats.configuration_pending);
  return [now.length ? h("section", { class: "note warn", "aria-labelledby": "fails" }, h("h2", { id: "fails" }, "What fails"), h("ul", {}, now)) : null,
    before.length ? h("details", { id: "earlier", open: open.has("earlier"), class: "faint" }, h("summary", { "data-k": "earlier" }, `What failed earlier: ${before.length}`), h("ul", {}, before)) : null];
}

const fact = (k, v) => h("div", {}, h("dt", {}, k), h("dd", {}, v));
const width = () => Math.round(Math.min(1000, $("main").clientWidth - (innerWidth < 736 ? 32 : 80)));

function overview(all) {
  const stats = data.stats, query = $("query").value.trim().toLowerCase();
  document.title = "condense";
  put($("head"), h("h1", {}, stats.requests ? "Conversations" : "Waiting for the first request"), stats.requests ? h("p", { class: "lead" }, data.sentence) : null, stats.observe ? h("p", { class: "note" }, "The gateway only observes: every request is sent as it comes, and nothing is changed or saved.") : null,
    stats.requests ? h("dl", { class: "facts sums" }, fact("Cost", usd(stats.cost)), fact(stats.cost_saved < 0 ? "Not paid yet" : "Saved", usd(Math.abs(stats.cost_saved))), fact("Tokens sent", short(stats.tokens.sent)), fact("Tokens saved", short(stats.tokens.saved)), fact("Epochs", group(stats.epoch_count)), fact("Recalls", group(stats.recalls))) : null);
  const words = (x) => [x.c.folder, x.c.title, x.c.agent, x.c.model, x.c.profile, x.c.sub_agent, x.id, x.c.id].join(" ").toLowerCase();
  const parentOf = (x) => x.sub && x.c.session ? all.find((o) => !o.sub && o.c.session === x.c.session && o.c.api === x.c.api) : null;
  const families = all.filter((x) => !parentOf(x)).map((x) => [x, all.filter((o) => parentOf(o) === x)]);
  const shown = families.filter(([x, subs]) => [x, ...subs].some((o) => query.split(/\s+/).every((w) => words(o).includes(w))));
  $("find").hidden = families.length === 0 && since === "1h";
  const counted = query ? `${shown.length} of ${plural(families.length, "conversation")}` : plural(families.length, "conversation");
  if ($("found").textContent !== counted) $("found").textContent = counted;
  put($("body"), shown.length ? [legend(), shown.map(([x, subs]) => card(x, root, width(), subs))] : h("p", { class: "empty" }, query ? "No conversation has these words." : stats.requests ? "No conversation was used lately." : ["Nothing has come through yet. Work with an agent that ", h("code", {}, "condense wrap"), " started, or point one here: its conversation appears with its first request."]));
  const modes = (data.modes ?? []).filter((m) => m.epochs > 0);
  put($("more"), stats.requests ? h("details", { id: "details", open: open.has("details") }, h("summary", { "data-k": "details" }, "More numbers"),
    h("p", { class: "hint" }, "An epoch replaces the beginning of a conversation by something shorter. That costs once, because the vendor caches it again, and saves with every answer after it. Compared with the client’s own history."),
    table("What epochs were worth", [["Mode"], ["Conversations", 1], ["Epochs", 1], ["Before", 1], ["After", 1], ["Have paid", 1], ["Saved since", 1], ["Recalls", 1]], modes.map((m) => [(m.mode ? "Mode " + m.mode : "All modes") + (m.observed ? ", only observed" : ""), group(m.conversations), group(m.epochs), group(m.before), group(m.after), m.epochs > (m.unpriced ?? 0) ? `${m.paid} of ${m.epochs - (m.unpriced ?? 0)}` : "–", m.epochs > (m.unpriced ?? 0) ? usd(m.cost_saved) : "–", group(m.recalls)]), "No epoch yet."),
    table("What providers did", [["Provider"], ["Mode or profile"], ["Outcome"], ["Times", 1], ["Last"], ["Why, the last time"]], (stats.attempts ?? []).map((a) => [a.provider, a.mode || "–", a.outcome, group(a.count), when(a.last), a.reason ?? ""]), "No provider was asked yet."),
    table("Recalled most", [["What"], ["Left out by"], ["Times", 1], ["Tokens", 1]], (stats.recalled ?? []).map((r) => [r.what, r.pass || "–", group(r.count), group(r.tokens)]), "Nothing was recalled."),
    h("p", { class: "faint" }, `${plural(stats.requests, "request")} since ${when(stats.since)}. ${stats.unpriced ? plural(stats.unpriced, "request") + " to models of unknown price are not in the cost. " : ""}${stats.estimated ? "Tokens and cost of " + plural(stats.estimated, "request") + " are estimated." : ""}`)) : null);
}

function conversation(all) {
  const x = all.find((o) => o.id === one || o.c.id === one || o.c.branches.includes(one));
  if (!x) return put($("body"), h("p", { class: "empty" }, "This conversation was not used lately. ", h("a", { href: root }, "All conversations")));
  const name = lineOf(x.c);
  document.title = visible(name) + " – condense";
  const parent = x.sub && all.find((o) => !o.sub && o.c.session && o.c.session === x.c.session && o.c.api === x.c.api);
  const subs = x.sub || !x.c.session ? [] : all.filter((o) => o.sub && o.c.session === x.c.session && o.c.api === x.c.api);
  put($("head"), h("nav", { class: "crumbs", "aria-label": "You are here" }, h("ol", {}, h("li", {}, h("a", { href: root, "data-k": "up" }, "All conversations")), parent ? h("li", {}, h("a", { href: root + "conversations/" + parent.id, "data-k": "parent" }, lineOf(parent.c))) : null)), h("h1", {}, x.sub ? "Sub-agent: " : "", name));
  put($("body"), bar(x.c, true), x.c.next ? h("p", { class: "next" + (x.troubles?.length ? " bad" : "") }, nextOf(x.c)) : null,
    x.c.unlisted ? null : actions(x),
    h("h2", {}, "Over time"), curve(x.e, x.c, "", width()) ?? h("p", { class: "faint" }, "The curve begins with the next request."), x.e?.curve?.length ? legend() : null,
    h("h2", { id: "epochs", tabindex: "-1" }, "Epochs"), epochs(x, x.faults, data.reasons, open, views),
    subs.length ? [h("h2", {}, "Sub-agents"), subs.map((o) => card(o, root, width()))] : null);
  put($("more"), h("h2", {}, "In numbers"), numbers(x));
  for (const e of x.e?.epochs ?? []) {
    const key = "epoch-" + (x.e.epochs.indexOf(e) + 1);
    if (!open.has(key) || views.has(e.time)) continue;
    views.set(e.time, undefined);
    const shown = x.c.unlisted ? Promise.reject(new Error("the conversation itself is no longer stored")) : answered(`live/${encodeURIComponent(x.c.id)}/epochs/${encodeURIComponent(e.time)}`);
    shown.then((v) => views.set(e.time, v), (fault) => views.set(e.time, { error: fault.message })).then(show);
  }
}

// show brings the page up to date with what is known.
function show() {
  if (!data) return;
  const all = joined();
  put($("alerts"), ...problems(one ? all.filter((x) => x.id === one || x.c.branches.includes(one)) : all));
  put($("keys"), live && !live.known && live.conversations.length ? h("form", { class: "note key" }, h("p", {}, "Titles, texts and buttons are for the user of this gateway: open this page with ", h("code", {}, "condense live --open"), ", or give the content of ", h("code", {}, "~/.local/state/condense/orders.key"), "."),
    h("label", {}, "Key ", h("input", { type: "password", name: "key", autocomplete: "off", "data-k": "key" })), h("button", { type: "submit", "data-k": "key-do" }, "Show them")) : null);
  if (one) conversation(all);
  else overview(all);
}

async function refresh(again) {
  if (!document.hidden) {
    try {
      const [measured, list] = await Promise.all([ask("data" + (one ? "?conversation=" + encodeURIComponent(one) : ""), { headers: { "X-Version": version } }), ask("live?since=" + (one ? "720h" : since))]);
      if (measured.status >= 400 || list.status >= 400) throw new Error((await measured.text()).slice(0, 200));
      if (measured.status === 200) [version, data] = [measured.headers.get("X-Version"), await measured.json()];
      live = await list.json();
      awaySince = null;
    } catch {
      awaySince ??= Date.now();
    }
    const away = awaySince ? `The gateway does not answer since ${clock(awaySince)}: is it running? This page asks again.` : "";
    if ($("away").textContent !== away) $("away").textContent = away;
    if (!getSelection().toString()) show();
  }
  if (again) setTimeout(refresh, every, true);
}

// act asks for something that is done with the next request, and says what was answered.
async function act(action, said, body = "{}") {
  const x = joined().find((o) => o.id === one || o.c.branches.includes(one)), path = "live/" + encodeURIComponent(x.c.id) + "/";
  try {
    if (action === "undo") {
      const plan = await answered(path + "undo"), cost = plan.priced ? ` It costs about ${usd(plan.cost)} in place of ${usd(plan.instead)}, and ${usd(plan.each)} more with every request after.` : "";
      $("ask-text").textContent = `The next request sends about ${group(plan.size)} tokens.${cost}`;
      $("ask").returnValue = "";
      $("ask").showModal();
      await new Promise((done) => $("ask").addEventListener("close", done, { once: true }));
      if ($("ask").returnValue !== "yes") return;
    }
    await answered(path + action, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    $("said").textContent = said;
  } catch (fault) {
    $("said").textContent = fault.message;
  }
  await refresh();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button) act(button.dataset.do, button.dataset.said, button.dataset.body);
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.closest("dialog")) return;
  event.preventDefault();
  if (form.matches(".protect")) {
    const text = form.elements.text.value;
    form.reset();
    act("protect", "It is kept verbatim from now on.", JSON.stringify({ text }));
  } else if (form.matches(".key")) {
    sessionStorage.setItem(kept, form.elements.key.value.trim());
    form.reset();
    views.clear();
    refresh().then(() => { if (!live?.known) $("said").textContent = "That is not the key."; });
  } else document.querySelector("#body .title a")?.focus();
});
document.addEventListener("toggle", (event) => {
  const e = event.target;
  if (!e.id || e.open === open.has(e.id)) return;
  if (e.open) open.add(e.id);
  else open.delete(e.id);
  show();
}, true);
$("query").addEventListener("input", show);
$("query").addEventListener("keydown", (event) => {
  if (event.key === "Escape" && $("query").value) {
    event.preventDefault();
    $("query").value = "";
    show();
  }
});
$("since").addEventListener("change", () => {
  since = $("since").value;
  refresh();
});
// An epoch that a mark of a curve leads to is opened.
function jump() {
  const id = location.hash.slice(1);
  if (!/^epoch-\d+$/.test(id)) return;
  open.add(id);
  show();
  const e = $(id);
  e?.scrollIntoView();
  e?.querySelector("summary").focus({ preventScroll: true });
}
addEventListener("hashchange", jump);
addEventListener("resize", show);
document.addEventListener("visibilitychange", () => document.hidden || refresh());
refresh(true).then(jump);
