import { figure, h } from "./dom.js";
import { rows } from "./data.js";
import { number, plural, range, thousands } from "./format.js";
import * as Plot from "@observablehq/plot";
import { frame, halfOf } from "./plots.js";
import { sortable } from "./sort.js";

const most = 400; // rows listed at first

export function crumbs(...items) {
  return h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("ol", {}, items.map((i) => h("li", {}, i.href ? h("a", { href: i.href }, i.text) : h("span", { "aria-current": "page" }, i.text)))));
}

export function sessionsHref(strategy, budget, mode, measure) {
  return "#sessions?" + new URLSearchParams({ strategy, budget, mode, measure });
}

// sessionsView lists the rows of a number, the worst first.
export async function sessionsView(data, q) {
  const [strategy, budget, mode] = ["strategy", "budget", "mode"].map((n) => q.get(n) ?? "");
  const measure = data.measure.get(q.get("measure")) ?? data.measures[0];
  const all = rows(data, strategy, budget, mode);
  const sign = measure.better === -1 ? -1 : 1;
  all.sort((a, b) => sign * ((a.value(measure.name) ?? sign * Infinity) - (b.value(measure.name) ?? sign * Infinity)));
  const line = data.table(budget, mode)?.lines.find((l) => l.strategy === strategy);
  const estimate = line?.values[measure.name];
  const defined = all.filter((r) => r.value(measure.name) !== null);
  const where = mode === "" ? "all modes" : `mode ${mode}`;
  const body = h("tbody");
  const list = (to) => body.replaceChildren(...all.slice(0, to).map((r) => rowLine(data, r, measure)));
  list(most);
  const table = h("table", { class: "data sortable" },
    h("caption", { class: "hush" }, `Results that ${measure.title} of ${strategy} is the mean of`),
    h("thead", {}, h("tr", {},
      h("th", { scope: "col" }, "session"), mode === "" && data.modes.length > 0 ? h("th", { scope: "col" }, "mode") : null, h("th", { scope: "col" }, "cut"),
      h("th", { scope: "col", class: "num", "data-better": measure.better }, measure.title),
      h("th", { scope: "col", class: "num" }, "tokens before"), h("th", { scope: "col", class: "num" }, "budget"), h("th", { scope: "col", class: "num" }, "after"), h("th", { scope: "col" }, "outcome"), h("th", { scope: "col" }, "messages"))),
    body);
  for (const tr of body.rows) if (!(mode === "" && data.modes.length > 0)) tr.cells[1].remove();
  sortable(table);
  const page = h("div", { class: "view" },
    crumbs({ text: "Report", href: "#report" }, { text: `${strategy}, ${budget}, ${where}` }),
    h("h1", { tabindex: "-1" }, `${measure.title[0].toUpperCase()}${measure.title.slice(1)}: `, h("bdi", {}, strategy), ` at ${budget}, ${where}`),
    h("p", { class: "lead" }, estimate ? `Mean ${number(measure.unit, estimate.mean)}${range(measure.unit, estimate) ? ` (95 % interval ${range(measure.unit, estimate)})` : ""} over ${plural(estimate.sessions, "session")}. ` : "No mean is defined. ", measure.doc),
    all.length < (line?.cuts ?? 0) ? h("p", { class: "note" }, `${plural(line.cuts - all.length, "row")} more are left out to limit the size of this page; the mean is over all.`) : null,
    line?.failed ? h("p", { class: "note warn" }, `At ${plural(line.failed, "cut")} there is no result; they are not in the mean.`) : null);
  if (defined.length > 2) figure(page, `${measure.title} of ${plural(defined.length, "row")}; the numbers are in the table below.`, (width) => strip(width, defined, measure, estimate), "One point for each row; the line is the mean over sessions");
  page.append(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" }, table));
  if (all.length > most) {
    const more = h("button", { type: "button", class: "button", onclick: () => { list(all.length); for (const tr of body.rows) if (!(mode === "" && data.modes.length > 0)) tr.cells[1].remove(); more.remove(); } }, `Show all ${thousands(all.length)} rows`);
    page.append(more);
  }
  if (!all.some((r) => r.block)) page.append(h("p", { class: "hint" }, "The messages of these sessions are not included in this page."));
  return page;
}

function rowLine(data, r, measure) {
  const v = r.value(measure.name);
  return h("tr", {},
    h("th", { scope: "row", class: "session" }, h("bdi", { title: data.folder + r.session.name }, r.session.name)),
    h("td", { class: "words" }, h("bdi", {}, r.session.mode || "–")),
    h("td", { class: "words" }, r.cut),
    v === null ? h("td", { class: "none" }, "–") : h("td", { "data-v": v }, number(measure.unit, v)),
    h("td", { "data-v": r.before }, thousands(r.before)),
    h("td", { "data-v": r.room }, thousands(r.room)),
    h("td", { "data-v": r.after }, thousands(r.after)),
    h("td", { class: "words", title: r.error }, r.outcome, r.error ? h("small", {}, " " + r.error.slice(0, 120)) : null),
    h("td", { class: "words" }, r.block ? h("a", { href: `#messages?row=${r.index}&measure=${measure.name}` }, "view", h("span", { class: "hush" }, ` the messages of ${r.session.name}, cut ${r.cut}`)) : h("span", { class: "faint" }, "not included")));
}

function strip(width, defined, measure, estimate) {
  const points = defined.map((r) => ({ v: r.value(measure.name), r }));
  const share = measure.unit === "share";
  return Plot.plot(
    frame(width, {
      height: 120,
      marginLeft: 16,
      marginRight: halfOf(number(measure.unit, Math.max(...points.map((p) => p.v))), 16),
      marginBottom: 36,
      x: { label: measure.title + (share ? " (share)" : measure.unit === measure.title ? "" : `, ${measure.unit}`), labelAnchor: "center", labelArrow: "none", grid: true, ...(share ? { domain: [0, Math.max(1, ...points.map((p) => p.v))] } : {}) },
      marks: [
        Plot.dotX(points, Plot.dodgeY({ x: "v", r: points.length > 150 ? 1.8 : 3.5, anchor: "bottom", padding: 0.5, fill: "var(--accent)", title: (p) => `${p.r.session.name}, cut ${p.r.cut}: ${number(measure.unit, p.v)}` })),
        estimate ? Plot.ruleX([estimate.mean], { stroke: "var(--ink)", strokeWidth: 1.5 }) : null,
      ],
    }),
  );
}

