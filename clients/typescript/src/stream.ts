import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { WeirError } from './error.js'
import { pause } from './pause.js'

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
}

/** The bounds of the pause before a stream is connected again, in milliseconds. */
const shortest = 100
const longest = 15_000

/** Reads a stream of events until it ends for good: the server answers 204, or refuses. */
export async function* readStream(send: (r: Request) => Promise<Response>, url: string, token: string, o: StreamOptions): AsyncGenerator<StreamEvent, void, undefined> {
  let cursor = o.after ?? ''
  let wait = shortest
  while (!o.signal?.aborted) {
    let response: Response | undefined
    try {
      response = await send(new Request(url, { headers: headersOf(token, cursor), signal: o.signal }))
    } catch (error) {
      if (!(error instanceof TypeError)) return throwUnlessAborted(error, o.signal) // fetch throws a TypeError if the connection fails
    }
    if (response?.status === 204) return
    if (response && !response.ok) {
      const failure = await WeirError.of(response)
      if (response.status < 500 && response.status !== 429) throw failure
    } else if (response?.body) {
      for await (const event of eventsOf(response.body)) {
        wait = shortest
        if (event.event === 'server.failed') throw new WeirError(500, { detail: event.data })
        if (!event.id) continue // of the server, not of what is streamed
        cursor = event.id
        yield { id: event.id, item: JSON.parse(event.data) as StreamItem }
      }
    }
    await pause(wait * (0.5 + Math.random()), o.signal)
    wait = Math.min(wait * 2, longest)
  }
}

function throwUnlessAborted(error: unknown, signal?: AbortSignal) {
  if (!signal?.aborted) throw error
}

function headersOf(token: string, cursor: string): Record<string, string> {
  const out: Record<string, string> = { Accept: 'text/event-stream' }
  if (token) out.Authorization = `Bearer ${token}`
  if (cursor) out['Last-Event-ID'] = cursor
  return out
}

/** Yields the complete events of one connection; a connection that breaks ends it. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage, void, undefined> {
  const ready: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (e) => ready.push(e) })
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const piece = await reader.read().catch(() => ({ done: true as const, value: undefined }))
      if (piece.done) return
      parser.feed(decoder.decode(piece.value, { stream: true }))
      yield* ready.splice(0)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
