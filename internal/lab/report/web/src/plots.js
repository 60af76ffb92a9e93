import * as Plot from "@observablehq/plot";
import { s } from "./dom.js";



// room is left below the title of the axis: what is outside is cut off, and some fonts reach
// far below the line.
const room = 6;

// frame are the settings that all plots share. The class name is fixed so that the styles
// that the library adds are the same in every plot.
export function frame(width, options) {
  return {
    width,
    className: "plot",
    style: { fontSize: "12px", fontFamily: "var(--sans)", background: "none", color: "inherit" },
    ...options,
    height: options.height + room,
    marginBottom: options.marginBottom + room,
    x: { labelOffset: options.marginBottom - 2, ...options.x },
  };
}

let pen;

// textWidth returns how wide a text is in a figure, in pixels.
export function textWidth(text) {
  if (!pen) {
    pen = document.createElement("canvas").getContext("2d");
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  }
  return pen.measureText(text).width;
}

// halfOf returns the margin that the last tick of an axis needs for the half of its label that
// is beyond the axis, and at least least.
export function halfOf(label, least) {
  return Math.max(least, 4 + Math.ceil(textWidth(label) / 2));
}

// fitting returns as much of a text as has room.
export function fitting(text, width) {
  if (textWidth(text) <= width) return text;
  let n = text.length - 1;
  while (n > 1 && textWidth(text.slice(0, n) + "…") > width) n--;
  return text.slice(0, n) + "…";
}

// direct writes labels at the right of a plot, each joined to where its line ends, none
// over another. Items have x and y (in the units of the scales), label and colour.
export function direct(svg, items, width, marginRight, top, bottom) {
  const x = svg.scale("x");
  const y = svg.scale("y");
  const step = 13;
  const placed = items.map((i) => ({ ...i, at: y.apply(i.y), pos: y.apply(i.y) })).sort((a, b) => a.at - b.at);
  for (let pass = 0; pass < 50; pass++) {
    let moved = false;
    for (let i = 1; i < placed.length; i++) {
      const gap = placed[i].pos - placed[i - 1].pos;
      if (gap < step - 0.01) {
        const shift = (step - gap) / 2;
        placed[i].pos += shift;
        placed[i - 1].pos -= shift;
        moved = true;
      }
    }
    if (placed.length && placed[0].pos < top) {
      placed[0].pos = top;
      moved = true;
    }
    const last = placed[placed.length - 1];
    if (last && last.pos > bottom) {
      last.pos = bottom;
      moved = true;
    }
    if (!moved) break;
  }
  const edge = width - marginRight;
  const g = s("g", { class: "direct", "font-size": "11.5", fill: "currentColor", "text-anchor": "start" });
  for (const p of placed) {
    const end = Math.min(x.apply(p.x) + 5, edge);
    g.append(
      s("path", { d: `M${end},${p.at}L${edge},${p.at}L${edge + 8},${p.pos}`, stroke: p.colour, fill: "none", "stroke-opacity": "0.45", "stroke-dasharray": "1 2" }),
      s("rect", { x: edge + 10, y: p.pos - 4, width: 8, height: 8, rx: 1, fill: p.colour }),
      s("text", { x: edge + 22, y: p.pos, dy: "0.35em" }, p.label),
    );
  }
  svg.append(g);
  return svg;
}

// intervals is a row for each item with a point and its interval: items have label,
// colour, mean, low, high, text and, if the point is to be hollow, hollow.
export function intervals(width, items, { domain, label, log, zero, format }) {
  const marginLeft = Math.min(Math.round(width * 0.42), 14 + Math.ceil(Math.max(...items.map((i) => textWidth(i.label)))));
  const short = (t) => fitting(t, marginLeft - 12);
  const rows = items.map((i, n) => ({ ...i, n }));
  const narrow = width < 430;
  const ticks = log ? Array.from({ length: Math.round(Math.log10(domain[1] / domain[0])) + 1 }, (_, n) => domain[0] * 10 ** n) : narrow ? 4 : 6;
  return Plot.plot(
    frame(width, {
      height: 46 + 21 * items.length,
      marginLeft,
      marginRight: narrow ? halfOf(format && domain ? format(domain[1]) : "", 14) : 96,
      marginTop: 8,
      marginBottom: 38,
      x: { label, labelAnchor: "center", labelArrow: "none", grid: true, type: log ? "log" : "linear", domain, ticks, ...(format ? { tickFormat: format } : {}) },
      y: { type: "band", domain: rows.map((r) => r.n), label: null, axis: null },
      marks: [
        zero ? Plot.ruleX([0], { stroke: "var(--ink)", strokeWidth: 1.2 }) : null,
        Plot.text(rows, { y: "n", x: () => (domain ? domain[0] : undefined), frameAnchor: "left", text: (r) => short(r.label), dx: -8, textAnchor: "end", fill: "currentColor", ...(domain ? { x: undefined } : {}) }),
        Plot.link(rows.filter((r) => r.low !== r.high), { x1: "low", x2: "high", y1: "n", y2: "n", stroke: "colour", strokeWidth: 2 }),
        Plot.dot(rows, { x: "mean", y: "n", r: 4.5, fill: (r) => (r.hollow ? "var(--paper)" : r.colour), stroke: "colour", strokeWidth: 2 }),
        narrow ? null : Plot.text(rows, { y: "n", frameAnchor: "right", text: "text", dx: 8, textAnchor: "start", fill: "currentColor", clip: false }),
      ],
    }),
  );
}

