// An agent on Ollama's own client, with the window that it asks for: node ollama.mjs TASK WINDOW
import { Ollama } from "ollama";
import { run, system, task, tools as all } from "./shell.mjs";

const client = new Ollama({ host: process.env.OLLAMA_HOST });
const tools = all.map(({ name, description, schema }) => ({ type: "function", function: { name, description, parameters: schema } }));
const messages = [
  { role: "system", content: system },
  { role: "user", content: task },
];
for (;;) {
  const answer = { role: "assistant", content: "", tool_calls: [] };
  const options = { num_ctx: Number(process.argv[3]) };
  for await (const { message } of await client.chat({ model: process.env.MODEL, messages, tools, options, stream: true })) {
    answer.content += message.content;
    answer.tool_calls.push(...(message.tool_calls ?? []));
  }
  messages.push(answer);
  if (answer.tool_calls.length === 0) break;
  for (const call of answer.tool_calls) {
    messages.push({ role: "tool", tool_name: call.function.name, content: run(call.function.name, call.function.arguments).text });
  }
}
