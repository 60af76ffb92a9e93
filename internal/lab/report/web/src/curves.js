import { $, clear, figure, h, say } from "./dom.js";
import { families } from "./data.js";
import { number } from "./format.js";
import * as Plot from "@observablehq/plot";
import { direct, fitting, frame, textWidth } from "./plots.js";

const measures = ["panel", "far"];
const most = 6; // strategies shown at first
const fewSessions = 6; // below, no interval is believed: the same as for a verdict

// curves draws recall against tokens left, a figure for every family of budgets, measure
// and mode.
export function curves(data) {
  const place = $("#curve-figures");
  if (!place) return;
  const shown = initial(data);
  const all = families(data.budgets);
  let family = all[0];
  const draw = () => {
    clear(place);
    if (family) {
      for (const name of measures) {
        const modes = ["", ...(data.modes.length > 1 ? data.modes : [])].filter((m) => points(data, family, m, name, shown).length > 0);
        if (modes.length === 0) continue;
        const measure = data.measure.get(name);
        place.append(h("h3", {}, `${measure.title[0].toUpperCase()}${measure.title.slice(1)}`, h("span", { class: "count" }, family.title)));
        const grid = h("div", { class: "facets" });
        place.append(grid);
        for (const mode of modes) facet(grid, data, family, mode, measure, shown);
      }
    }
  };
  if (all.length > 1) {
    const select = h("select", { id: "curve-family" }, all.map((f, i) => h("option", { value: i }, f.title)));
    select.addEventListener("change", () => {
      family = all[select.value];
      draw();
      say(`figures of ${family.title}`);
    });
    place.before(h("p", { class: "choice-line" }, h("label", {}, "Where sessions are cut ", select)));
  }
  choices(data, shown, draw);
  draw();
}

// initial returns the bounds and the best strategies that are fit.
function initial(data) {
  const table = data.tables.find((t) => t.mode === "");
  const mean = new Map((table?.lines ?? []).map((l) => [l.strategy, l.values.panel?.mean ?? -1]));
  const candidates = data.strategies.filter((s) => !s.bound);
  const fit = candidates.filter((s) => !s.unfit);
  const best = (fit.length > 0 ? fit : candidates).sort((a, b) => (mean.get(b.name) ?? -1) - (mean.get(a.name) ?? -1)).slice(0, most);
  return new Set([...data.strategies.filter((s) => s.bound), ...best].map((s) => s.name));
}

function choices(data, shown, draw) {
  const set = $("#shown-strategies");
  set.hidden = false;
  for (const s of data.strategies) {
    const box = h("input", {
      type: "checkbox",
      checked: shown.has(s.name),
      onchange: () => {
        if (box.checked) shown.add(s.name);
        else shown.delete(s.name);
        draw();
      },
    });
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = s.colour;
    set.append(h("label", {}, box, swatch, h("bdi", {}, s.label), s.unfit ? h("span", { class: "tag warn" }, "excluded") : null));
  }
}

function points(data, family, mode, measure, shown) {
  const out = [];
  for (const budget of family.budgets) {
    for (const l of data.table(budget, mode)?.lines ?? []) {
      const y = l.values[measure];
      const x = l.values.kept;
      if (x && y && shown.has(l.strategy)) out.push({ budget, strategy: data.strategy.get(l.strategy), x: 100 * x.mean, y: y.mean, low: y.low, high: y.high, sessions: y.sessions });
    }
  }
  return out;
}

function facet(grid, data, family, mode, measure, shown) {
  const all = points(data, family, mode, measure.name, shown);
  const title = mode === "" ? "All modes together" : mode;
  const sessions = Math.max(...all.map((p) => p.sessions));
  const few = sessions < fewSessions;
  const label = `${measure.title} against tokens left, ${mode === "" ? "all modes" : "mode " + mode}: ${all.length} points; the numbers are in the table below the figures.`;
  const place = h("div", { class: mode === "" ? "facet wide" : "facet" });
  grid.append(place);
  const count = ` ${sessions} ${sessions === 1 ? "session" : "sessions"}${few ? ": not enough for a verdict" : ""}`;
  figure(place, label, (width) => chart(width, all, measure, mode === "" ? "label" : "name"), [h("bdi", {}, title), h("span", { class: "count" }, count)]);
}

function chart(width, all, measure, naming) {
  const lines = group(all);
  const ends = lines.map((l) => l.reduce((a, b) => (b.x > a.x ? b : a)));
  const marginRight = Math.min(28 + Math.max(...ends.map((e) => textWidth(e.strategy[naming]))), width * 0.42);
  const height = Math.max(width > 620 ? 360 : 250, 60 + 14 * lines.length);
  const svg = Plot.plot(
    frame(width, {
      height,
      marginRight,
      marginLeft: 44,
      marginBottom: 40,
      marginTop: 22,
      x: { label: "tokens left, % of those before", labelAnchor: "center", labelArrow: "none", domain: [0, Math.min(100, 1.08 * Math.max(...all.map((p) => p.x)))], grid: true, ticks: width > 500 ? 8 : 4 },
      y: { label: `${measure.title} (share)`, domain: [0, 1], grid: true, ticks: 5, labelArrow: "none" },
      marks: [
        Plot.ruleY([0], { stroke: "var(--rule)" }),
        lines.map((l) => Plot.lineY([...l].sort((a, b) => a.x - b.x), { x: "x", y: "y", stroke: l[0].strategy.colour, strokeWidth: l[0].strategy.bound ? 1.4 : 2, strokeDasharray: l[0].strategy.dash })),
        Plot.ruleX(all.filter((p) => p.low !== p.high), { x: "x", y1: "low", y2: "high", stroke: (p) => p.strategy.colour, strokeWidth: 1.2, strokeOpacity: 0.65 }),
        Plot.dot(all, { x: "x", y: "y", fill: (p) => p.strategy.colour, symbol: (p) => p.strategy.symbol, r: 3.6, stroke: "var(--paper)", strokeWidth: 0.8 }),
        Plot.tip(
          all,
          Plot.pointer({
            x: "x",
            y: "y",
            fill: "var(--paper)",
            stroke: "var(--rule)",
            title: (p) => `${p.strategy.label}, budget ${p.budget}\n${measure.title} ${number("share", p.y)} (${number("share", p.low)}–${number("share", p.high)})\ntokens left ${p.x.toFixed(1)} %`,
          }),
        ),
      ],
      symbol: { type: "identity" },
    }),
  );
  const short = (t) => fitting(t, marginRight - 24);
  const labels = ends.map((e) => ({ x: e.x, y: e.y, colour: e.strategy.colour, label: short(e.strategy[naming]) }));
  return direct(svg, labels, width, marginRight, 14, height - 30);
}

function group(all) {
  const by = new Map();
  for (const p of all) by.set(p.strategy.name, [...(by.get(p.strategy.name) ?? []), p]);
  return [...by.values()];
}
