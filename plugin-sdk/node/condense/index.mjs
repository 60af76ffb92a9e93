// The folder condense is the SDK for plugins in JavaScript, with condense.proto, the protocol. Copy
// it next to your plugin and do not change it. Node 18 or later; the only packages are gRPC's own.
//
//   import { main } from './condense/index.mjs'
//
//   main(import.meta, {
//     name: 'my_plugin',               // lower-case letters, digits, underscores
//     version: '0.1.0',
//     doc: 'What it does. The first sentence appears in lists.',
//     abilities: ['hides'],            // all that it does: hides, rewrites, inserts, asks_models, keeps_words; without it, anything is allowed
//     settings: { keep: { default: 10, doc: 'Messages to keep.', was: ['recent'] } }, // was: former names, which are read as well
//     check: (settings) => settings.keep < 1 ? [{ key: 'keep', message: 'must be at least 1' }] : [],
//     condense: async (call, settings) => { … },
//     // Optional: it sets call.usage to the most that the call would cost in language models, and neither asks one nor edits.
//     estimate: async (call, settings) => { … },
//   })
//
// The methods of a call are in call.mjs; tests without a host are in testing.mjs.
import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe } from './settings.mjs'

export { HostError, InvalidRequest, Unavailable, Unsupported } from './errors.mjs'

// The cookie is not a secret: it shows that a host, not a user, started the program.
const COOKIE = ['CONDENSE_PLUGIN_COOKIE', '8e9d1f52-4c0b-4d77-9f6b-c3c2b1d7a6e0']
const hosted = process.env[COOKIE[0]] === COOKIE[1]

// Standard output is reserved for the handshake, its first line. Other output, from a package for
// instance, is redirected to the host's log.
if (hosted) process.stdout.write = process.stderr.write.bind(process.stderr)

// main serves strategy if the module meta (write import.meta) is the program that was started; if
// it was imported, by a test for instance, main only checks strategy. Started by hand the program
// prints what it is; with --debug it waits for a host to attach, so that it
// can run under a debugger: node --inspect plugin.mjs --debug.
export function main(meta, strategy) {
  describe(strategy)
  const program = fileURLToPath(meta.url)
  if (!process.argv[1] || realpathSync(process.argv[1]) !== realpathSync(program)) return
  const args = process.argv.slice(2).map((a) => a.replace(/^--?/, ''))
  if (hosted && args.length === 0) {
    serve(strategy, { debug: false }, program)
  } else if (args[0] === 'debug') {
    serve(strategy, { debug: true }, program)
  } else if (args[0] === 'version') {
    console.log(strategy.name, strategy.version)
  } else if (args[0] === 'h' || args[0] === 'help') {
    console.log(help(strategy, program))
  } else {
    console.error(args.length > 0 ? `unknown argument ${args[0]}; there are -h, -version and -debug` : help(strategy, program))
    process.exitCode = 2
  }
}

async function serve(strategy, options, program) {
  try {
    const server = await import('./server.mjs')
    await server.serve(strategy, options, realpathSync(program))
  } catch (err) {
    console.error(err.code === 'ERR_MODULE_NOT_FOUND' ? `${err.message}: run "npm ci --ignore-scripts" in the folder of ${program}` : err)
    process.exit(1)
  }
}

function help(strategy, program) {
  const { settings } = describe(strategy)
  const folder = dirname(program)
  const lines = settings.map((s) => `        ${s.name}: ${s.default}   # ${s.doc}${s.enum.length > 0 ? ` One of ${s.enum.join(', ')}.` : ''}`)
  return `${strategy.name} ${strategy.version} is a plugin of condense, which shortens conversations with language models.

  ${strategy.doc}

It does nothing by itself: condense starts it. Configure it in condense.yaml:

  providers:
    ${strategy.name}:
      plugin: ${program}
      folder: ${folder}
${lines.length > 0 ? `      settings:\n${lines.join('\n')}\n` : ''}
Test it with     condense plugin test ${program} --folder ${folder}
Debug it with    node --inspect ${program} -debug    which prints what to give to condense`
}
