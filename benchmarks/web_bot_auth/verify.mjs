// Judges requests by two packages of npm: JSON on standard input, JSON on standard output.
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'

const require = createRequire(`${process.cwd()}/`) // they are installed where this is started
const sig = await import(require.resolve('http-message-sig').replace(/\.cjs$/, '.mjs'))
const { verify } = require('web-bot-auth')
const { verifierFromJWK } = require('web-bot-auth/crypto')

const { keys, requests } = JSON.parse(await text(process.stdin))
const known = new Map(keys.map((key) => [key.kid, key]))

async function bySignature({ method, url, headers }) {
  const message = { kind: 'request', method, targetUri: url, fields: headers.map(([name, value]) => ({ name, value })) }
  await sig.verifySignature(message, {
    policy: {
      algorithms: ['ed25519'],
      requiredComponents: ['@authority'],
      requiredParameters: ['created', 'expires', 'keyid', 'tag'],
      validate: ({ parameters }) => parameters.tag === 'web-bot-auth',
    },
    async resolveVerifier({ parameters }) {
      const { kty, crv, x } = known.get(parameters.keyid)
      const key = await crypto.subtle.importKey('jwk', { kty, crv, x }, { name: 'Ed25519' }, true, ['verify'])
      return sig.webcrypto.verifier(key)
    },
  })
}

async function byBot({ method, url, headers }) {
  const keyid = /keyid="([^"]*)"/.exec(headers.find(([name]) => name.toLowerCase() === 'signature-input')?.[1] ?? '')?.[1]
  await verify(new Request(url, { method, headers }), await verifierFromJWK(known.get(keyid)))
}

const why = (judged) => judged.then(() => '', (error) => String(error.message ?? error))
const found = []
for (const request of requests) found.push([await why(bySignature(request)), await why(byBot(request))])
process.stdout.write(JSON.stringify(found))
