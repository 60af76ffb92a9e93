import { $, figure, h } from "./dom.js";
import { kindNames } from "./scopes.js";
import { messageList } from "./messagelist.js";
import { thousands } from "./format.js";
import * as Plot from "@observablehq/plot";
import { frame } from "./plots.js";

// conversation draws the page of one transcript.
export function conversation(data) {
  const place = $("#timeline-figure");
  if (place && data.series.length > 1) {
    const kinds = data.kinds;
    place.append(h("ul", { class: "legend" }, kinds.map((k) => {
      const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(--k-${k})`;
      return h("li", {}, swatch, kindNames[k] ?? k);
    })));
    figure(place, "Tokens so far by content type, message by message; the numbers are in the table below.", (width) => timeline(width, data));
  }
  $("#message-list")?.append(...messageList(data.items, []));
}

function timeline(width, data) {
  const points = data.series.flatMap((p) => data.kinds.map((k) => ({ at: p.at, kind: k, tokens: p.tokens[k] ?? 0 })));
  const top = Math.max(...data.series.map((p) => data.kinds.reduce((n, k) => n + (p.tokens[k] ?? 0), 0)));
  return Plot.plot(
    frame(width, {
      height: width > 600 ? 320 : 240,
      marginLeft: 64,
      marginRight: 16,
      marginBottom: 38,
      marginTop: 34,
      x: { label: "messages so far", labelAnchor: "center", labelArrow: "none", ticks: width > 600 ? 10 : 5 },
      y: { label: "tokens so far", labelArrow: "none", grid: true, ticks: 6, domain: [0, 1.04 * top], tickFormat: (v) => thousands(v) },
      marks: [
        Plot.areaY(points, Plot.stackY({ x: "at", y: "tokens", z: "kind", order: data.kinds, fill: (p) => `var(--k-${p.kind})` })),
        Plot.ruleX(data.condensations, { x: "at", stroke: "var(--ink)", strokeWidth: 1.4, strokeDasharray: "4 2" }),
        Plot.text(data.condensations, { x: "at", frameAnchor: "top", dy: -12, text: "label", fill: "currentColor" }),
        Plot.ruleY([0], { stroke: "var(--rule)" }),
      ],
    }),
  );
}
