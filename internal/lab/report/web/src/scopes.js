import { $, $$, clear, figure, h, say } from "./dom.js";
import { number, signed, thousands } from "./format.js";
import * as Plot from "@observablehq/plot";
import { fitting, frame, intervals, textWidth } from "./plots.js";

const kindNames = { system: "system", user: "user", assistant: "assistant", reasoning: "reasoning", tool_call: "tool calls", tool_result: "tool results", image: "images" };

// scopes shows one mode and budget at a time, with its figures.
export function scopes(data) {
  const bar = $("#scope-bar");
  const sections = $$("section.scope");
  if (!bar || sections.length === 0) return;
  bar.hidden = false;
  const mode = $("#scope-mode");
  const budget = $("#scope-budget");
  for (const m of ["", ...data.modes]) mode.append(h("option", { value: m }, m === "" ? "all modes together" : m));
  for (const b of data.budgets) budget.append(h("option", { value: b }, b));
  budget.value = data.budgets[Math.floor((data.budgets.filter((b) => b.endsWith("%")).length || 1) / 2)] ?? data.budgets[0];
  const update = (spoken) => {
    let found = false;
    for (const s of sections) {
      const show = s.dataset.mode === mode.value && s.dataset.budget === budget.value;
      s.hidden = !show;
      if (show) {
        found = true;
        fill(data, s);
      }
    }
    $("#scope-none")?.remove();
    if (!found) bar.after(h("p", { id: "scope-none", class: "note" }, "No session of this mode can be cut under this budget."));
    if (spoken) say(found ? `numbers of ${mode.selectedOptions[0].text}, budget ${budget.value}` : "no session of this mode can be cut under this budget");
  };
  mode.addEventListener("change", () => update(true));
  budget.addEventListener("change", () => update(true));
  update(false);
  return (m, b) => {
    mode.value = m;
    budget.value = b;
    update(false);
  };
}

function fill(data, section) {
  if (section.dataset.filled) return;
  section.dataset.filled = "yes";
  const table = data.table(section.dataset.budget, section.dataset.mode);
  const kinds = $(".figure-kinds", section);
  if (kinds) kindFigure(data, table, kinds);
  const cost = $(".figure-cost", section);
  if (cost) costFigures(data, table, cost);
  pairs(data, table, $(".figure-pairs", section));
}

// kindFigure draws how many tokens of every kind are left, as percent of all before.
function kindFigure(data, table, place) {
  const lines = table.lines.filter((l) => l.cuts > l.failed);
  if (lines.length === 0) return;
  const kinds = data.kinds.filter((k) => lines.some((l) => l.kinds_before[k] || l.kinds_after[k]));
  const sum = (o) => kinds.reduce((n, k) => n + (o[k] ?? 0), 0);
  const bars = [];
  const order = ["before", ...lines.map((l) => data.strategy.get(l.strategy).label)];
  const add = (label, counts, total) => {
    for (const k of kinds) if (counts[k]) bars.push({ label, kind: k, x: (100 * counts[k]) / total, tokens: counts[k] });
  };
  const widest = lines.reduce((a, b) => (sum(b.kinds_before) > sum(a.kinds_before) ? b : a));
  add("before", widest.kinds_before, sum(widest.kinds_before));
  for (const l of lines) add(data.strategy.get(l.strategy).label, l.kinds_after, sum(l.kinds_before) || 1);
  const legend = h("ul", { class: "legend" }, kinds.map((k) => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(--k-${k})`;
    return h("li", {}, swatch, kindNames[k] ?? k);
  }));
  place.append(legend);
  figure(place, "Tokens left by content type and strategy, percent of all tokens before; the numbers are in the table below.", (width) => {
    const marginLeft = Math.min(width * 0.4, 16 + Math.max(...order.map((o) => textWidth(o))));
    return Plot.plot(
      frame(width, {
        height: 50 + 24 * order.length,
        marginLeft,
        marginRight: 16,
        marginBottom: 38,
        marginTop: 6,
        x: { label: "tokens left, % of all before", labelAnchor: "center", labelArrow: "none", grid: true, ticks: width > 500 ? 10 : 4, domain: [0, Math.max(100, 1)] },
        y: { domain: order, label: null, tickSize: 0, tickFormat: (t) => fitting(t, marginLeft - 10), padding: 0.18 },
        marks: [
          Plot.barX(bars, Plot.stackX({ y: "label", x: "x", order: kinds.map(String), z: "kind", fill: (b) => `var(--k-${b.kind})`, insetRight: 0.6, title: (b) => `${b.label}: ${kindNames[b.kind] ?? b.kind} ${thousands(b.tokens)} tokens, ${b.x.toFixed(1)} %` })),
          Plot.text(bars, Plot.stackX({ y: "label", x: "x", order: kinds.map(String), z: "kind", text: (b) => (b.x * (width - marginLeft) > 100 * 6.5 * (kindNames[b.kind] ?? b.kind).length + 600 ? kindNames[b.kind] ?? b.kind : ""), fill: (b) => `var(--on-${b.kind})`, fontSize: 11 })),
        ],
      }),
    );
  });
}

// costFigures draw time, turns to pay back and, if anything was paid, money.
function costFigures(data, table, place) {
  const grid = h("div", { class: "facets two" });
  const wanted = ["ms", "payback", "usd"];
  for (const name of wanted) {
    const measure = data.measure.get(name);
    if (!measure) continue;
    const items = [];
    for (const l of table.lines) {
      const e = l.values[name];
      const s = data.strategy.get(l.strategy);
      if (e && !(name !== "ms" && s.bound)) items.push({ label: s.label, colour: s.colour, mean: e.mean, low: e.low, high: e.high, text: number(measure.unit, e.mean) + (measure.unit === measure.title ? "" : ` ${measure.unit}`) });
    }
    if (items.length === 0 || (name === "usd" && items.every((i) => i.mean === 0))) continue;
    const log = name === "ms";
    if (log) for (const i of items) [i.low, i.mean, i.high] = [i.low, i.mean, i.high].map((v) => Math.max(v, 0.001));
    const values = items.flatMap((i) => [i.low, i.high]);
    const domain = log ? [10 ** Math.floor(Math.log10(Math.min(...values))), 10 ** Math.ceil(Math.log10(1.01 * Math.max(...values)))] : [0, 1.05 * Math.max(...values, 1e-9)];
    const facet = h("div", { class: "facet" });
    grid.append(facet);
    const caption = { ms: "Time for one condensation", payback: "Turns to break even", usd: "Cost of one condensation" }[name];
    figure(facet, `${caption}, by strategy; the numbers are in the table below.`, (width) => intervals(width, items, { domain, log, label: { ms: "milliseconds, logarithmic", payback: "turns", usd: "US dollars" }[name], format: log ? (v) => thousandsOrLess(v) : undefined }), caption);
  }
  if (grid.childElementCount > 0) place.append(grid);
}

const thousandsOrLess = (v) => (v >= 1 ? thousands(v) : String(Number(v.toPrecision(2))));

// pairs draws the paired differences of one strategy to all others, to be chosen.
function pairs(data, table, place) {
  const scope = data.pairs.filter((d) => d.budget === table.budget && d.mode === table.mode);
  if (scope.length === 0) return;
  const names = data.strategies.filter((s) => scope.some((d) => d.a === s.name || d.b === s.name)).map((s) => s.name);
  const measures = [...new Set(scope.map((d) => d.measure))];
  const panel = new Map(table.lines.map((l) => [l.strategy, l.values.panel?.mean ?? -1]));
  const fit = names.filter((n) => !data.strategy.get(n).unfit);
  const best = [...(fit.length ? fit : names)].sort((a, b) => panel.get(b) - panel.get(a))[0];
  const who = h("select", {}, names.map((n) => h("option", { value: n }, n)));
  who.value = best;
  const what = h("select", {}, measures.map((m) => h("option", { value: m }, data.measure.get(m)?.title ?? m)));
  const body = h("div");
  const draw = () => {
    clear(body);
    const reference = who.value;
    const items = scope
      .filter((d) => d.measure === what.value && (d.a === reference || d.b === reference))
      .map((d) => {
        const sign = d.a === reference ? -1 : 1;
        const other = d.a === reference ? d.b : d.a;
        const [low, high] = sign < 0 ? [-d.high, -d.low] : [d.low, d.high];
        const s = data.strategy.get(other);
        return { label: other, colour: s.colour, mean: sign * d.mean, low, high, hollow: !d.shown, shown: d.shown, sessions: d.sessions, text: signed(sign * d.mean) };
      })
      .sort((a, b) => b.mean - a.mean);
    const ends = items.flatMap((i) => [i.low, i.high, 0]);
    const pad = 0.04 * (Math.max(...ends) - Math.min(...ends)) || 0.05;
    const domain = [Math.min(...ends) - pad, Math.max(...ends) + pad];
    const title = data.measure.get(what.value)?.title ?? what.value;
    figure(body, `Differences in ${title} to ${reference}; the numbers are in the table below.`, (width) => intervals(width, items, { domain, zero: true, label: width < 430 ? "worse  ←  difference  →  better" : `worse than ${reference}  ←  difference in ${title}  →  better`, format: (v) => signed(v) }));
    const words = (i) => (i.shown ? (i.mean > 0 ? "better" : "worse") : "no difference shown");
    const head = h("tr", {}, ["strategy", `than ${reference}`, "difference", "sessions"].map((t, n) => h("th", { scope: "col", class: n > 1 ? "num" : null }, t)));
    const lines = items.map((i) =>
      h("tr", {},
        h("th", { scope: "row" }, h("bdi", {}, i.label)),
        h("td", { class: "words" }, words(i)),
        h("td", { "data-v": i.mean }, signed(i.mean), " ", h("small", {}, `${signed(i.low)} to ${signed(i.high)}`)),
        h("td", {}, thousands(i.sessions))));
    const table = h("table", { class: "data" }, h("thead", {}, head), h("tbody", {}, lines));
    body.append(h("details", { class: "numbers" }, h("summary", {}, "The numbers of this figure"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Differences to ${reference}` }, table)));
  };
  who.addEventListener("change", draw);
  what.addEventListener("change", draw);
  place.append(
    h("h4", {}, "Paired differences"),
    h("p", { class: "choice-line" }, h("label", {}, "To ", who), " ", h("label", {}, "in ", what)),
    h("p", { class: "hint" }, "Filled: the interval does not contain zero. Hollow: no difference shown."),
    body,
  );
  draw();
}

export { kindNames };
