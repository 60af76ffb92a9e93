// A small agent on Anthropic's SDK. It knows nothing of condense.
//
//	npm install @anthropic-ai/sdk
//	ANTHROPIC_API_KEY=… node loop-anthropic.mjs "Which test is slow?"
import Anthropic from "@anthropic-ai/sdk";
import { spawnSync } from "node:child_process";

const client = new Anthropic();
const model = process.env.MODEL ?? "claude-sonnet-5";

const tools = [
  {
    name: "bash",
    description: "Runs a command in a shell, in the current folder, and returns what it prints.",
    input_schema: {
      type: "object",
      properties: { command: { type: "string" } },
      required: ["command"],
    },
  },
];

function bash({ command }) {
  const done = spawnSync("bash", ["-c", command], { encoding: "utf8", timeout: 60_000 });
  return { content: done.stdout + done.stderr, is_error: done.status !== 0 };
}

// mark moves the cache marker to the newest message.
function mark(messages) {
  for (const m of messages) for (const block of m.content) delete block.cache_control;
  messages.at(-1).content.at(-1).cache_control = { type: "ephemeral" };
}

const messages = [{ role: "user", content: [{ type: "text", text: process.argv[2] }] }];
for (;;) {
  mark(messages);
  const stream = client.messages.stream({
    model,
    max_tokens: 4096,
    system: "You work in the user's folder with a shell. Be brief.",
    tools,
    messages,
  });
  const answer = await stream.finalMessage();
  messages.push({ role: "assistant", content: answer.content });
  for (const block of answer.content) if (block.type === "text") console.log(block.text);
  const results = answer.content
    .filter((block) => block.type === "tool_use")
    .map((call) => ({ type: "tool_result", tool_use_id: call.id, ...bash(call.input) }));
  if (results.length === 0) break;
  messages.push({ role: "user", content: results });
}
