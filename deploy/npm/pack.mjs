// Writes the npm packages of a release: one for each system, with the program in it, and one that depends on all of them.
//
//     node deploy/npm/pack.mjs VERSION ARTIFACTS.json FOLDER
//
// ARTIFACTS.json is the list that GoReleaser writes to dist/; the paths in it are relative to the current folder.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [version, list, out] = process.argv.slice(2);
if (!out || !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) {
  console.error("usage: node deploy/npm/pack.mjs VERSION ARTIFACTS.json FOLDER, with a version such as 1.2.3");
  process.exit(2);
}

// The names that Go and Node have for the same thing.
const systems = { linux: "linux", darwin: "darwin", windows: "win32" };
const processors = { amd64: "x64", arm64: "arm64" };

const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const common = {
  version,
  license: "Apache-2.0",
  repository: { type: "git", url: "git+https://github.com/condensehq/condense.git" },
  engines: { node: ">=18" },
};
const optionalDependencies = {};
for (const { type, goos, goarch, path } of JSON.parse(readFileSync(list, "utf8"))) {
  if (type !== "Binary" || !systems[goos] || !processors[goarch]) continue;
  const [os, cpu] = [systems[goos], processors[goarch]];
  const folder = join(out, `${os}-${cpu}`);
  const program = join(folder, "bin", goos === "windows" ? "condense.exe" : "condense");
  mkdirSync(join(folder, "bin"), { recursive: true });
  copyFileSync(path, program);
  chmodSync(program, 0o755);
  const name = `@condensehq/${os}-${cpu}`;
  const description = `The program condense for ${os} on ${cpu}. Install @condensehq/condense instead.`;
  write(folder, { name, description, ...common, preferUnplugged: true, os: [os], cpu: [cpu] });
  optionalDependencies[name] = version;
}
if (Object.keys(optionalDependencies).length === 0) {
  console.error(`${list} has no program for a system that npm knows`);
  process.exit(1);
}

const main = join(out, "condense");
cpSync(join(here, "condense"), main, { recursive: true });
write(main, {
  name: "@condensehq/condense",
  description: "Condenses the conversations of agents with language models when the context window is nearly full",
  ...common,
  bin: { condense: "bin/condense.js" },
  optionalDependencies,
});

function write(folder, content) {
  writeFileSync(join(folder, "package.json"), JSON.stringify(content, null, 2) + "\n");
}
