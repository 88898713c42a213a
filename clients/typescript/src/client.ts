import createClient, { type Client, type Middleware } from 'openapi-fetch'
import { WeirError } from './error.js'
import { fetchRepeated } from './repeat.js'
import type { paths } from './schema.js'
import { readStream, type StreamEvent, type StreamOptions } from './stream.js'

export interface Options {
  /** The address of the server with its base path: "http://127.0.0.1:8420". */
  url: string
  /** One that `weir tokens create` made; left out for servers that need none. */
  token?: string
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
}

/** Returns a client. Each method takes a path of the API with its parameters and body, and throws a WeirError if the server refuses. */
export function createWeir(options: Options): Weir {
  const url = options.url.replace(/\/+$/, '')
  const plain = options.fetch ?? ((request: Request) => fetch(request))
  const send = (request: Request) => fetchRepeated(plain, request, options.repeat ?? 2)
  const client = createClient<paths>({ baseUrl: url, fetch: send })
  const middleware: Middleware = {
    onRequest({ request }) {
      if (options.token) request.headers.set('Authorization', `Bearer ${options.token}`)
      return request
    },
    async onResponse({ response }) {
      if (!response.ok) throw await WeirError.of(response)
    },
  }
  client.use(middleware)
  const stream = (path: string, o: StreamOptions = {}) => readStream(plain, url + path, options.token ?? '', o)
  return Object.assign(client, {
    runEvents: (run: string, o?: StreamOptions) => stream(`/v1/runs/${encodeURIComponent(run)}/stream`, o),
    sessionEvents: (session: string, o?: StreamOptions) => stream(`/v1/sessions/${encodeURIComponent(session)}/stream`, o),
  })
}

/** Returns a new value for the header Idempotency-Key. */
export function newKey(): string {
  return crypto.randomUUID()
}

/** Returns the body of a success; failures have thrown. */
export async function take<T>(call: Promise<{ data?: T }>): Promise<T> {
  return (await call).data as T
}
