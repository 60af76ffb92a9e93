// The loop of loop-openai.mjs as a gateway runs it that asks headroom's proxy, through its client, for the messages to send.
import { HeadroomClient } from "headroom-ai";
import OpenAI from "openai";
import { spawnSync } from "node:child_process";

const client = new OpenAI();
const model = "gpt-5.4";
const session_id = "a conversation";
const at = process.env.HEADROOM_BASE_URL;
const headroom = new HeadroomClient({ baseUrl: at, fallback: false, retries: 0, timeout: 120_000, config: { sessionId: session_id } });
const tools = [{
  type: "function",
  function: { name: "bash", description: "Runs a command.", parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } },
}];
const messages = [
  { role: "system", content: "You work in the user's folder with a shell. Be brief." },
  { role: "user", content: process.argv[2] },
];
let saved = 0;
for (;;) {
  const compressed = await headroom.compress(messages, { model });
  if (!compressed.compressed) throw new Error("not compressed");
  saved += compressed.tokensSaved;
  const { choices } = await client.chat.completions.create({ model, tools, messages: compressed.messages });
  const { message } = choices[0];
  messages.push({ role: "assistant", content: message.content, tool_calls: message.tool_calls });
  if (!message.tool_calls?.length) break;
  for (const call of message.tool_calls) {
    const content = spawnSync("bash", ["-c", JSON.parse(call.function.arguments).command], { encoding: "utf8" }).stdout;
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
}
console.log("saved", saved);
