// The tools of the loops. They know nothing of condense; addresses and keys come from the variables that each SDK reads.
import { spawnSync } from "node:child_process";

export const task = process.argv[2];
export const system = "You work in the user's folder with a shell. Be brief.";
export const tools = [
  {
    name: "bash",
    description: "Runs a command in a shell, in the current folder, and returns what it prints.",
    schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  },
];
// Only some APIs take an image as a result.
export const screenshot = { name: "screenshot", description: "Shows the screen.", schema: { type: "object", properties: {} } };

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export function run(name, { command }) {
  if (name === "screenshot") return { image: dot, failed: false };
  const done = spawnSync("bash", ["-c", command], { encoding: "utf8", timeout: 60_000 });
  return { text: done.stdout + done.stderr, failed: done.status !== 0 };
}
