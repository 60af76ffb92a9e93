// A small agent on OpenAI's SDK, by Chat Completions. It knows nothing of condense.
//
//	npm install openai
//	OPENAI_API_KEY=… node loop-openai.mjs "Which test is slow?"
import OpenAI from "openai";
import { spawnSync } from "node:child_process";

const client = new OpenAI();
const model = process.env.MODEL ?? "gpt-5.4";

const tools = [
  {
    type: "function",
    function: {
      name: "bash",
      description: "Runs a command in a shell, in the current folder, and returns what it prints.",
      parameters: {
        type: "object",
        properties: { command: { type: "string" } },
        required: ["command"],
      },
    },
  },
];

function bash({ command }) {
  const done = spawnSync("bash", ["-c", command], { encoding: "utf8", timeout: 60_000 });
  return done.stdout + done.stderr;
}

const messages = [
  { role: "system", content: "You work in the user's folder with a shell. Be brief." },
  { role: "user", content: process.argv[2] },
];
for (;;) {
  const stream = client.chat.completions.stream({ model, tools, messages, stream_options: { include_usage: true } });
  const { message } = (await stream.finalChatCompletion()).choices[0];
  messages.push({ role: "assistant", content: message.content, tool_calls: message.tool_calls });
  if (message.content) console.log(message.content);
  if (!message.tool_calls?.length) break;
  for (const call of message.tool_calls) {
    const content = bash(JSON.parse(call.function.arguments));
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
}
