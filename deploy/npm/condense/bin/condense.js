#!/usr/bin/env node
// Runs the program that npm installed for this system, with the same arguments, terminal and signals.
"use strict";
const { spawn } = require("node:child_process");

const name = `@condensehq/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/condense${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(
    `condense: ${name} is not installed. npm installs it as an optional dependency, unless it ran with --omit=optional ` +
      "or there is no build for this system. Install again without --omit=optional, or: " +
      "go install github.com/condensehq/condense/cmd/condense@latest",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends its interrupt to condense too. The other signals are sent to one process, which is this one.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`condense: ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  // End by the same signal, so that a shell sees what it would see without this file.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
