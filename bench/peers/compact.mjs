// Runs another program's compaction without a model on a conversation, for `condense compare`:
//
//   condense compare DIR --peers bench/peers
//   condense compare DIR --strategies 'ai=external["node","bench/peers/compact.mjs","ai-prune"],smart~ai'
//
// It reads {"messages", "tokens", "budget"} from standard input, messages in the form of Anthropic's API, and writes
// {"messages"}; after --stay it reads and writes line by line until its input ends. Of the program's own setting the value is
// used that leaves most and fits the budget, by characters per token.
//
// A program that is a server is started beforehand and named by its addresses, NAME@URL,URL…: each has a setting of its own,
// and the result is used that leaves most and fits, else the smallest.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { cwl, middleOut } from "./rewritten.mjs";

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
// LangChain's version of Anthropic's clearing of tool results.
const langchainClear = {
  knob: (units) => [0, units.filter((u) => u.role === "tool").length],
  async run(units, keep) {
    const { ClearToolUsesEdit } = await import("langchain");
    const { HumanMessage, AIMessage, ToolMessage } = await import("@langchain/core/messages");
    const messages = units.map((u) => {
      if (u.role === "tool") return new ToolMessage({ content: u.text, tool_call_id: u.id });
      if (u.role === "user") return new HumanMessage(u.text);
      return new AIMessage({ content: u.text, tool_calls: u.calls.map((c) => ({ id: c.id, name: c.name, args: c.input })) });
    });
    const countTokens = (ms) => ms.reduce((n, m) => n + m.content.length, 0) / 4;
    await new ClearToolUsesEdit({ trigger: { tokens: 1 }, keep: { messages: keep } }).apply({ messages, countTokens });
    return messages.map((m, i) => ({ ...units[i], text: m.content }));
  },
};
const mastra = (trimMode) => ({
  knob: (units) => [1, Math.ceil(sum(units) / 3) + 1000],
  async run(units, limit) {
    const { TokenLimiterProcessor } = await import("@mastra/core/processors");
    try {
      const left = await new TokenLimiterProcessor({ limit, trimMode }).processLLMRequest({ prompt: model(units) });
      return left ? fromModel(left.prompt) : units; // it fits
    } catch (err) {
      if (/TripWire/.test(err.constructor.name) || /limit/i.test(err.message)) return []; // it refuses a limit that is too low
      throw err;
    }
  },
});

// pi cuts at a message and has a model summarize what is older. Here nothing does: what is left is what it keeps and the lists
// of files that it appends to a summary. Tools of other agents count as its own by what their names say.
const pi = {
  knob: (units) => [1, Math.ceil(sum(units) / 3)],
  async run(units, keepRecentTokens) {
    const { prepareCompaction } = await import(fileURLToPath(import.meta.resolve("@earendil-works/pi-coding-agent")).replace("index.js", "core/compaction/index.js"));
    const kind = (name) => (/edit|replace|patch|diff/i.test(name) ? "edit" : /write|create/i.test(name) ? "write" : /read|view/i.test(name) ? "read" : name);
    const entries = units.map((u, i) => {
      const text = { type: "text", text: u.text };
      const calls = (u.calls ?? []).map((c) => ({
        type: "toolCall", id: c.id, name: kind(c.name), arguments: { ...c.input, path: c.input.path ?? c.input.file_path ?? c.input.filePath },
      }));
      let message = { role: "user", content: [text] };
      if (u.role === "tool") message = { role: "toolResult", toolCallId: u.id, toolName: "", content: [text], isError: false };
      if (u.role === "assistant") message = { role: "assistant", content: [text, ...calls], stopReason: "stop" };
      return { type: "message", id: String(i), parentId: i ? String(i - 1) : null, message };
    });
    const settings = { enabled: true, reserveTokens: 0, keepRecentTokens };
    const { firstKeptEntryId, fileOps } = prepareCompaction(entries, settings);
    const modified = new Set([...fileOps.written, ...fileOps.edited]);
    const lists = [["read-files", [...fileOps.read].filter((f) => !modified.has(f))], ["modified-files", [...modified]]];
    const text = lists.filter(([, files]) => files.length).map(([tag, files]) => `<${tag}>\n${files.sort().join("\n")}\n</${tag}>`).join("\n\n");
    return [...(text ? [{ role: "user", text }] : []), ...units.slice(Number(firstKeptEntryId))];
  },
};
// The compaction that Cline falls back on when no model can summarize. It knows its own tools by name.
const cline = {
  knob: () => [5, 95],
  async run(units, percent) {
    const { createContextCompactionPrepareTurn } = await import("@cline/core");
    const config = { providerId: "none", modelId: "none", compaction: { enabled: true, strategy: "basic" } };
    const compact = createContextCompactionPrepareTurn(config, { mode: "manual", manualTargetRatio: percent / 100 });
    const messages = messagesOf(units);
    const done = await compact({
      agentId: "a", conversationId: "c", parentAgentId: null, iteration: 1, messages, apiMessages: messages, abortSignal: new AbortController().signal,
      systemPrompt: "", tools: [], model: { id: "none", provider: "none", info: { maxInputTokens: 1e9, contextWindow: 1e9 } },
    });
    return unitsOf(done?.messages ?? messages);
  },
};
// caveman shortens one text at a time and knows no budget: its engine gets every result.
const caveman = {
  knob: () => [0, 0],
  async run(units) {
    const env = { PATH: process.env.PATH, HOME: (home ??= mkdtempSync(join(tmpdir(), "caveman-"))) };
    const options = { env, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["pipe", "pipe", "ignore"] };
    const short = (input) => {
      if (!shortened.has(input)) shortened.set(input, execFileSync("./caveman-engine", ["compress"], { ...options, input }));
      return shortened.get(input);
    };
    return units.map((u) => (u.role === "tool" && u.text.length > 200 ? { ...u, text: short(u.text) } : u));
  },
};
let home;
const shortened = new Map(); // the engine is a process for each text
// context-guru is a server, started once. It has presets and no budget; the model that it can ask is not there.
const guru = {
  knob: () => [0, 0],
  async run(_, __, messages) {
    url ??= await (async () => {
      const probe = createServer();
      await new Promise((done) => probe.listen(0, "127.0.0.1", done));
      const { port } = probe.address();
      await new Promise((done) => probe.close(done));
      const nowhere = "http://127.0.0.1:9";
      const env = { PATH: process.env.PATH, HOME: mkdtempSync(join(tmpdir(), "guru-")), LISTEN_ADDR: `127.0.0.1:${port}`, PRESET: "general", ANTHROPIC_UPSTREAM: nowhere, OPENAI_UPSTREAM: nowhere };
      const server = spawn("./context-guru-proxy", [], { env, stdio: "ignore" });
      const failed = new Promise((_, fail) => server.on("error", fail));
      process.on("exit", () => server.kill());
      for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(1));
      for (let i = 0; i < 100; i++) {
        const up = await Promise.race([failed, fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)]);
        if (up?.ok) return `http://127.0.0.1:${port}`;
        await new Promise((done) => setTimeout(done, 100));
      }
      throw new Error("context-guru-proxy did not start");
    })();
    return servers["context-guru"](url, messages);
  },
};
let url;
const posted = async (url, body, headers) => {
  const reply = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${await reply.text()}`);
  return unitsOf((await reply.json()).messages);
};
const servers = {
  "context-guru": (url, messages) =>
    posted(`${url}/compact?provider=anthropic`, { model: "claude-sonnet-4-5", max_tokens: 1, messages }, { "x-context-guru-session": crypto.randomUUID() }),
  compress: (url, messages, token_budget) => posted(`${url}/v1/compress`, { model: "claude-sonnet-4-5", messages, token_budget }),
};

// knob gives the bounds of the program's own setting, of which more leaves more.
const peers = {
  "langchain-trim": langchain(["human", "ai"]),
  "langchain-trim-human": langchain("human"),
  "langchain-clear": langchainClear,
  "middle-out": middleOut,
  cwl,
  caveman,
  "context-guru": guru,
  "mastra-best-fit": mastra("best-fit"),
  "mastra-contiguous": mastra("contiguous"),
  pi,
  cline,
  "ai-prune": {
    knob: (units) => [0, units.length],
    async run(units, n) {
      const { pruneMessages } = await import("ai");
      return fromModel(pruneMessages({ messages: model(units), reasoning: "all", toolCalls: n ? `before-last-${n}-messages` : "all" }));
    },
  },
};

const [name, urls] = (process.argv[2] ?? "").split("@");
const peer = urls ? servers[name] : peers[name];
if (!peer) {
  console.error(`usage: node compact.mjs NAME [--stay], one of ${Object.keys(peers).join(", ")}; or NAME@URL, one of ${Object.keys(servers).join(", ")}`);
  process.exit(2);
}
console.log = console.info = console.error; // some programs write to the output

async function answer(text) {
  const { messages, tokens, budget } = JSON.parse(text);
  const units = unitsOf(messages);
  const room = (sum(units) * budget) / tokens;
  if (urls) {
    const all = [];
    for (const url of urls.split(",")) all.push(await peer(url, messages, budget));
    all.sort((a, b) => sum(b) - sum(a));
    return { messages: messagesOf(all.find((left) => sum(left) <= room) ?? all.at(-1)) };
  }
  let [low, high] = peer.knob(units);
  let best = await peer.run(structuredClone(units), low, messages);
  while (high - low > Math.max(1, low / 100)) {
    const middle = Math.floor((low + high) / 2);
    const left = await peer.run(structuredClone(units), middle, messages);
    if (sum(left) <= room) {
      low = middle;
      if (left.length) best = left;
    } else high = middle;
  }
  return { messages: messagesOf(best) };
}

if (process.argv[3] === "--stay") {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const said = await answer(line).catch((err) => ({ error: String(err.message ?? err) }));
    process.stdout.write(JSON.stringify(said) + "\n");
  }
  await new Promise((done) => process.stdout.write("", done));
  process.exit(0);
}
// At once: some programs keep timers and connections open.
const said = JSON.stringify(await answer(readFileSync(0, "utf8")));
process.stdout.write(said, () => process.exit(0));
