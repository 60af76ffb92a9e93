// Times Roo-Code's own functions on the histories that package roo is timed on. It needs
// a copy of Roo-Code's source, of which it takes the two files that hold them; what they
// import and these functions do not need is left out.
//
//	git clone --depth 1 https://github.com/RooCodeInc/Roo-Code
//	node roo.mjs Roo-Code
import { build } from "esbuild";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [root] = process.argv.slice(2);
if (!root) {
  console.error("usage: node roo.mjs PATH-OF-ROO-CODE");
  process.exit(2);
}
const dir = mkdtempSync(join(tmpdir(), "roo-"));
const load = async (file, name) => {
  const outfile = join(dir, name + ".mjs");
  await build({
    entryPoints: [join(root, file)], bundle: true, outfile, format: "esm", platform: "node", logLevel: "error",
    plugins: [{
      name: "alone",
      setup(b) {
        b.onResolve({ filter: /.*/ }, ({ path, kind }) =>
          kind === "entry-point" || path === "crypto" || path.endsWith("shared/array") ? null : { path, namespace: "absent" });
        b.onLoad({ filter: /.*/, namespace: "absent" }, () => ({
          // Truncations are reported to a service.
          contents: "exports.TelemetryService = { instance: { captureSlidingWindowTruncation() {} } }", loader: "js",
        }));
      },
    }],
  });
  return import(outfile);
};
const { getEffectiveApiHistory, cleanupAfterTruncation } = await load("src/core/condense/index.ts", "condense");
const { truncateConversation } = await load("src/core/context-management/index.ts", "context");
rmSync(dir, { recursive: true });

const filler = "the quick brown fox jumps over the lazy dog; ".repeat(5);
const id = "0b0f6b0e-7f6e-4c5e-9d53-0f8f6f3f7a11";
// As it is read from its file.
const history = (n, tags) => JSON.parse(JSON.stringify(
  Array.from({ length: n }, (_, i) => ({
    ...(i % 2 === 0
      ? { role: "user", content: [{ type: "tool_result", tool_use_id: `call_${i - 1}`, content: filler }, { type: "text", text: `go on with step ${i}` }] }
      : { role: "assistant", content: [{ type: "text", text: filler.slice(0, 120) }, { type: "tool_use", id: `call_${i}`, name: "read_file", input: { path: `src/f${i}.go` } }] }),
    ts: 1_700_000_000_000 + i * 1000,
    ...tags(i, n),
  })),
));
const tags = {
  untagged: () => ({}),
  "half-truncated": (i, n) =>
    i === n / 2 ? { isTruncationMarker: true, truncationId: id } : i > 0 && i < n / 2 ? { truncationParent: id } : {},
  "summary-in-middle": (i, n) =>
    i === n / 2 ? { isSummary: true, condenseId: id } : i < n / 2 ? { condenseParent: id } : {},
  orphans: (i) => (i % 3 === 0 ? { truncationParent: id } : {}),
};

const time = (name, n, messages, f) => {
  let wall = Infinity;
  const end = performance.now() + 3000;
  for (let i = 0; i < 20 || performance.now() < end; i++) {
    const start = performance.now();
    f(messages);
    wall = Math.min(wall, performance.now() - start);
  }
  console.log(`${name.padEnd(28)} ${String(n).padStart(6)}  ${wall.toFixed(4).padStart(9)} ms`);
};
for (const n of [1_000, 10_000, 100_000]) {
  for (const shape of ["untagged", "half-truncated", "summary-in-middle"]) {
    time(`effective/${shape}`, n, history(n, tags[shape]), getEffectiveApiHistory);
  }
  time("truncate/half", n, history(n, tags.untagged), (m) => truncateConversation(m, 0.5, "task"));
  time("cleanup/orphans", n, history(n, tags.orphans), cleanupAfterTruncation);
}
