import { $$, h, say } from "./dom.js";

// sortable makes the columns of a table sort. The order in the file is that of the report.
export function sortable(table) {
  const heads = $$("thead th", table);
  heads.forEach((th, column) => {
    const button = h("button", { type: "button", class: "sort" });
    button.append(...th.childNodes);
    button.append(h("span", { class: "arrow", "aria-hidden": "true" }));
    button.addEventListener("click", () => sort(table, heads, column));
    th.append(button);
    th.setAttribute("aria-sort", "none");
  });
}

function sort(table, heads, column) {
  const th = heads[column];
  const numeric = th.classList.contains("num");
  const was = th.getAttribute("aria-sort");
  const first = numeric && th.dataset.better !== "-1" ? "descending" : "ascending";
  const next = was === "none" ? first : was === "descending" ? "ascending" : "descending";
  for (const other of heads) other.setAttribute("aria-sort", "none");
  th.setAttribute("aria-sort", next);
  const sign = next === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const key = (tr) => {
    const cell = tr.cells[column];
    if (!numeric) return cell.textContent.trim();
    return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
  };
  const rows = [...body.rows].map((tr) => [key(tr), tr]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // undefined ones always last
    return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
  });
  body.append(...rows.map(([, tr]) => tr));
  say(`sorted by ${th.textContent.trim()}, ${next}`);
}
