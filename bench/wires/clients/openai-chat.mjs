// An agent on OpenAI's SDK by Chat Completions: node openai-chat.mjs TASK OpenAI|AzureOpenAI
import * as sdk from "openai";
import { run, system, task, tools as all } from "./shell.mjs";

const client = new sdk[process.argv[3]]();
const tools = all.map(({ name, description, schema }) => ({ type: "function", function: { name, description, parameters: schema } }));
const messages = [
  { role: "system", content: system },
  { role: "user", content: task },
];
for (;;) {
  const stream = client.chat.completions.stream({ model: process.env.MODEL, tools, messages, stream_options: { include_usage: true } });
  const { message } = (await stream.finalChatCompletion()).choices[0];
  messages.push({ role: "assistant", content: message.content, tool_calls: message.tool_calls });
  if (!message.tool_calls?.length) break;
  for (const call of message.tool_calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: run(call.function.name, JSON.parse(call.function.arguments)).text });
  }
}
