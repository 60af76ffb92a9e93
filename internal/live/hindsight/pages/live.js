// Replaces the content of the page when it has changed, and leaves focus, selection and scrolled tables alone.
"use strict";
const every = 3000;
let failed = false;
async function refresh() {
  const main = document.getElementById("main");
  if (!document.hidden && !window.getSelection().toString()) {
    try {
      const answer = await fetch(location.pathname, { headers: { "X-Version": main.dataset.version }, credentials: "same-origin" });
      if (answer.status === 200) {
        const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
        if (next) {
          const active = document.activeElement;
          const focused = active && active.getAttribute("href");
          const summary = active && active.tagName === "SUMMARY" && active.parentElement.id;
          const open = [...main.querySelectorAll("details[open]")].map((e) => e.id);
          const scrolled = [...main.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
          for (const id of open) next.querySelector("#" + id)?.setAttribute("open", "");
          main.replaceWith(next);
          next.querySelectorAll(".scroll").forEach((e, i) => (e.scrollLeft = scrolled[i] || 0));
          if (summary) next.querySelector("#" + summary + " > summary")?.focus({ preventScroll: true });
          if (focused) for (const a of next.querySelectorAll("a")) if (a.getAttribute("href") === focused) { a.focus({ preventScroll: true }); break; }
        }
      }
      failed = answer.status >= 400;
    } catch {
      failed = true;
    }
  }
  document.documentElement.toggleAttribute("data-away", failed);
  setTimeout(refresh, every);
}
setTimeout(refresh, every);
