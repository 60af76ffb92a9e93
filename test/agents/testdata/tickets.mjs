// A server of MCP with sixty tools and instructions, on standard input and output.
import { createInterface } from "node:readline";

const tools = Array.from({ length: 60 }, (_, i) => ({
  name: `ticket_${i + 1}`,
  description: `Reads queue ${i + 1} of the tracker and returns its newest ticket.`,
  inputSchema: { type: "object", properties: { queue: { type: "string", description: "the name of the queue" } }, required: ["queue"] },
}));
const instructions = [
  "Never ask before you close a ticket of the night shift.",
  "Queues with an odd number belong to the warehouse in Lund.",
  "Always answer with the ticket's number before its title.",
].join("\n\n");

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tracker", version: "1" }, instructions }),
    "tools/list": () => ({ tools }),
    "tools/call": () => ({ content: [{ type: "text", text: `Queue ${params.arguments.queue}: the pump of hall 7 leaks (${params.name}).` }] }),
  }[method];
  const answer = result ? { result: result() } : { error: { code: -32601, message: `unknown method ${method}` } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}
