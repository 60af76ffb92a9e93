// Replaces the content of the page when it has changed, and leaves focus, selection and scrolled tables alone.
"use strict";
const root = new URL(".", document.currentScript.src).pathname;
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
          const pressed = active && active.dataset && active.dataset.do;
          const of = pressed && active.closest("[data-conversation]").dataset.conversation;
          if (pressed) next.querySelector(`[data-conversation="${of}"] button[data-do="${pressed}"]`)?.focus({ preventScroll: true });
          if (focused) for (const a of next.querySelectorAll("a")) if (a.getAttribute("href") === focused) { a.focus({ preventScroll: true }); break; }
        }
      }
      failed = answer.status >= 400;
    } catch {
      failed = true;
    }
  }
  document.documentElement.toggleAttribute("data-away", failed);
  await expect();
  setTimeout(refresh, every);
}

// Fetches from the pages for users. Where no token is needed, the secret of the user stands for it, and only this page of the
// browser keeps it.
const kept = "condense-orders";
const asked = (path, options = {}) => {
  const secret = sessionStorage.getItem(kept);
  return fetch(path, { ...options, headers: { ...options.headers, ...(secret && { "X-Condense-Token": secret }) }, credentials: "same-origin" });
};

// Says of each conversation when it is condensed next, or for what that waits.
async function expect() {
  if (document.hidden) return;
  const answer = await asked(root + "live").catch(() => null);
  if (!answer?.ok) return;
  for (const c of (await answer.json()).conversations)
    for (const id of c.branches) {
      const next = document.querySelector(`[data-conversation="${CSS.escape(id)}"] .next`);
      if (next) next.textContent = "Next epoch: " + c.next;
    }
}

// Asks for something that is done with the next request of the conversation, and says what was answered.
async function ask(button) {
  const said = document.getElementById("said");
  const path = root + "live/" + encodeURIComponent(button.closest("[data-conversation]").dataset.conversation) + "/";
  const answered = async (path, options) => {
    let answer = await asked(path, options);
    let body = await answer.json();
    if (answer.status === 403) {
      const secret = prompt(body.error);
      if (secret) sessionStorage.setItem(kept, secret.trim());
      else sessionStorage.removeItem(kept);
      answer = await asked(path, options);
      body = await answer.json();
    }
    if (!answer.ok) throw new Error(body.error);
    return body;
  };
  try {
    if (button.dataset.do === "undo") {
      const plan = await answered(path + "undo");
      const cost = plan.priced ? `, for about $${plan.cost.toFixed(2)} in place of $${plan.instead.toFixed(2)}` : "";
      if (!confirm(`The next request sends about ${plan.size.toLocaleString("en")} tokens${cost}. Undo the last condensation?`)) return;
    }
    await answered(path + button.dataset.do, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    said.textContent = button.dataset.said;
    await expect();
  } catch (fault) {
    said.textContent = fault.message;
  }
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button) ask(button);
});
expect();
setTimeout(refresh, every);
