import { createParser } from 'eventsource-parser'
import { ApiError, base, problemOf, token, type Schemas } from './client'

/** An item of a run's stream: an event of its journal, or live output. */
export interface Item {
  run: string
  type: string
  at: number
  number?: number
  above?: string
  node?: string
  effect?: string
  text?: string
  reasoning?: string
  stream?: string
  [member: string]: unknown
}

/** A change of the first page of a list of runs. */
export interface ListChange {
  ids: string[]
  runs: Schemas['RunRow'][]
  next: string
}

export type Connection = 'connecting' | 'live' | 'lost' | 'ended'

/** How a stream of events is read. */
interface Source {
  url: string
  /** The id of the last event, sent when the stream is connected again. */
  last: () => string
  onEvent: (name: string, data: string, id: string) => void
  onState: (c: Connection) => void
  /** An answer that ends the stream for good; the error is set if the server refuses it. */
  onEnd: (error?: ApiError) => void
}

/** Reads a stream of events, and connects again until it ends for good. Returns a function that ends it. */
function listen(s: Source): () => void {
  const stop = new AbortController()
  let retry = 1000
  const parser = createParser({
    onEvent(e) {
      if (e.event === 'server.draining') return
      if (e.data) s.onEvent(e.event ?? '', e.data, e.id ?? '')
    },
    onRetry(ms) {
      retry = ms
    },
  })
  const connect = async (): Promise<boolean> => {
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (token()) headers.Authorization = `Bearer ${token()}`
    if (s.last()) headers['Last-Event-ID'] = s.last()
    const response = await fetch(s.url, { headers, signal: stop.signal })
    if (response.status === 204) {
      s.onEnd()
      return true
    }
    if (!response.ok) {
      const failure = new ApiError(response.status, await problemOf(response))
      if (response.status >= 500 || response.status === 429) throw failure
      s.onEnd(failure)
      return true
    }
    s.onState('live')
    retry = 1000
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    parser.reset()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return false
      parser.feed(value)
    }
  }
  const loop = async () => {
    s.onState('connecting')
    while (!stop.signal.aborted) {
      let pause = 250 // the server ends the stream of a run that has ended, and says so to the next request
      try {
        if (await connect()) return
      } catch {
        if (stop.signal.aborted) return
        s.onState('lost')
        pause = retry = Math.min(retry * 2, 15000)
      }
      await new Promise((done) => setTimeout(done, pause))
    }
  }
  void loop()
  return () => stop.abort()
}

/**
 * Follows a run until it has ended, and connects again with the cursor of the last event, so
 * that none is missed and none comes twice. Returns a function that ends it.
 */
export function follow(run: string, cursor: string, onItem: (item: Item) => void, onState: (c: Connection) => void): () => void {
  let at = cursor
  return listen({
    url: `${base}/v1/runs/${encodeURIComponent(run)}/stream`, last: () => at, onState, onEnd: () => onState('ended'),
    onEvent(_, data, id) {
      if (id) at = id
      onItem(JSON.parse(data) as Item)
    },
  })
}

/** Follows the first page of a list of runs. Each change has what differs from the one before; the first one has everything. */
export function followList(query: string, onChange: (change: ListChange) => void, onState: (c: Connection) => void, onError: (e: ApiError) => void): () => void {
  return listen({
    url: `${base}/v1/stream?${query}`, last: () => '', onState, onEnd: (e) => e && onError(e),
    onEvent(name, data) {
      if (name === 'runs') onChange(JSON.parse(data) as ListChange)
    },
  })
}
