// inflate returns what the element with that ID holds: JSON, gzip, base64.
const inflated = new Map();

export function inflate(id) {
  if (!inflated.has(id)) inflated.set(id, decode(document.getElementById(id).textContent));
  return inflated.get(id);
}

async function decode(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// open adds what is looked up often to the data of a comparison.
export function open(data) {
  const colours = 8;
  let n = 0;
  data.strategies.forEach((s, i) => {
    s.index = i;
    if (s.bound) {
      s.colour = "var(--grey)";
      s.dash = s.name === "keep_last" ? "2 3" : "1 4";
      s.symbol = s.name === "keep_last" ? "cross" : "wye";
      s.label = s.name + " (reference)";
    } else {
      s.colour = `var(--s${n % colours})`;
      s.dash = ["", "7 3", "2 2", "8 3 2 3"][Math.floor(n / colours) % 4];
      s.symbol = ["circle", "square", "triangle", "diamond", "wye", "cross", "hexagon"][n % 7];
      s.label = s.name;
      n++;
    }
  });
  data.strategy = new Map(data.strategies.map((s) => [s.name, s]));
  data.measure = new Map(data.measures.map((m) => [m.name, m]));
  data.table = (budget, mode) => data.tables.find((t) => t.budget === budget && t.mode === mode);
  data.budgets ??= [];
  data.modes ??= [];
  return data;
}

// row returns the measurement with that index.
export function row(data, i) {
  const r = data.rows;
  return {
    index: i,
    strategy: data.strategies[r.strategy[i]],
    budget: data.budgets[r.budget[i]],
    session: data.sessions[r.session[i]],
    sessionIndex: r.session[i],
    cut: r.cut[i],
    at: r.at[i],
    before: r.before[i],
    room: r.room[i],
    after: r.after[i],
    outcome: r.outcome[i],
    provider: r.provider[i],
    error: r.error[i],
    value: (measure) => r.values[measure]?.[i] ?? null,
    block: data.blocks[i],
  };
}

// rows yields those of a cell of a table.
export function rows(data, strategy, budget, mode) {
  const s = data.strategies.findIndex((x) => x.name === strategy);
  const b = data.budgets.indexOf(budget);
  const out = [];
  const r = data.rows;
  for (let i = 0; i < (r.strategy?.length ?? 0); i++) {
    if (r.strategy[i] === s && r.budget[i] === b && (mode === "" || data.sessions[r.session[i]].mode === mode)) out.push(row(data, i));
  }
  return out;
}

// families are budgets whose cuts are the same, so that their points make one curve.
export function families(budgets) {
  const of = (b) => (b.endsWith("%") ? "share" : b === "real" ? "real" : "window");
  const titles = {
    share: "Budgets as shares of what came before the cut",
    window: "Budgets of models’ windows",
    real: "The sizes that the recorded compactions left",
  };
  return ["share", "window", "real"]
    .map((kind) => ({ kind, title: titles[kind], budgets: budgets.filter((b) => of(b) === kind) }))
    .filter((f) => f.budgets.length > 0);
}
