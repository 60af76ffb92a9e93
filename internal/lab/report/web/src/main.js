import { $, $$ } from "./dom.js";
import { inflate, open } from "./data.js";
import { curves } from "./curves.js";
import { rounds } from "./rounds.js";
import { scopes } from "./scopes.js";
import { sortable } from "./sort.js";
import { router } from "./route.js";
import { conversation } from "./conversation.js";
import { replay } from "./replay.js";

async function main() {
  document.body.classList.remove("no-js");
  const data = await inflate("data");
  for (const table of $$("table.sortable")) sortable(table);
  if (data.kind === "conversation") {
    conversation(data);
  } else if (data.kind === "replay") {
    replay(data);
  } else {
    open(data);
    scopes(data);
    curves(data);
    rounds(data);
    links();
    router(data);
  }
  document.documentElement.dataset.ready = "yes"; // for who waits
}

// links makes the numbers of the tables lead to their sessions.
function links() {
  $("#report").addEventListener("click", (event) => {
    const button = event.target.closest("td > button");
    if (!button) return;
    const td = button.parentElement;
    const head = td.closest("table").tHead.rows[0].cells[td.cellIndex];
    const from = (name) => head.dataset[name] ?? td.closest(`[data-${name}]`)?.dataset[name] ?? "";
    const query = new URLSearchParams({ strategy: from("strategy"), budget: from("budget"), mode: from("mode"), measure: from("measure") });
    location.hash = "sessions?" + query;
  });
}

main().catch((error) => {
  document.documentElement.dataset.ready = "failed";
  const note = document.createElement("p");
  note.className = "note warn";
  note.textContent = `The figures cannot be shown: ${error.message}. All numbers are in the tables.`;
  $("#main").prepend(note);
  console.error(error);
});
