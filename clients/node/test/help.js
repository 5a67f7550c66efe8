// Run by `npm test`, with SIGNALBOX_URL for a server that has the functions. `make test` runs them on a real Redis and on the
// engine.

import { connect, createServer } from 'node:net'
import { after, before } from 'node:test'
import { Redis } from 'ioredis'

export const url = process.env.SIGNALBOX_URL || 'redis://localhost:6379'

let server
before(() => { server = new Redis(url, { lazyConnect: true }) })
after(() => server.disconnect())

/** A name of its own for what a test locks, with everything in it that must be encoded. */
export const nameOf = (t) => `${t.name}:${process.pid} }%7D{größe}`

export const fcall = (name, keys, ...args) => server.call('FCALL', name, keys.length, ...keys, ...args)

export async function eventually (holds, what) {
  for (const until = Date.now() + 60_000; !(await holds());) {
    if (Date.now() > until) throw new Error(`never: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Stands between a client and the server. While it is cut, no answer comes through, and no new connection. */
export class Proxy {
  cut = false
  #sockets = new Set()
  #listener = createServer({ allowHalfOpen: false }, (client) => this.#accept(client))

  static async listen () {
    const proxy = new Proxy()
    await new Promise((resolve) => proxy.#listener.listen(0, '127.0.0.1', resolve))
    proxy.url = `redis://127.0.0.1:${proxy.#listener.address().port}`
    return proxy
  }

  #accept (client) {
    if (this.cut) return client.destroy()
    const { hostname, port } = new URL(url)
    const upstream = connect(Number(port), hostname)
    for (const [a, b] of [[client, upstream], [upstream, client]]) {
      this.#sockets.add(a)
      a.on('data', (data) => { if (a === upstream && this.cut) a.destroy(); else b.write(data) })
      a.on('error', () => {}) // close follows
      a.on('close', () => { this.#sockets.delete(a); b.destroy() })
    }
  }

  /** Ends all connections. */
  drop () { for (const s of this.#sockets) s.destroy() }

  close () {
    this.drop()
    this.#listener.close()
  }
}
