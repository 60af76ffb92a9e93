// An agent on Google's SDK, for the Gemini API or Vertex AI: node genai.mjs TASK gemini|vertex
import { GoogleGenAI } from "@google/genai";
import { OAuth2Client } from "google-auth-library";
import { run, screenshot, system, task, tools as all } from "./shell.mjs";

const authClient = new OAuth2Client();
authClient.setCredentials({ access_token: process.env.ACCESS_TOKEN, expiry_date: Date.now() + 3_600_000 });
const vertex = { vertexai: true, project: "p", location: "us-east5", googleAuthOptions: { authClient } };
const ai = new GoogleGenAI(process.argv[3] === "vertex" ? vertex : {});
const functionDeclarations = [...all, screenshot].map(({ schema, ...t }) => ({ ...t, parametersJsonSchema: schema }));
const config = { systemInstruction: system, tools: [{ functionDeclarations }] };
const contents = [{ role: "user", parts: [{ text: task }] }];
for (;;) {
  const parts = [];
  for await (const chunk of await ai.models.generateContentStream({ model: process.env.MODEL, contents, config })) {
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
  }
  contents.push({ role: "model", parts });
  const results = parts
    .filter((part) => part.functionCall)
    .map(({ functionCall: call }) => {
      const { text, image } = run(call.name, call.args);
      const response = { id: call.id, name: call.name, response: { output: text ?? "The screen is in this result." } };
      if (image) response.parts = [{ inlineData: { mimeType: "image/png", data: image } }];
      return { functionResponse: response };
    });
  if (results.length === 0) break;
  contents.push({ role: "user", parts: results });
}
