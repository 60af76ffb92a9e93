// Runs another program's compaction without a model on a conversation, for `condense compare`:
//
//   condense compare DIR --strategies 'ai=external["node","bench/peers/compact.mjs","ai-prune"],smart~ai'
//
// It reads {"messages", "tokens", "budget"} from standard input, messages in the form of Anthropic's API, and writes
// {"messages"}. Of the program's own setting the value is used that leaves most and fits the budget, by characters per token.
import { readFileSync } from "node:fs";

const blocksOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
const textOf = (content) => blocksOf(content ?? "").map((b) => b.text ?? "").join("\n");

// A unit is a message of one kind: what a user or the model wrote, with its calls, or one result.
const unitsOf = (messages) =>
  messages.flatMap(({ role, content }) => {
    const blocks = blocksOf(content);
    if (role === "assistant") {
      const text = blocks.filter((b) => b.type === "text").map((b) => b.text).join("\n");
      return [{ role, text, calls: blocks.filter((b) => b.type === "tool_use") }];
    }
    return blocks.flatMap((b) => {
      if (b.type === "tool_result") return [{ role: "tool", id: b.tool_use_id, text: textOf(b.content) }];
      return b.type === "text" ? [{ role, text: b.text }] : [];
    });
  });
const messagesOf = (units) =>
  units.flatMap((u) => {
    if (u.role === "tool") {
      return [{ role: "user", content: [{ type: "tool_result", tool_use_id: u.id, content: u.text }] }];
    }
    const content = [...(u.text ? [{ type: "text", text: u.text }] : []), ...(u.calls ?? [])];
    return content.length ? [{ role: u.role, content }] : [];
  });
const sizeOf = (u) => u.text.length + (u.calls ?? []).reduce((n, c) => n + JSON.stringify(c.input).length, 0);
const sum = (units) => units.reduce((n, u) => n + sizeOf(u), 0);

const langchain = (startOn) => ({
  knob: (units) => [0, sum(units)],
  async run(units, maxTokens) {
    const { HumanMessage, AIMessage, ToolMessage, trimMessages } = await import("@langchain/core/messages");
    const known = new Map();
    const messages = units.map((u) => {
      let m;
      if (u.role === "tool") m = new ToolMessage({ content: u.text, tool_call_id: u.id });
      else if (u.role === "user") m = new HumanMessage(u.text);
      else m = new AIMessage({ content: u.text, tool_calls: u.calls.map((c) => ({ id: c.id, name: c.name, args: c.input })) });
      known.set(m, u);
      return m;
    });
    const size = (m) => m.content.length + (m.tool_calls?.length ? JSON.stringify(m.tool_calls.map((c) => c.args)).length : 0);
    const left = await trimMessages(messages, {
      strategy: "last", startOn, includeSystem: true, maxTokens, tokenCounter: (ms) => ms.reduce((n, m) => n + size(m), 0),
    });
    // It copies some messages: those are found by what they hold.
    const alike = (m) => units.find((u) => u.text === m.content && (!m.tool_call_id || u.id === m.tool_call_id));
    return left.map((m) => known.get(m) ?? alike(m)).filter(Boolean);
  },
});
const model = (units) => {
  const names = new Map(units.flatMap((u) => (u.calls ?? []).map((c) => [c.id, c.name])));
  return units.map((u) => {
    if (u.role === "tool") {
      const output = { type: "text", value: u.text };
      return { role: "tool", content: [{ type: "tool-result", toolCallId: u.id, toolName: names.get(u.id) ?? "tool", output }] };
    }
    const calls = (u.calls ?? []).map((c) => ({ type: "tool-call", toolCallId: c.id, toolName: c.name, input: c.input }));
    return { role: u.role, content: [...(u.text ? [{ type: "text", text: u.text }] : []), ...calls] };
  });
};
const fromModel = (messages) =>
  messages.flatMap(({ role, content }) => {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "tool") return blocks.map((b) => ({ role, id: b.toolCallId, text: b.output.value }));
    const text = blocks.filter((b) => b.type === "text").map((b) => b.text).join("\n");
    const calls = blocks.filter((b) => b.type === "tool-call");
    return [{ role, text, calls: calls.map((c) => ({ type: "tool_use", id: c.toolCallId, name: c.toolName, input: c.input })) }];
  });
const mastra = (trimMode) => ({
  knob: (units) => [1, Math.ceil(sum(units) / 3)],
  async run(units, limit) {
    const { TokenLimiterProcessor } = await import("@mastra/core/processors");
    try {
      return fromModel((await new TokenLimiterProcessor({ limit, trimMode }).processLLMRequest({ prompt: model(units) })).prompt);
    } catch (err) {
      if (/TripWire/.test(err.constructor.name) || /limit/i.test(err.message)) return []; // it refuses a limit that is too low
      throw err;
    }
  },
});

// knob gives the bounds of the program's own setting, of which more leaves more.
const peers = {
  "langchain-trim": langchain(["human", "ai"]),
  "langchain-trim-human": langchain("human"),
  "mastra-best-fit": mastra("best-fit"),
  "mastra-contiguous": mastra("contiguous"),
  "ai-prune": {
    knob: (units) => [0, units.length],
    async run(units, n) {
      const { pruneMessages } = await import("ai");
      return fromModel(pruneMessages({ messages: model(units), reasoning: "all", toolCalls: n ? `before-last-${n}-messages` : "all" }));
    },
  },
};

const peer = peers[process.argv[2]];
if (!peer) {
  console.error(`usage: node compact.mjs NAME, one of ${Object.keys(peers).join(", ")}`);
  process.exit(2);
}
const { messages, tokens, budget } = JSON.parse(readFileSync(0, "utf8"));
const units = unitsOf(messages);
const room = (sum(units) * budget) / tokens;
let [low, high] = peer.knob(units);
let best = await peer.run(units, low);
while (high - low > Math.max(1, low / 100)) {
  const middle = Math.floor((low + high) / 2);
  const left = await peer.run(units, middle);
  if (sum(left) <= room) {
    low = middle;
    if (left.length) best = left;
  } else high = middle;
}
process.stdout.write(JSON.stringify({ messages: messagesOf(best) }));
