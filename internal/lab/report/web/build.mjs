// Builds assets/report.js and, of the packages that ended up in it, assets/NOTICE.txt.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "../assets";
const { metafile } = await build({
  entryPoints: ["src/main.js"],
  outfile: `${out}/report.js`,
  bundle: true,
  minify: true,
  metafile: true,
  format: "iife",
  target: ["chrome113", "firefox115", "safari16.4"], // what has DecompressionStream
  charset: "ascii",
  legalComments: "none",
});

const names = new Set();
for (const [path, input] of Object.entries(Object.values(metafile.outputs)[0].inputs)) {
  const name = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
  if (name && input.bytesInOutput > 0) names.add(name);
}
const texts = new Map();
for (const name of [...names].sort()) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = readFileSync(`${folder}/${file}`, "utf8").trim();
  texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${license})`]);
}
const notice = [...texts].map(([text, packages]) => `${packages.join("\n")}\n\n${text}\n`);
writeFileSync(`${out}/NOTICE.txt`, `The script of this page contains parts of:\n\n${notice.join("\n---\n\n")}`);
