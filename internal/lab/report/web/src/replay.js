import { $, $$, clear, figure, h, say } from "./dom.js";
import { number, plural, thousands } from "./format.js";
import * as Plot from "@observablehq/plot";
import { direct, fitting, frame, halfOf, textWidth } from "./plots.js";

const colours = 8;
const symbols = ["circle", "square", "triangle", "diamond", "wye", "cross", "hexagon"];

// replay draws the page of whole sessions: money against loss, and a session's life.
export function replay(data) {
  data.policies = data.policies.map((name, i) => ({ name, index: i, colour: i === 0 ? "var(--ink)" : `var(--s${(i - 1) % colours})`, symbol: i === 0 ? "star" : symbols[(i - 1) % symbols.length] }));
  data.policy = new Map(data.policies.map((p) => [p.name, p]));
  money(data);
  life(data);
}

function choice(label, options, onchange) {
  const select = h("select", { onchange }, options.map(([value, text]) => h("option", { value }, text)));
  return { select, label: h("label", {}, label + " ", select) };
}

function money(data) {
  const sections = $$(".replay-scope");
  const place = $("#money-figure");
  if (sections.length === 0) return;
  $("#replay-bar").hidden = false;
  const tariff = $("#replay-tariff");
  const scope = $("#replay-scope");
  for (const t of data.tariffs) tariff.append(h("option", { value: t }, t));
  for (const [name, title] of new Map(sections.map((s) => [s.dataset.scope, s.dataset.title]))) scope.append(h("option", { value: name }, title));
  const update = (spoken) => {
    for (const s of sections) s.hidden = s.dataset.scope !== scope.value || s.dataset.tariff !== tariff.value;
    clear(place);
    const points = data.points.filter((p) => p.scope === scope.value && p.tariff === tariff.value).map((p) => ({
      policy: data.policy.get(p.policy), sessions: p.sessions,
      x: 100 * (1 - p.cheaper.mean), x1: 100 * (1 - p.cheaper.high), x2: 100 * (1 - p.cheaper.low),
      y: 100 * p.lost.mean, y1: 100 * p.lost.low, y2: 100 * p.lost.high,
    }));
    const where = `${scope.selectedOptions[0].text}, prices of ${tariff.value}`;
    if (points.length > 0) figure(place, `Money against loss, ${where}: ${plural(points.length, "policy", "policies")}; the numbers are in the table below.`, (width) => scatter(width, points));
    if (spoken) say(`numbers of ${where}`);
  };
  tariff.addEventListener("change", () => update(true));
  scope.addEventListener("change", () => update(true));
  update(false);
}

function scatter(width, points) {
  const marginRight = Math.min(28 + Math.max(...points.map((p) => textWidth(p.policy.name))), width * 0.42);
  const height = Math.max(width > 620 ? 380 : 300, 80 + 14 * points.length);
  const low = Math.min(...points.map((p) => p.x1));
  const high = Math.max(...points.map((p) => p.x2));
  const room = Math.max(1, (high - low) * 0.06);
  const top = Math.max(0.5, 1.08 * Math.max(...points.map((p) => p.y2)));
  const svg = Plot.plot(
    frame(width, {
      height,
      marginRight,
      marginLeft: 44,
      marginBottom: 40,
      marginTop: 22,
      x: { label: "cost, % of the untouched session", labelAnchor: "center", labelArrow: "none", domain: [Math.max(0, low - room), high + room], grid: true, ticks: width > 500 ? 8 : 4 },
      y: { label: "lost in use, %", labelArrow: "none", domain: [0, top], grid: true, ticks: 5 },
      symbol: { type: "identity" },
      marks: [
        Plot.ruleX([100], { stroke: "var(--ink)", strokeDasharray: "2 3" }),
        Plot.ruleY(points.filter((p) => p.x1 !== p.x2), { y: "y", x1: "x1", x2: "x2", stroke: (p) => p.policy.colour, strokeWidth: 1.2, strokeOpacity: 0.65 }),
        Plot.ruleX(points.filter((p) => p.y1 !== p.y2), { x: "x", y1: "y1", y2: "y2", stroke: (p) => p.policy.colour, strokeWidth: 1.2, strokeOpacity: 0.65 }),
        Plot.dot(points, { x: "x", y: "y", fill: (p) => p.policy.colour, symbol: (p) => p.policy.symbol, r: 5, stroke: "var(--paper)", strokeWidth: 0.8 }),
        Plot.tip(points, Plot.pointer({ x: "x", y: "y", fill: "var(--paper)", stroke: "var(--rule)", title: (p) => `${p.policy.name}, ${plural(p.sessions, "session")}\ncost ${p.x.toFixed(1)} % (${p.x1.toFixed(1)}–${p.x2.toFixed(1)})\nlost in use ${p.y.toFixed(2)} % (${p.y1.toFixed(2)}–${p.y2.toFixed(2)})` })),
      ],
    }),
  );
  return direct(svg, points.map((p) => ({ x: p.x, y: p.y, colour: p.policy.colour, label: fitting(p.policy.name, marginRight - 24) })), width, marginRight, 14, height - 40);
}

function life(data) {
  const place = $("#session-life");
  if (data.plays.length === 0) {
    place.append(h("p", { class: "note" }, "The requests of no session are included in this page."));
    return;
  }
  const find = (s, p, t) => data.plays.find((x) => x.session === s && x.policy === p && x.tariff === t);
  // At first, the longest session and the policy that condenses it most often.
  const long = data.plays.reduce((a, b) => (b.size.length > a.size.length ? b : a)).session;
  const first = data.plays.filter((p) => p.session === long).reduce((a, b) => ((b.epochs ?? []).length > (a.epochs ?? []).length ? b : a));
  const update = () => draw(true);
  const session = choice("Session", data.sessions.map((name, i) => [i, name]), update);
  const policy = choice("Policy", data.policies.map((p) => [p.index, p.name]), update);
  const tariff = choice("Prices of", data.tariffs.map((name, i) => [i, name]), update);
  session.select.value = first.session;
  policy.select.value = first.policy;
  tariff.select.value = first.tariff;
  const box = h("div", { id: "life-figure" });
  place.append(h("p", { class: "choice-line" }, session.label, policy.label, tariff.label), box);
  const draw = (spoken) => {
    const [s, p, t] = [session, policy, tariff].map((c) => Number(c.select.value));
    clear(box);
    const play = find(s, p, t);
    if (!play) {
      box.append(h("p", { class: "note" }, "This session was not played under this policy."));
      return;
    }
    const name = data.policies[p].name;
    box.append(...shown(data, play, find(s, 0, t), name));
    if (spoken) say(`${data.sessions[s]} under ${name}: ${plural((play.epochs ?? []).length, "epoch")}`);
  };
  draw(false);
}

// shown returns what the page has of one session under one policy.
function shown(data, play, plain, name) {
  const epochs = play.epochs ?? [];
  const sum = (l) => l.reduce((a, b) => a + b, 0);
  const sent = sum(play.size);
  const fact = (dt, dd) => h("div", {}, h("dt", {}, dt), h("dd", {}, dd));
  const legend = [["k-user", "read from the cache"], ["k-tool_call", "not in the cache"]];
  if (plain && plain !== play) legend.push(["grey", "size untouched (line)"]);
  const chart = h("div");
  const out = [
    h("dl", { class: "facts" },
      fact("Cost", `${number("USD", play.usd)} USD, ${play.plain > 0 ? `${((100 * play.usd) / play.plain).toFixed(1)} % of untouched` : "untouched is free"}`),
      fact("Requests", thousands(play.size.length)),
      fact("Sent", `${thousands(sent)} tokens, ${((100 * sum(play.cached)) / Math.max(1, sent)).toFixed(1)} % from the cache`),
      fact("Largest prompt", `${thousands(Math.max(0, ...play.size))} tokens`),
      fact("Epochs", thousands(epochs.length)),
      play.had === null ? null : fact("Lost in use", `${(100 * (1 - play.had)).toFixed(2)} %`)),
    play.error ? h("p", { class: "note warn" }, `A condensation failed: ${play.error}`) : null,
    chart,
    h("ul", { class: "legend" }, legend.map(([colour, text]) => {
      const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(--${colour})`;
      return h("li", {}, swatch, text);
    }), epochs.length > 0 ? h("li", {}, h("span", { "aria-hidden": "true" }, "┆"), "epoch") : null),
    epochs.length > 0 ? epochTable(epochs) : h("p", {}, "No epoch: it was never condensed."),
    requestTable(play, plain, epochs),
  ];
  figure(chart, `Tokens of every request under ${name}, with what the cache served and ${plural(epochs.length, "epoch")}; the numbers are in the tables below.`, (width) => lifeChart(width, play, plain !== play ? plain : null));
  return out.filter((e) => e);
}

const opened = (words) => words.replaceAll("_", " ");

function lifeChart(width, play, plain) {
  const n = play.size.length;
  // Steps that are one request wide.
  const steps = (list) => (list.length === 0 ? [] : [{ x: 0.5, y: list[0] }, ...list.map((y, i) => ({ x: i + 1, y })), { x: list.length + 0.5, y: list[list.length - 1] }]);
  const size = steps(play.size);
  const most = Math.max(1, ...play.size, ...(plain?.size ?? []));
  const requests = Math.max(n, plain?.size.length ?? 0, 1);
  const epochs = (play.epochs ?? []).map((e) => ({ ...e, x: e.request + 0.5 }));
  return Plot.plot(
    frame(width, {
      height: width > 620 ? 320 : 260,
      marginLeft: 14 + Math.ceil(textWidth(thousands(most))),
      marginRight: halfOf(thousands(requests), 14),
      marginTop: 24,
      marginBottom: 38,
      x: { label: "request", labelAnchor: "center", labelArrow: "none", domain: [0.5, requests + 0.5], ticks: Math.min(requests, width > 600 ? 10 : 5), tickFormat: (v) => (Number.isInteger(v) ? thousands(v) : "") },
      y: { label: "tokens", labelArrow: "none", domain: [0, most * 1.04], grid: true, ticks: 5, tickFormat: (v) => thousands(v) },
      marks: [
        Plot.areaY(size, { x: "x", y: "y", curve: "step", fill: "var(--k-tool_call)" }),
        Plot.areaY(steps(play.cached), { x: "x", y: "y", curve: "step", fill: "var(--k-user)" }),
        plain ? Plot.lineY(steps(plain.size), { x: "x", y: "y", curve: "step", stroke: "var(--grey)", strokeWidth: 1.4 }) : null,
        Plot.ruleX(epochs, { x: "x", stroke: "var(--ink)", strokeDasharray: "4 3", strokeWidth: 1.4 }),
        Plot.dot(epochs, { x: "x", y: most * 1.04, dy: -6, symbol: "triangle", rotate: 180, r: 4, fill: "var(--ink)", title: (e) => `epoch at request ${e.request + 1}, ${opened(e.reason)}: ${thousands(e.before)} → ${thousands(e.after)} tokens` }),
        Plot.tip(play.size.map((y, i) => ({ x: i + 1, y, cached: play.cached[i] ?? 0 })), Plot.pointerX({ x: "x", y: "y", fill: "var(--paper)", stroke: "var(--rule)", title: (p) => `request ${thousands(p.x)}\n${thousands(p.y)} tokens\n${thousands(p.cached)} from the cache` })),
      ],
    }),
  );
}

function table(label, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: "data" }, h("caption", { class: "hush" }, label),
      h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col", class: t.startsWith(">") ? "num" : null }, t.replace(">", ""))))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((c, i) => (i === 0 ? h("th", { scope: "row" }, c) : h("td", { class: heads[i].startsWith(">") ? null : "words" }, c))))))));
}

function epochTable(epochs) {
  const share = (v) => (v === undefined || v === null ? "–" : number("share", v));
  return table("Epochs", ["epoch", ">before request", "because of", ">tokens before", ">after", ">pays after turns, foreseen", ">and did", ">panel", ">user’s words"],
    epochs.map((e, i) => [String(i + 1), thousands(e.request + 1), opened(e.reason), thousands(e.before), thousands(e.after), e.predicted === undefined ? "never" : e.predicted.toFixed(1), e.paid === undefined ? "no" : thousands(e.paid), share(e.panel), share(e.user)]));
}

function requestTable(play, plain, epochs) {
  const at = new Set(epochs.map((e) => e.request));
  const details = h("details", { class: "numbers", ontoggle: () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(table("Requests", [">request", ">tokens sent", ">from the cache", ">untouched", "epoch before it"],
      play.size.map((n, i) => [thousands(i + 1), thousands(n), thousands(play.cached[i] ?? 0), plain?.size[i] === undefined ? "–" : thousands(plain.size[i]), at.has(i) ? "yes" : ""])));
  } }, h("summary", {}, "The numbers of this figure"));
  return details;
}
