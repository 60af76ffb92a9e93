// Makes elements. Text is text: nothing in these scripts parses HTML, and the policy of the page allows no style in attributes.

// What is invisible, or acts on the text around it, gets a visible sign, as in the other pages.
const acts = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
export const visible = (text) => String(text ?? "").replace(/\r\n/g, "\n").replace(acts, (c) => {
  const n = c.codePointAt(0);
  return n < 0x20 ? String.fromCharCode(0x2400 + n) : n === 0x7f ? "␡" : `⟦U+${n.toString(16).toUpperCase().padStart(4, "0")}⟧`;
});

const fill = (e, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
    else e.setAttribute(name, value === true ? "" : visible(value));
  }
  e.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false && c !== "").map((c) => (c instanceof Node ? c : visible(c))));
  return e;
};
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

export const group = (n) => Math.round(n ?? 0).toLocaleString("en-US");
export const short = (n) => (n < 1000 ? String(n) : n < 999500 ? Math.round(n / 1000) + "k" : (n / 1e6).toFixed(1) + "M");
export const plural = (n, what) => group(n) + " " + what + (n === 1 ? "" : "s");
export const usd = (v) => (v < 0 ? "−" : "") + "$" + Math.abs(v).toFixed(v !== 0 && Math.abs(v) < 0.1 ? 4 : 2);
export const clock = (t) => {
  const at = new Date(t), today = at.toDateString() === new Date().toDateString();
  return (today ? "" : at.toLocaleDateString("en-CA") + " ") + at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
};
export const when = (t) => {
  const minutes = Math.floor((Date.now() - new Date(t)) / 60000);
  return minutes < 1 ? "now" : minutes < 60 ? minutes + " min ago" : clock(t);
};

// put makes an element the only child of a place, unless it looks the same, and leaves focus and scrolled tables alone. A field in which
// somebody writes is not taken away.
export function put(place, ...children) {
  const next = h("div", {}, children), old = place.firstElementChild;
  if (old?.isEqualNode(next) || (!old && !next.firstChild)) return;
  if (old && [...old.querySelectorAll("input")].some((i) => i.value)) return;
  const active = document.activeElement, key = place.contains(active) && active.dataset.k;
  const scrolled = [...place.querySelectorAll(".scroll")].map((e) => [e.scrollLeft, e.scrollTop]);
  place.replaceChildren(next);
  next.querySelectorAll(".scroll").forEach((e, i) => scrolled[i] && ([e.scrollLeft, e.scrollTop] = scrolled[i]));
  if (key) [...next.querySelectorAll("[data-k]")].find((e) => e.dataset.k === key)?.focus({ preventScroll: true });
}
