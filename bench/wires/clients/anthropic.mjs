// An agent on Anthropic's SDK, or on that for a cloud, which are used alike: node anthropic.mjs TASK sdk|vertex|bedrock|foundry
import { run, screenshot, system, task, tools as all } from "./shell.mjs";

const open = {
  sdk: async () => new (await import("@anthropic-ai/sdk")).default(),
  bedrock: async () => new (await import("@anthropic-ai/bedrock-sdk")).default(),
  foundry: async () => new (await import("@anthropic-ai/foundry-sdk")).default(),
  vertex: async () => {
    const { AnthropicVertex } = await import("@anthropic-ai/vertex-sdk");
    const { OAuth2Client } = await import("google-auth-library");
    const authClient = new OAuth2Client();
    authClient.setCredentials({ access_token: process.env.ACCESS_TOKEN, expiry_date: Date.now() + 3_600_000 });
    return new AnthropicVertex({ authClient, projectId: "p", region: "us-east5" });
  },
};
const client = await open[process.argv[3]]();
const tools = [...all, screenshot].map(({ name, description, schema }) => ({ name, description, input_schema: schema }));

// mark moves the cache marker to the newest message.
function mark(messages) {
  for (const m of messages) for (const block of m.content) delete block.cache_control;
  messages.at(-1).content.at(-1).cache_control = { type: "ephemeral" };
}

const messages = [{ role: "user", content: [{ type: "text", text: task }] }];
for (;;) {
  mark(messages);
  const request = { model: process.env.MODEL, max_tokens: 8192, thinking: { type: "adaptive" }, system, tools, messages };
  const answer = await client.messages.stream(request).finalMessage();
  messages.push({ role: "assistant", content: answer.content });
  const results = answer.content
    .filter((block) => block.type === "tool_use")
    .map((call) => {
      const { text, image, failed } = run(call.name, call.input);
      const content = image ? [{ type: "image", source: { type: "base64", media_type: "image/png", data: image } }] : text;
      return { type: "tool_result", tool_use_id: call.id, content, is_error: failed };
    });
  if (results.length === 0) break;
  messages.push({ role: "user", content: results });
}
