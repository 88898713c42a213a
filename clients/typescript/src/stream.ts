import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { WeirError } from './error.js'
import { pause } from './pause.js'
import type { components, operations } from './schema.js'

/** An item of a stream: an event of a journal, or live output. docs/streams.md describes its members. */
export interface StreamItem {
  run: string
  type: string
  /** Unix milliseconds. */
  at: number
  /** The number of an event in the journal of its run; live output has none. */
  number?: number
  /** The path from the run that is read to the child run of the item. */
  above?: string
  node?: string
  /** The key of the effect that live output belongs to. */
  effect?: string
  text?: string
  reasoning?: string
  [member: string]: unknown
}

export interface StreamEvent {
  /** The cursor from which a stream continues after this item. */
  id: string
  item: StreamItem
}

export interface StreamOptions {
  /** The id of the last event that was read; left out to read from the beginning. */
  after?: string
  signal?: AbortSignal
  /** Is told when a connection is made and when it is lost. */
  onConnection?: (state: Connection) => void
}

export type Connection = 'live' | 'lost'

export type RunsFilter = NonNullable<operations['streamRuns']['parameters']['query']>

/** A change of the first page of a list of runs. */
export interface RunsChange {
  /** The ids of all runs of the page, in its order. */
  ids: string[]
  /** The runs that changed. */
  runs: components['schemas']['RunRow'][]
  /** The cursor of the page behind it; empty if there is none. */
  next: string
}

/** Where a stream comes from. */
export interface Source {
  send: (r: Request) => Promise<Response>
  url: string
  token: () => string
}

/** The bounds of the pause before a stream is connected again, in milliseconds. */
const shortest = 100
const longest = 15_000

/** Yields the items of a run or session. */
export async function* readItems(source: Source, o: StreamOptions): AsyncGenerator<StreamEvent, void, undefined> {
  for await (const event of readStream(source, o)) {
    if (event.id) yield { id: event.id, item: JSON.parse(event.data) as StreamItem }
  }
}

/** Yields the changes of a list of runs. */
export async function* readRuns(source: Source, filter: RunsFilter, o: StreamOptions): AsyncGenerator<RunsChange, void, undefined> {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(filter)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== '') query.append(name, String(one))
  }
  for await (const event of readStream({ ...source, url: `${source.url}?${query}` }, o)) {
    if (event.event === 'runs') yield JSON.parse(event.data) as RunsChange
  }
}

/** Yields the events of a stream, over new connections, until it ends for good: the server answers 204, or refuses. */
async function* readStream(source: Source, o: StreamOptions): AsyncGenerator<EventSourceMessage, void, undefined> {
  let cursor = o.after ?? ''
  let wait = shortest
  while (!o.signal?.aborted) {
    let response: Response | undefined
    try {
      response = await source.send(new Request(source.url, { headers: headersOf(source.token(), cursor), signal: o.signal }))
    } catch (error) {
      if (o.signal?.aborted) return
      if (!(error instanceof TypeError)) throw error // fetch throws a TypeError if the connection fails
    }
    if (response?.status === 204) return
    let broken = !response?.ok
    let asked = 0 // the pause that the server asks for
    if (response?.ok && response.body) {
      o.onConnection?.('live')
      for await (const event of eventsOf(response.body, () => (broken = true), (ms) => (asked = ms))) {
        wait = shortest
        if (event.event === 'server.failed') throw new WeirError(500, { detail: event.data })
        if (event.id) cursor = event.id
        yield event
      }
    } else if (response) {
      const failure = await WeirError.of(response)
      if (response.status < 500 && response.status !== 429) throw failure
    }
    if (o.signal?.aborted) return
    if (broken) o.onConnection?.('lost')
    await pause(Math.max(asked, wait * (0.5 + Math.random())), o.signal)
    wait = Math.min(wait * 2, longest)
  }
}

function headersOf(token: string, cursor: string): Record<string, string> {
  const out: Record<string, string> = { Accept: 'text/event-stream' }
  if (token) out.Authorization = `Bearer ${token}`
  if (cursor) out['Last-Event-ID'] = cursor
  return out
}

/** Yields the complete events of one connection. */
async function* eventsOf(body: ReadableStream<Uint8Array>, onBreak: () => void, onRetry: (ms: number) => void): AsyncGenerator<EventSourceMessage, void, undefined> {
  const ready: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (e) => ready.push(e), onRetry })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const piece = await reader.read().catch(() => {
        onBreak()
        return { done: true as const, value: undefined }
      })
      if (piece.done) return
      parser.feed(decoder.decode(piece.value, { stream: true }))
      yield* ready.splice(0)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
