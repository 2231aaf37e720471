#!/usr/bin/node
// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// A plug-in in another language: it gives each claim a ConfigMap with what its parameters say.
import { readFileSync } from 'node:fs'
import grpc from '@grpc/grpc-js'
import loader from '@grpc/proto-loader'

const contract = loader.loadSync(new URL('plugin.proto', import.meta.url).pathname, { keepCase: true })
const { CapabilityPlugin } = grpc.loadPackageDefinition(contract).strata.plugin.v1

const schema = { type: 'object', properties: { greeting: { type: 'string', default: 'hello' } } }

const server = new grpc.Server()
server.addService(CapabilityPlugin.service, {
  Describe: (_, answer) => answer(null, {
    name: 'greetings', version: '1.0.0',
    capabilities: [{ capability: 'text/greeting', versions: ['1.0'], schema: Buffer.from(JSON.stringify(schema)) }],
  }),
  Validate: (_, answer) => answer(null, {}),
  Plan: ({ request: { claim, parameters } }, answer) => {
    let greeting
    try {
      greeting = JSON.parse(parameters.toString()).greeting
    } catch {
      return answer({ code: grpc.status.INVALID_ARGUMENT, message: 'the parameters are no JSON' })
    }
    const template = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${claim?.name}-greeting` }, data: { greeting: `${greeting}` } }
    answer(null, {
      objects: [{ id: 'greeting', template: Buffer.from(JSON.stringify(template)) }],
      publishes: [{ key: 'greeting', text: `${greeting}` }],
    })
  },
  Health: (_, answer) => answer(null, {}),
})

const folder = process.env.STRATA_PLUGIN_CERTIFICATES
const [ca, key, cert] = ['ca.crt', 'tls.key', 'tls.crt'].map((name) => readFileSync(`${folder}/${name}`))
const credentials = grpc.ServerCredentials.createSsl(ca, [{ private_key: key, cert_chain: cert }], true)
const listen = process.env.STRATA_PLUGIN_LISTEN.replace(/^:/, '0.0.0.0:')
server.bindAsync(listen, credentials, (error) => { if (error) throw error })
