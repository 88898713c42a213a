import { createParser } from 'eventsource-parser'
import { ApiError, base, problemOf, token } from './client'

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

export type Connection = 'connecting' | 'live' | 'lost' | 'ended'

/**
 * Follows a run until it has ended, and connects again with the cursor of the last event, so
 * that none is missed and none comes twice. Returns a function that ends it.
 */
export function follow(run: string, cursor: string, onItem: (item: Item) => void, onState: (c: Connection) => void): () => void {
  const stop = new AbortController()
  let retry = 1000
  let at = cursor
  const parser = createParser({
    onEvent(e) {
      if (e.id) at = e.id
      if (e.event === 'server.draining') return
      if (e.data) onItem(JSON.parse(e.data) as Item)
    },
    onRetry(ms) {
      retry = ms
    },
  })
  const connect = async (): Promise<boolean> => {
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (token()) headers.Authorization = `Bearer ${token()}`
    if (at) headers['Last-Event-ID'] = at
    const response = await fetch(`${base}/v1/runs/${encodeURIComponent(run)}/stream`, { headers, signal: stop.signal })
    if (response.status === 204) return true
    if (!response.ok) {
      const failure = new ApiError(response.status, await problemOf(response))
      if (response.status < 500 && response.status !== 429) return true
      throw failure
    }
    onState('live')
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
    onState('connecting')
    while (!stop.signal.aborted) {
      let pause = 250 // the server ends the stream of a run that has ended, and says so to the next request
      try {
        if (await connect()) {
          onState('ended')
          return
        }
      } catch {
        if (stop.signal.aborted) return
        onState('lost')
        pause = retry = Math.min(retry * 2, 15000)
      }
      await new Promise((done) => setTimeout(done, pause))
    }
  }
  void loop()
  return () => stop.abort()
}
