import createClient, { type Middleware } from 'openapi-fetch'
import type { components, paths } from './schema'

export type Schemas = components['schemas']
export type Problem = Schemas['Problem']

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

/** An error of the API or of the connection. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  readonly mistakes: Schemas['Mistake'][]
  readonly problem?: Problem

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? '')
    this.status = status
    this.code = problem.code ?? ''
    this.hint = problem.hint ?? ''
    this.mistakes = problem.errors ?? []
    this.problem = problem as Problem
  }

  /** The server could not be reached. */
  get offline() {
    return this.status === 0
  }
}

const listeners = new Set<() => void>()

/** Calls a function when the server refuses the token. */
export function onUnauthenticated(f: () => void): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

const authorize: Middleware = {
  onRequest({ request }) {
    const secret = token()
    if (secret) request.headers.set('Authorization', `Bearer ${secret}`)
    return request
  },
  async onResponse({ response }) {
    if (response.ok) return
    if (response.status === 401) listeners.forEach((f) => f())
    throw new ApiError(response.status, await problemOf(response))
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === 'AbortError') return
    return new ApiError(0, { detail: String(error), code: 'offline' })
  },
}

export async function problemOf(response: Response): Promise<Partial<Problem>> {
  try {
    return (await response.json()) as Problem
  } catch {
    return { detail: response.statusText }
  }
}

const client = createClient<paths>({ baseUrl: base })
client.use(authorize)

export const api = client

/** Returns the body of a success; failures have thrown. */
export async function take<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T
}

/** A key for requests that may be sent again. */
export function requestKey(): string {
  return crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`
}
