// Compactors that cannot be had as programs, rewritten from what their authors say about them. They are marked so in every table.

const sizeOf = (u) => u.text.length + (u.calls ?? []).reduce((n, c) => n + JSON.stringify(c.input).length, 0);
const sum = (units) => units.reduce((n, u) => n + sizeOf(u), 0);

// paired returns units without calls that lost their results, and without results that lost their calls.
const paired = (units) => {
  const results = new Set(units.filter((u) => u.role === "tool").map((u) => u.id));
  const left = units.map((u) => (u.calls ? { ...u, calls: u.calls.filter((c) => results.has(c.id)) } : u));
  const calls = new Set(left.flatMap((u) => (u.calls ?? []).map((c) => c.id)));
  return left.filter((u) => u.role !== "tool" || calls.has(u.id));
};

// OpenRouter's context compression, engine middle-out, from https://openrouter.ai/docs/guides/features/message-transforms:
// messages in the middle of the prompt are removed or truncated until it fits. Half of the room goes to the beginning and half to
// the end; the two messages at the gap are truncated. That calls keep their results is our assumption.
export const middleOut = {
  knob: (units) => [0, sum(units)],
  async run(units, room) {
    if (sum(units) <= room) return units;
    const take = (list, half, cut) => {
      const out = [];
      for (const u of list) {
        if (sizeOf(u) <= half) {
          out.push(u);
          half -= sizeOf(u);
          continue;
        }
        if (half > 0 && !u.calls?.length) out.push({ ...u, text: cut(u.text, half) });
        break;
      }
      return out;
    };
    const head = take(units, room / 2, (text, n) => text.slice(0, n));
    const tail = take(units.slice(head.length).reverse(), room / 2, (text, n) => text.slice(-Math.max(1, n))).reverse();
    return paired([...head, ...tail]);
  },
};

// The eviction policy of CWL (Context Window Lifecycle, arXiv 2606.11213), from the abstract: without a model, users' turns and
// the exploration that is being reasoned over stay, and actions whose effects persist in the environment go first, oldest first.
// There the agent marks its episodes and their dependencies; here a turn with its results is an episode, an action if a call
// writes or runs something, and dependent on the files that it names. Eviction empties results first, then removes the episode.
export const cwl = {
  knob: (units) => [0, sum(units)],
  async run(units, room) {
    const episodes = [];
    for (const u of units) {
      if (u.role === "assistant" || u.role === "user") episodes.push({ units: [u], user: u.role === "user" });
      else if (episodes.length) episodes.at(-1).units.push(u);
    }
    const files = (e) => e.units.flatMap((u) => u.calls ?? []).map((c) => c.input?.path ?? c.input?.file_path ?? c.input?.filePath).filter(Boolean);
    const acts = (e) => e.units.some((u) => (u.calls ?? []).some((c) => /edit|write|create|replace|patch|bash|exec|run|command/i.test(c.name)));
    const recent = Math.max(0, episodes.length - 5);
    const active = new Set(episodes.slice(-20).flatMap(files));
    const rank = (e, i) => (i >= recent ? 3 : acts(e) ? 0 : files(e).some((f) => active.has(f)) ? 2 : 1);
    const order = episodes.map((e, i) => ({ e, i, rank: rank(e, i) })).filter(({ e }) => !e.user).sort((a, b) => a.rank - b.rank || a.i - b.i);
    let size = sum(units);
    const evict = (e, next) => {
      size += sum(next) - sum(e.units);
      e.units = next;
    };
    for (const level of [0, 1, 2, 3]) {
      const now = order.filter((o) => o.rank === level);
      for (const { e } of now) if (size > room) evict(e, e.units.map((u) => (u.role === "tool" ? { ...u, text: "[evicted]" } : u)));
      for (const { e } of now) if (size > room) evict(e, []);
    }
    return paired(episodes.flatMap((e) => e.units));
  },
};
