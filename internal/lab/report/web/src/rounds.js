import { $, figure, h } from "./dom.js";
import { number } from "./format.js";
import * as Plot from "@observablehq/plot";
import { direct, fitting, frame, textWidth } from "./plots.js";

// rounds draws what is left after every one of several condensations.
export function rounds(data) {
  const place = $("#round-figure");
  if (!place || data.rounds.length === 0) return;
  const grid = h("div", { class: "facets two" });
  place.append(grid);
  for (const [steps, once, title] of [
    ["panel", "once", "Needed later"],
    ["user", "once_user", "User’s words"],
  ]) {
    const all = data.rounds.filter((r) => r.values[steps] !== undefined).map((r) => ({ strategy: data.strategy.get(r.strategy), round: r.round, y: r.values[steps], once: r.values[once], sessions: r.sessions }));
    if (all.length === 0) continue;
    const facet = h("div", { class: "facet" });
    grid.append(facet);
    figure(facet, `${title} after every round, by strategy; the numbers are in the table below.`, (width) => chart(width, all, title), `${title}: in steps (line), at once (thin, dotted)`);
  }
}

function chart(width, all, title) {
  const by = new Map();
  for (const p of all) by.set(p.strategy.name, [...(by.get(p.strategy.name) ?? []), p]);
  const lines = [...by.values()];
  const ends = lines.map((l) => l[l.length - 1]);
  const marginRight = Math.min(26 + Math.max(...ends.map((e) => textWidth(e.strategy.label))), width * 0.4);
  const height = Math.max(260, 60 + 14 * lines.length);
  const last = Math.max(...all.map((p) => p.round));
  const svg = Plot.plot(
    frame(width, {
      height,
      marginRight,
      marginLeft: 40,
      marginTop: 22,
      marginBottom: 38,
      x: { label: "condensations so far", labelAnchor: "center", labelArrow: "none", domain: [1, Math.max(2, last)], ticks: last, tickFormat: "d" },
      y: { label: "share", labelArrow: "none", domain: [0, 1], grid: true, ticks: 5 },
      symbol: { type: "identity" },
      marks: [
        lines.map((l) => [
          Plot.lineY(l.filter((p) => p.once !== undefined), { x: "round", y: "once", stroke: l[0].strategy.colour, strokeWidth: 1, strokeDasharray: "1 3" }),
          Plot.lineY(l, { x: "round", y: "y", stroke: l[0].strategy.colour, strokeWidth: 2, strokeDasharray: l[0].strategy.dash }),
        ]),
        Plot.dot(all, { x: "round", y: "y", fill: (p) => p.strategy.colour, symbol: (p) => p.strategy.symbol, r: 3.4, title: (p) => `${p.strategy.label}, round ${p.round}: ${title.toLowerCase()} ${number("share", p.y)}, ${p.sessions} sessions` }),
      ],
    }),
  );
  return direct(svg, ends.map((e) => ({ x: e.round, y: e.y, colour: e.strategy.colour, label: fitting(e.strategy.label, marginRight - 24) })), width, marginRight, 14, height - 30);
}
