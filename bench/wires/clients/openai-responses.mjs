// An agent on OpenAI's SDK by Responses: it sends its history, with encrypted reasoning, or, with "stored", only what is new:
// node openai-responses.mjs TASK whole|stored
import OpenAI from "openai";
import { run, screenshot, system, task, tools as all } from "./shell.mjs";

const client = new OpenAI();
const stored = process.argv[3] === "stored";
const tools = [...all, screenshot].map(({ schema, ...t }) => ({ type: "function", ...t, parameters: schema, strict: false }));
const request = { model: process.env.MODEL, instructions: system, tools, store: stored, reasoning: { effort: "medium", summary: "auto" } };
if (!stored) request.include = ["reasoning.encrypted_content"];
let input = [{ role: "user", content: task }];
for (;;) {
  const response = await client.responses.create({ ...request, input });
  const results = response.output
    .filter((item) => item.type === "function_call")
    .map((call) => {
      const { text, image } = run(call.name, JSON.parse(call.arguments));
      const output = image ? [{ type: "input_image", image_url: `data:image/png;base64,${image}` }] : text;
      return { type: "function_call_output", call_id: call.call_id, output };
    });
  if (results.length === 0) break;
  if (stored) {
    request.previous_response_id = response.id;
    input = results;
  } else {
    input.push(...response.output, ...results);
  }
}
