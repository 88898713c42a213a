import { startTransition, useCallback, useEffect, useRef, useState } from 'react'
import { ApiError } from './api/client'

export interface Loaded<T> {
  data?: T
  error?: ApiError
  loading: boolean
  reload: () => void
}

/**
 * Loads a value, and again every `every` milliseconds while the page is visible. The last
 * value stays while another one is loaded, and when loading fails.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], every = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: ApiError; loading: boolean }>({ loading: true })
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  const first = useRef(true)
  useEffect(() => {
    first.current = true
    setState({ loading: true })
  }, deps)
  useEffect(() => {
    const stop = new AbortController()
    let timer = 0
    const once = async () => {
      if (document.hidden && every > 0 && !first.current) {
        timer = window.setTimeout(once, every)
        return
      }
      try {
        const data = await latest.current(stop.signal)
        if (!stop.signal.aborted) startTransition(() => setState({ data, loading: false })) // drawn in slices, so that input is answered meanwhile
      } catch (e) {
        if (stop.signal.aborted) return
        const error = e instanceof ApiError ? e : new ApiError(0, { detail: String(e), code: 'failed' })
        setState((s) => ({ data: s.data, error, loading: false }))
      }
      first.current = false
      if (every > 0 && !stop.signal.aborted) timer = window.setTimeout(once, every)
    }
    void once()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [...deps, turn, every])
  const reload = useCallback(() => setTurn((n) => n + 1), [])
  return { ...state, reload }
}

/** The present time, every second while something is going on. */
export function useNow(running: boolean): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (!running) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [running])
  return now
}

/** How often a list is read again that is also read when runs change: others may change it through the API. */
export const slow = 30000

export interface Pages<T> extends Loaded<T[]> {
  /** Loads the page behind those that are shown, if there is one. */
  more?: () => Promise<void>
}

/** Reads a value again when a number has changed. */
export function useAgain(changes: number, reload: () => void) {
  const known = useRef(changes)
  useEffect(() => {
    if (known.current === changes) return
    known.current = changes
    reload()
  }, [changes, reload])
}

/** A list in pages: the first one is loaded again when `changes` grows, those behind it when they are asked for. */
export function usePages<T>(load: (cursor: string, signal?: AbortSignal) => Promise<{ list: T[]; next: string }>, key: (x: T) => string, deps: unknown[], changes: number): Pages<T> {
  const first = useLoad((signal) => load('', signal), deps, slow)
  useAgain(changes, first.reload)
  const [rest, setRest] = useState<{ list: T[]; next: string }>()
  const [error, setError] = useState<ApiError>()
  useEffect(() => setRest(undefined), deps)
  const known = new Set(first.data?.list.map(key))
  const data = first.data && [...first.data.list, ...(rest?.list ?? []).filter((x) => !known.has(key(x)))]
  const next = rest ? rest.next : (first.data?.next ?? '')
  const more = async () => {
    try {
      const p = await load(next)
      setRest((r) => ({ list: [...(r?.list ?? []), ...p.list], next: p.next }))
      setError(undefined)
    } catch (e) {
      setError(e as ApiError)
    }
  }
  return { data, error: error ?? first.error, loading: first.loading, reload: first.reload, more: next ? more : undefined }
}
