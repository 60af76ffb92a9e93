// The plugin as a process: handshake, gRPC, the services that go-plugin expects.
import { mkdtempSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

import grpc from '@grpc/grpc-js'

import { Call } from './call.mjs'
import { newCertificate } from './certificate.mjs'
import { HostError, InvalidRequest, Unavailable, Unsupported } from './errors.mjs'
import { service } from './protocol.mjs'
import { configure, describe } from './settings.mjs'

const SDK = `condense-node 0.1.0, Node ${process.versions.node}`

const STATUS = [
  [InvalidRequest, grpc.status.INVALID_ARGUMENT],
  [Unavailable, grpc.status.UNAVAILABLE],
  [Unsupported, grpc.status.UNIMPLEMENTED],
]

// serve serves strategy, of the given program, to the host that started the process, or with debug to one that attaches.
// It returns when it listens.
export async function serve(strategy, { debug }, program) {
  if (process.platform === 'win32') throw new Error('plugins in JavaScript need unix sockets, which Windows has not for Node')
  const server = new grpc.Server()
  server.addService(passBuffers(service), provider(strategy, dirname(program)))
  addHostServices(server, () => stop(server))
  const dir = process.env.PLUGIN_UNIX_SOCKET_DIR || mkdtempSync(join(tmpdir(), 'condense-'))
  const socket = join(dir, `plugin${process.pid}`)
  process.on('exit', () => rmSync(dir === process.env.PLUGIN_UNIX_SOCKET_DIR ? socket : dir, { recursive: true, force: true }))

  // Mutual TLS: the host trusts the certificate in the handshake, the plugin the one in its
  // environment; both are made for this start only.
  const hostCertificate = process.env.PLUGIN_CLIENT_CERT
  let credentials = grpc.ServerCredentials.createInsecure()
  let announced = ''
  if (hostCertificate && !debug) {
    const { key, certificate, der } = newCertificate()
    credentials = grpc.ServerCredentials.createSsl(Buffer.from(hostCertificate), [{ private_key: key, cert_chain: certificate }], true)
    announced = der.toString('base64').replace(/=+$/, '') // go-plugin rejects padding
  }
  await new Promise((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, credentials, (err) => (err ? reject(err) : resolve()))
  })
  if (debug) {
    console.log(attachment(strategy.name, socket))
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0))
    return
  }
  process.on('SIGINT', () => {}) // Ctrl-C at the terminal stops the host, which then stops its plugins
  if (process.env.CONDENSE_PLUGIN_EXIT_WITH_STDIN === '1') {
    // The host has the other end: exit when the host does.
    process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume()
  }
  writeSync(1, `1|1|unix|${socket}|grpc|${announced}\n`)
}

// provider returns the handlers of ProviderService for strategy, whose files are in the folder home.
function provider(strategy, home) {
  let settings // in force
  return {
    Describe(_, done) {
      const about = describe(strategy)
      done(null, { ...about, sdk: SDK, settings: about.settings.map((s) => ({ ...s, default: Buffer.from(s.default) })) })
    },

    Configure(request, done) {
      try {
        const next = configure(strategy, request.request.settings.toString())
        if (next.problems.length === 0) settings = next.settings
        done(null, { problems: next.problems, estimates: strategy.estimate !== undefined })
      } catch (err) {
        done(failure(err, home)) // strategy.check failed
      }
    },

    async Condense(stream) {
      if (!settings) return stream.emit('error', { code: grpc.status.FAILED_PRECONDITION, details: 'not configured yet' })
      const inForce = settings // new settings must not affect a running call
      const stopped = new AbortController()
      const call = new Call((data) => { if (!stopped.signal.aborted) stream.write(data) }, stopped.signal)
      const fail = (err) => {
        if (!stopped.signal.aborted) stream.emit('error', failure(err, home))
        stopped.abort(err)
      }
      stream.on('cancelled', () => stopped.abort(new Error('the host does not wait any longer')))
      stream.on('data', (data) => {
        try {
          call.receive(data)
        } catch (err) {
          fail(new InvalidRequest(err.message))
        }
      })
      try {
        await call.answer((c) => (c.start.estimate ? strategy.estimate(c, inForce) : strategy.condense(c, inForce)))
        stream.end()
      } catch (err) {
        fail(err)
      }
    },
  }
}

// failure returns err as the status of a call. The stack goes to the host's log if the strategy
// has a bug.
function failure(err, home) {
  const known = STATUS.find(([type]) => err instanceof type)
  if (known) return { code: known[1], details: err.message }
  if (err instanceof HostError && !['CODE_UNSUPPORTED', 'CODE_INVALID'].includes(err.code)) { // a model failed, and not this code
    return { code: grpc.status.FAILED_PRECONDITION, details: err.message }
  }
  const text = String(err?.message ?? err) + place(err, home)
  log('error', `the strategy failed: ${text}`, { error: String(err?.stack ?? err) })
  return { code: grpc.status.UNKNOWN, details: text }
}

// place returns the line of the author's files, in the folder home, that failed, as " at plugin.mjs:12"; '' if there is none.
function place(err, home) {
  const sdk = dirname(fileURLToPath(import.meta.url))
  for (const [, url, line] of String(err?.stack).matchAll(/(file:\/\/[^\s()]+):(\d+):\d+\)?$/gm)) {
    const file = fileURLToPath(url)
    if (file.startsWith(home + sep) && dirname(file) !== sdk && !file.includes(`${sep}node_modules${sep}`)) return ` at ${relative(home, file)}:${line}`
  }
  return ''
}

// log writes a line to standard error in the format of go-plugin.
function log(level, message, fields) {
  process.stderr.write(`${JSON.stringify({ '@level': level, '@message': message, '@timestamp': new Date().toISOString(), ...fields })}\n`)
}

// passBuffers returns the service with encoded messages for Condense: call.mjs decodes them,
// because some arrive in fragments.
function passBuffers(s) {
  const as = (buffer) => buffer
  return { ...s, Condense: { ...s.Condense, requestDeserialize: as, responseSerialize: as } }
}

// addHostServices adds the services that go-plugin requires: health check and shutdown.
function addHostServices(server, onShutdown) {
  const unary = (path, answer) => ({
    call: {
      path, requestStream: false, responseStream: false,
      requestSerialize: (b) => b, requestDeserialize: (b) => b, responseSerialize: () => answer, responseDeserialize: (b) => b,
    },
  })
  const SERVING = Buffer.from([0x08, 0x01]) // HealthCheckResponse{status: SERVING}
  server.addService(unary('/grpc.health.v1.Health/Check', SERVING), { call: (_, done) => done(null, {}) })
  server.addService(unary('/plugin.GRPCController/Shutdown', Buffer.alloc(0)), {
    call: (_, done) => { done(null, {}); setImmediate(onShutdown) },
  })
}

// stop ends the process. The host calls it after the last call, and waits for two seconds.
function stop(server) {
  setTimeout(() => process.exit(0), 500).unref()
  server.tryShutdown(() => process.exit(0))
}

function attachment(name, socket) {
  const attach = { [name]: { Protocol: 'grpc', ProtocolVersion: 1, Pid: process.pid, Test: true, Addr: { Network: 'unix', String: socket } } }
  return `${name} waits for a host. It runs until it is interrupted; the connection is not encrypted.
If your condense.yaml has another name for the provider than "${name}", write that one into this
line, and put the line before your command:

CONDENSE_REATTACH='${JSON.stringify(attach)}' \\
  condense run conversation.jsonl`
}
