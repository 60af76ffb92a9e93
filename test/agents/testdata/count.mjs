// The loop of loop-anthropic.mjs, which counts the tokens of every request before it sends it: both must be told the same.
import Anthropic from "@anthropic-ai/sdk";
import { spawnSync } from "node:child_process";

const client = new Anthropic();
const request = {
  model: "claude-sonnet-4-5",
  system: "You work in the user's folder with a shell. Be brief.",
  tools: [{ name: "bash", description: "Runs a command.", input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } }],
  messages: [{ role: "user", content: process.argv[2] }],
};
for (;;) {
  const { input_tokens: counted } = await client.messages.countTokens(request);
  const answer = await client.messages.create({ ...request, max_tokens: 4096, cache_control: { type: "ephemeral" } });
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = answer.usage;
  console.log("counted", counted, "used", input_tokens + cache_read_input_tokens + cache_creation_input_tokens);
  request.messages.push({ role: "assistant", content: answer.content });
  const calls = answer.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) break;
  const results = calls.map((call) => ({
    type: "tool_result",
    tool_use_id: call.id,
    content: spawnSync("bash", ["-c", call.input.command], { encoding: "utf8" }).stdout,
  }));
  request.messages.push({ role: "user", content: results });
}
