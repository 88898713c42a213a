import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** A `weir serve` with its database, which can be stopped and started again on the same port. */
export class Server {
  constructor(binary, dir, flows, { tokens = false, base = '' } = {}) {
    Object.assign(this, { binary, dir, flows, tokens, base, port: 0 })
  }

  get db() {
    return `${this.dir}/weir.db`
  }

  async start() {
    const args = ['serve', '--addr', `127.0.0.1:${this.port}`, '--db', this.db, ...(this.tokens ? ['--tokens'] : []), ...(this.base ? ['--base-path', this.base] : []), ...this.flows]
    this.process = spawn(this.binary, args, { cwd: this.dir, env: { ...process.env, ...this.env } })
    let said = ''
    this.process.stderr.on('data', (d) => (said += d))
    for (;;) {
      const found = /on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)
      if (found) {
        this.port = Number(found[1])
        return
      }
      if (this.process.exitCode !== null) throw new Error(`weir serve ended: ${said}`)
      await Promise.race([once(this.process.stderr, 'data'), once(this.process, 'exit')])
    }
  }

  get url() {
    return `http://127.0.0.1:${this.port}${this.base}/`
  }

  async stop(signal = 'SIGTERM') {
    if (this.process.exitCode !== null) return
    const gone = once(this.process, 'exit')
    this.process.kill(signal)
    await gone
  }

  /** Runs a weir command on the database and returns what it prints. */
  async command(...args) {
    const p = spawn(this.binary, [...args, '--db', this.db], { cwd: this.dir })
    let out = ''
    let err = ''
    p.stdout.on('data', (d) => (out += d))
    p.stderr.on('data', (d) => (err += d))
    const [code] = await once(p, 'exit')
    return { code, out, err }
  }

  /** Sends a request to the API. */
  async api(method, path, body, token) {
    const r = await fetch(this.url + path, {
      method,
      headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) },
      body: body && JSON.stringify(body),
    })
    const text = await r.text()
    return { status: r.status, body: text ? JSON.parse(text) : null }
  }
}
