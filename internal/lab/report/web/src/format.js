// Numbers as text.go of the package formats them.
const minus = (text) => text.replace("-", "\u2212");

export function thousands(n) {
  return minus(Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ","));
}

function fixed(v, digits) {
  const text = v.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : minus(text);
}

export function number(unit, v) {
  if (v === null || v === undefined) return "–";
  switch (unit) {
    case "share":
      return fixed(v, 2);
    case "tokens":
    case "messages":
    case "bytes":
      return thousands(v);
    case "USD":
      return v !== 0 && Math.abs(v) < 0.01 ? fixed(v, 4) : fixed(v, 2);
    case "ms":
      return Math.abs(v) >= 100 ? thousands(v) : fixed(v, 1);
  }
  return fixed(v, 1);
}

export function signed(v) {
  const text = fixed(Math.abs(v), 2);
  return Number(text) === 0 ? text : (v < 0 ? "\u2212" : "+") + text;
}

export const range = (unit, e) => (e.low === e.high ? "" : `${number(unit, e.low)}–${number(unit, e.high)}`);

export function plural(n, one, many = one + "s") {
  return `${thousands(n)} ${n === 1 ? one : many}`;
}

export function excerpt(text, most) {
  const one = text.slice(0, 4 * most).replace(/\s+/g, " ").trim();
  return one.length > most ? one.slice(0, most - 1) + "…" : one;
}
