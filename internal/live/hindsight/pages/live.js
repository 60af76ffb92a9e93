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
          const focused = document.activeElement && document.activeElement.getAttribute("href");
          const scrolled = [...main.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
          main.replaceWith(next);
          next.querySelectorAll(".scroll").forEach((e, i) => (e.scrollLeft = scrolled[i] || 0));
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
