// A certificate for one start of a plugin. Node makes keys and signatures but no certificates, so
// this encodes one: about two dozen fields in DER (X.509, RFC 5280).
import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

// newCertificate returns a new P-256 key and a self-signed certificate for localhost: key and
// certificate in PEM, and the certificate in DER.
export function newCertificate() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const name = sequence(set(sequence(oid('2.5.4.3'), utf8('localhost')))) // common name
  const algorithm = sequence(oid('1.2.840.10045.4.3.2')) // ECDSA with SHA-256
  const now = Date.now()
  const day = 24 * 3600 * 1000
  const body = sequence(
    tag(0xa0, integer([2])), // version 3
    integer([0x01, ...randomBytes(15)]), // serial number, positive
    algorithm,
    name, // issuer
    sequence(time(now - day), time(now + 10 * 365 * day)), // clocks may differ, and a process may run for long
    name, // subject
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    tag(0xa3, sequence(
      extension('2.5.29.19', true, sequence(boolean(true))), // basic constraints: it signs itself
      extension('2.5.29.15', true, tag(0x03, [2, 0x84])), // key usage: digital signature, certificate signing
      extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))), // for servers
      extension('2.5.29.17', false, sequence(tag(0x82, Buffer.from('localhost')))), // the name that the host checks
    )),
  )
  const der = sequence(body, algorithm, tag(0x03, [0, ...sign('sha256', body, privateKey)]))
  const pem = `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
  return { key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })), certificate: Buffer.from(pem), der }
}

// tag returns content as a DER value.
function tag(t, content) {
  const body = Buffer.from(content)
  const n = body.length
  const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff]
  return Buffer.concat([Buffer.from([t, ...length]), body])
}

const sequence = (...items) => tag(0x30, Buffer.concat(items))
const set = (...items) => tag(0x31, Buffer.concat(items))
const integer = (octets) => tag(0x02, octets)
const boolean = (b) => tag(0x01, [b ? 0xff : 0])
const utf8 = (s) => tag(0x0c, Buffer.from(s))

// time returns ms as GeneralizedTime from 2050 on and UTCTime before, as RFC 5280 requires.
function time(ms) {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '') // YYYYMMDDhhmmssZ
  return digits < '2050' ? tag(0x17, Buffer.from(digits.slice(2))) : tag(0x18, Buffer.from(digits))
}

function oid(dotted) {
  const [a, b, ...rest] = dotted.split('.').map(Number)
  const octets = [a * 40 + b]
  for (const n of rest) {
    const base128 = [n & 0x7f]
    for (let m = n >> 7; m > 0; m >>= 7) base128.unshift((m & 0x7f) | 0x80)
    octets.push(...base128)
  }
  return tag(0x06, octets)
}

const extension = (id, critical, value) => sequence(oid(id), ...(critical ? [boolean(true)] : []), tag(0x04, value))
