import { createWeir, take, WeirError, type components, type Connection, type RunsChange, type RunsFilter, type StreamItem } from 'weir-client'

export { newKey, take, WeirError } from 'weir-client'
export type { operations, RunsFilter, StreamItem } from 'weir-client'
export type Schemas = components['schemas']

/** The base of all addresses: the page may be served below any path. */
export const base = new URL('.', document.baseURI).href.replace(/\/$/, '')

const key = 'weir.token'

/** The token of the session, or the one that is kept on this device. */
export function token(): string {
  return sessionStorage.getItem(key) ?? localStorage.getItem(key) ?? ''
}

export function setToken(secret: string, keep: boolean) {
  sessionStorage.setItem(key, secret)
  if (keep) localStorage.setItem(key, secret)
}

export function clearToken() {
  sessionStorage.removeItem(key)
  localStorage.removeItem(key)
}

const listeners = new Set<() => void>()

/** Calls a function when the server refuses the token. */
export function onUnauthenticated(f: () => void): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

/** The API. A failure is shown at once, with a button that tries again, so that nothing is repeated in silence. */
export const api = createWeir({ url: base, token, repeat: 0 })
api.use({
  onResponse({ response }) {
    if (response.status === 401) listeners.forEach((f) => f())
  },
})

/** Whether the server knows a token. */
export async function accepts(secret: string): Promise<boolean> {
  try {
    await take(createWeir({ url: base, token: secret, repeat: 0 }).GET('/v1/me'))
    return true
  } catch (e) {
    if (e instanceof WeirError && !e.offline) return false
    throw e
  }
}

/** Returns an answer that is not JSON, from a request with `parseAs: 'stream'`. */
export async function raw(call: Promise<{ response: Response }>): Promise<Response> {
  return (await call).response
}

/** Reads an address that the server gave: its path, because the page may be served below another one than the server knows. */
export function rawAt(url: string): Promise<Response> {
  return raw(api.GET(url.slice(url.indexOf('/v1/')) as '/v1/me', { parseAs: 'stream' }))
}

/** Follows a run from behind a cursor until it has ended. Returns a function that stops it. */
export function follow(run: string, after: string, onItem: (item: StreamItem) => void, onState: (c: Connection | 'ended') => void): () => void {
  const stop = new AbortController()
  const read = async () => {
    for await (const { item } of api.runEvents(run, { after, signal: stop.signal, onConnection: onState })) onItem(item)
  }
  const end = () => stop.signal.aborted || onState('ended') // a server that refuses does not know the run any more
  read().then(end, end)
  return () => stop.abort()
}

/** Follows the first page of a list of runs. Returns a function that stops it. */
export function followList(filter: RunsFilter, onChange: (change: RunsChange) => void, onState: (c: Connection) => void, onError: (e: WeirError) => void): () => void {
  const stop = new AbortController()
  const read = async () => {
    for await (const change of api.runChanges(filter, { signal: stop.signal, onConnection: onState })) onChange(change)
  }
  read().catch((e: unknown) => stop.signal.aborted || onError(e as WeirError))
  return () => stop.abort()
}
