import createClient, { type Client, type Middleware } from 'openapi-fetch'
import { WeirError } from './error.js'
import { fetchRepeated } from './repeat.js'
import type { paths } from './schema.js'
import { readItems, readRuns, type RunsChange, type RunsFilter, type StreamEvent, type StreamOptions } from './stream.js'

export interface Options {
  /** The address of the server with its base path: "http://127.0.0.1:8420". */
  url: string
  /** One that `weir tokens create` made, or what returns it for each request; left out, or empty, for servers that need none. */
  token?: string | (() => string)
  /** Sends requests; by default the global fetch. */
  fetch?: (request: Request) => Promise<Response>
  /**
   * How often a request is sent again after the connection failed or the server is overloaded
   * (429, 502, 503, 504); 2 if left out. Only requests without a second effect are repeated: GET, HEAD, and
   * those with an Idempotency-Key.
   */
  repeat?: number
}

export interface Weir extends Client<paths> {
  /**
   * Yields the events of a run and its live output, from after a cursor, until the run has ended.
   * It connects again with Last-Event-ID when a connection ends, so that no event is missed and none comes twice.
   */
  runEvents(run: string, options?: StreamOptions): AsyncGenerator<StreamEvent, void, undefined>
  /** Yields the events of all rounds of a session in the same way, and waits for new ones until the signal aborts. */
  sessionEvents(session: string, options?: StreamOptions): AsyncGenerator<StreamEvent, void, undefined>
  /**
   * Yields the first page of a list of runs, and each change of it, until the signal aborts. The first change after a connection has
   * all runs of the page, later ones those that changed.
   */
  runChanges(filter?: RunsFilter, options?: Omit<StreamOptions, 'after'>): AsyncGenerator<RunsChange, void, undefined>
}

/** Returns a client. Each method takes a path of the API with its parameters and body, and throws a WeirError if the server refuses or is not reached. */
export function createWeir(options: Options): Weir {
  const url = options.url.replace(/\/+$/, '')
  const plain = options.fetch ?? ((request: Request) => fetch(request))
  const token = () => (typeof options.token === 'function' ? options.token() : (options.token ?? ''))
  const send = (request: Request) => fetchRepeated(plain, request, options.repeat ?? 2)
  const client = createClient<paths>({ baseUrl: url, fetch: send })
  const middleware: Middleware = {
    onRequest({ request }) {
      if (token()) request.headers.set('Authorization', `Bearer ${token()}`)
      return request
    },
    async onResponse({ response }) {
      if (!response.ok) throw await WeirError.of(response)
    },
    onError({ error }) {
      // fetch throws a TypeError if the connection fails; what aborts a request is thrown as it is
      if (error instanceof TypeError) return WeirError.unreached(error)
    },
  }
  client.use(middleware)
  const source = (path: string) => ({ send: plain, url: url + path, token })
  return Object.assign(client, {
    runEvents: (run: string, o: StreamOptions = {}) => readItems(source(`/v1/runs/${encodeURIComponent(run)}/stream`), o),
    sessionEvents: (session: string, o: StreamOptions = {}) => readItems(source(`/v1/sessions/${encodeURIComponent(session)}/stream`), o),
    runChanges: (filter: RunsFilter = {}, o: StreamOptions = {}) => readRuns(source('/v1/stream'), filter, o),
  })
}

/** Returns a new value for the header Idempotency-Key. */
export function newKey(): string {
  // a page that is served without TLS has no crypto.randomUUID
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')
}

/** Returns the body of a success; failures have thrown. */
export async function take<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T
}
