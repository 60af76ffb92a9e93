// Times other programs on the conversation that ../session writes: each brings it to half
// its tokens, or as near as it can, and the tokenizers count it. A task gets its messages
// in its own form, made again before every run and not timed. Sizes are characters / 4, as
// most of these programs count by default: cheaper than any tokenizer.
//
//   node bench.mjs session.json [name…]
import { readFileSync } from "node:fs";
import { HumanMessage, AIMessage, ToolMessage, trimMessages } from "@langchain/core/messages";
import { pruneMessages } from "ai";
import { TokenLimiterProcessor } from "@mastra/core/processors";
import { countTokens as gptTokenizer } from "gpt-tokenizer/encoding/o200k_base";
import { getEncoding as jsTiktoken } from "js-tiktoken";
import { get_encoding as wasmTiktoken } from "tiktoken";

const [file, ...wanted] = process.argv.slice(2);
if (!file) {
  console.error("usage: node bench.mjs session.json [name...]");
  process.exit(2);
}
const session = JSON.parse(readFileSync(file, "utf8"));
const textOf = (blocks) => blocks.map((b) => b.text ?? "").join("");

// messages in the three forms: of LangChain, of the AI SDK and of a language model's prompt.
const langchain = () =>
  session.map(({ role, content: [first, second] }) => {
    if (first.type === "tool_result") {
      return new ToolMessage({ content: textOf(first.content), tool_call_id: first.tool_use_id });
    }
    if (role === "user") return new HumanMessage(first.text);
    const tool_calls = second ? [{ id: second.id, name: second.name, args: second.input }] : [];
    return new AIMessage({ content: first.text, tool_calls });
  });
const modelMessages = () =>
  session.map(({ role, content }) => ({
    role: content[0].type === "tool_result" ? "tool" : role,
    content: content.map((b) => {
      switch (b.type) {
        case "text":
          return { type: "text", text: b.text };
        case "tool_use":
          return { type: "tool-call", toolCallId: b.id, toolName: b.name, input: b.input };
        default:
          return {
            type: "tool-result", toolCallId: b.tool_use_id, toolName: "read_file",
            output: { type: "text", value: textOf(b.content) },
          };
      }
    }),
  }));

const sizeOfLangchain = (m) => (m.content.length + (m.tool_calls?.length ? JSON.stringify(m.tool_calls).length : 0)) / 4;
const sum = (messages, size) => messages.reduce((n, m) => n + size(m), 0);
const remembered = (size) => {
  const known = new WeakMap();
  return (m) => {
    let n = known.get(m);
    if (n === undefined) known.set(m, (n = size(m)));
    return n;
  };
};
const sizeOfModel = (m) =>
  m.content.reduce((n, b) => n + (b.text ?? b.output?.value ?? JSON.stringify(b.input)).length, 0) / 4;
const left = (size) => (out) => `${out.length} messages, ${Math.round(sum(out, size))} of characters/4`;

const trim = (size) => async (messages) => {
  const maxTokens = sum(messages, sizeOfLangchain) / 2;
  return trimMessages(messages, {
    strategy: "last", startOn: "human", includeSystem: true, maxTokens,
    tokenCounter: (ms) => sum(ms, size),
  });
};
const limit = (trimMode) => async (messages) => {
  const processor = new TokenLimiterProcessor({ limit: Math.round(sum(messages, sizeOfModel) / 2), trimMode });
  return (await processor.processLLMRequest({ prompt: messages })).prompt;
};
const texts = () =>
  session.flatMap(({ content }) =>
    content.flatMap((b) => (b.type === "text" ? [b.text] : b.type === "tool_use" ? [b.name, JSON.stringify(b.input)] : [textOf(b.content)])),
  );
const count = (encode) => (all) => all.reduce((n, s) => n + encode(s), 0);
const tokens = (n) => `${n} tokens`;

// open returns what is timed; runs is for what takes long.
const tasks = [
  {
    name: "langchain-trim-remembered", make: langchain, say: left(sizeOfLangchain),
    open: () => trim(remembered(sizeOfLangchain)),
  },
  { name: "langchain-trim", make: langchain, open: () => trim(sizeOfLangchain), say: left(sizeOfLangchain), runs: 2 },
  {
    name: "ai-prune", make: modelMessages, say: left(sizeOfModel),
    open: () => (messages) =>
      pruneMessages({ messages, reasoning: "all", toolCalls: `before-last-${session.length / 10}-messages` }),
  },
  { name: "mastra-limit-best-fit", make: modelMessages, open: () => limit("best-fit"), say: left(sizeOfModel) },
  { name: "mastra-limit-contiguous", make: modelMessages, open: () => limit("contiguous"), say: left(sizeOfModel) },
  { name: "gpt-tokenizer", make: texts, open: () => count(gptTokenizer), say: tokens },
  {
    name: "js-tiktoken", make: texts, say: tokens, runs: 3,
    open: () => {
      const e = jsTiktoken("o200k_base");
      return count((s) => e.encode(s, [], []).length);
    },
  },
  {
    name: "tiktoken-wasm", make: texts, say: tokens, runs: 3,
    open: () => {
      const e = wasmTiktoken("o200k_base");
      return count((s) => e.encode_ordinary(s).length);
    },
  },
];

for (const t of tasks) {
  if (wanted.length && !wanted.includes(t.name)) continue;
  const run = t.open();
  const wall = [], cpu = [];
  let out;
  for (let i = 0; i < (t.runs ?? 10); i++) {
    const input = t.make();
    globalThis.gc?.();
    const before = process.cpuUsage(), start = performance.now();
    out = await run(input);
    wall.push(performance.now() - start);
    const spent = process.cpuUsage(before);
    cpu.push((spent.user + spent.system) / 1000);
  }
  const least = (a) => Math.min(...a).toFixed(1).padStart(7);
  console.log(`${t.name.padEnd(26)} wall ${least(wall)} ms, cpu ${least(cpu)} ms, least of ${wall.length}: ${t.say(out)}`);
}
