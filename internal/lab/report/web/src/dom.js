// h makes an element. Text is text: nothing in this script parses HTML.
export function h(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "hidden" || name === "open") e[name] = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

const svgNS = "http://www.w3.org/2000/svg";

// s is h for SVG.
export function s(tag, attributes, ...children) {
  const e = document.createElementNS(svgNS, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// say tells those who cannot see the page what changed on it.
export function say(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
}

// figure puts a drawing that depends on the width into a place, and draws it again when
// that changes. What the drawing shows is also in a table, so it is one image.
const drawings = new Map();
let observer;

export function figure(place, label, draw, caption) {
  const box = h("div", { class: "drawing", role: "img", "aria-label": label });
  place.append(h("figure", {}, caption ? h("figcaption", {}, caption) : null, box));
  observer ??= new ResizeObserver((entries) => {
    // Not at once: what is drawn may change the width of other figures.
    requestAnimationFrame(() => {
      for (const e of entries) paint(e.target, Math.round(e.contentRect.width));
    });
  });
  drawings.set(box, { draw, width: 0 });
  observer.observe(box);
  return box;
}

function paint(box, width) {
  const d = drawings.get(box);
  if (!d || width < 40 || Math.abs(d.width - width) < 2) return;
  d.width = width;
  const drawn = d.draw(width);
  drawn.setAttribute?.("aria-hidden", "true");
  box.replaceChildren(drawn);
}

// forget lets go of the drawings within an element that is emptied.
export function clear(element) {
  for (const box of $$(".drawing", element)) {
    observer?.unobserve(box);
    drawings.delete(box);
  }
  element.replaceChildren();
}
