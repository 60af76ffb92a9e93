// An agent on Vercel's AI SDK, which runs the loop itself: node ai-sdk.mjs TASK google|anthropic|openai
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { run, system, task, tools as all } from "./shell.mjs";

const providers = {
  google: async () => (await import("@ai-sdk/google")).createGoogleGenerativeAI({ baseURL: process.env.BASE_URL }),
  anthropic: async () => (await import("@ai-sdk/anthropic")).createAnthropic({ baseURL: process.env.BASE_URL }),
  openai: async () => (await import("@ai-sdk/openai")).createOpenAI({ baseURL: process.env.BASE_URL }),
};
const provider = await providers[process.argv[3]]();
const newest = { anthropic: { cacheControl: { type: "ephemeral" } } };
await generateText({
  model: provider(process.env.MODEL),
  system,
  prompt: task,
  tools: Object.fromEntries(
    all.map(({ name, description, schema }) => [
      name,
      tool({ description, inputSchema: jsonSchema(schema), execute: (input) => run(name, input).text }),
    ]),
  ),
  stopWhen: stepCountIs(1000),
  // Anthropic's cache needs a marker on the newest message; the other vendors' do not, and their providers ignore it.
  prepareStep: ({ messages }) => ({
    messages: messages.map((m, i) => ({ ...m, providerOptions: i === messages.length - 1 ? newest : undefined })),
  }),
});
