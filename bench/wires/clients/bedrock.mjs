// An agent on AWS's SDK, by Converse or by InvokeModel with a body of Anthropic's: node bedrock.mjs TASK converse|invoke
import { BedrockRuntimeClient, ConverseCommand, InvokeModelCommand } from "@aws-sdk/client-bedrock-runtime";
import { run, screenshot, system, task, tools as all } from "./shell.mjs";

const client = new BedrockRuntimeClient();
const tools = [...all, screenshot];
const modelId = process.env.MODEL;

async function converse() {
  const cachePoint = { type: "default" };
  const toolConfig = { tools: tools.map(({ schema, ...t }) => ({ toolSpec: { ...t, inputSchema: { json: schema } } })) };
  const messages = [{ role: "user", content: [{ text: task }] }];
  for (;;) {
    const last = messages.at(-1);
    const marked = [...messages.slice(0, -1), { ...last, content: [...last.content, { cachePoint }] }];
    const additionalModelRequestFields = { thinking: { type: "adaptive" } };
    const inferenceConfig = { maxTokens: 8192 };
    const request = { modelId, system: [{ text: system }], toolConfig, messages: marked, inferenceConfig, additionalModelRequestFields };
    const { message } = (await client.send(new ConverseCommand(request))).output;
    messages.push(message);
    const results = message.content
      .filter((block) => block.toolUse)
      .map(({ toolUse: call }) => {
        const { text, image, failed } = run(call.name, call.input);
        const content = [image ? { image: { format: "png", source: { bytes: Buffer.from(image, "base64") } } } : { text }];
        return { toolResult: { toolUseId: call.toolUseId, content, status: failed ? "error" : "success" } };
      });
    if (results.length === 0) return;
    messages.push({ role: "user", content: results });
  }
}

async function invoke() {
  const request = { anthropic_version: "bedrock-2023-05-31", max_tokens: 8192, thinking: { type: "adaptive" }, system };
  request.tools = tools.map(({ schema, ...t }) => ({ ...t, input_schema: schema }));
  const messages = [{ role: "user", content: [{ type: "text", text: task }] }];
  for (;;) {
    for (const m of messages) for (const block of m.content) delete block.cache_control;
    messages.at(-1).content.at(-1).cache_control = { type: "ephemeral" };
    const body = JSON.stringify({ ...request, messages });
    const response = await client.send(new InvokeModelCommand({ modelId, contentType: "application/json", body }));
    const { content } = JSON.parse(response.body.transformToString());
    messages.push({ role: "assistant", content });
    const results = content
      .filter((block) => block.type === "tool_use")
      .map((call) => {
        const { text, image, failed } = run(call.name, call.input);
        const content = image ? [{ type: "image", source: { type: "base64", media_type: "image/png", data: image } }] : text;
        return { type: "tool_result", tool_use_id: call.id, content, is_error: failed };
      });
    if (results.length === 0) return;
    messages.push({ role: "user", content: results });
  }
}

await { converse, invoke }[process.argv[3]]();
