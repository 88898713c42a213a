import { startTransition, useCallback, useEffect, useRef, useState } from 'react'
import { WeirError } from './api'

export interface Loaded<T> {
  data?: T
  error?: WeirError
  loading: boolean
  reload: () => void
}

/**
 * Loads a value, and again every `every` milliseconds while the page is visible. The last
 * value stays while another one is loaded, and when loading fails.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], every = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: WeirError; loading: boolean }>({ loading: true })
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
        const error = e instanceof WeirError ? e : new WeirError(500, { detail: String(e) })
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
  /** Takes an item that was deleted out of the list. */
  drop: (key: string) => void
}

/** A value once it has not changed for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 250)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}

/**
 * What is shown behind the first page of a list when that page changes: nothing may be missing between
 * the two. It is undefined if the new first page does not reach what was shown.
 */
export function behindPage<T>(first: T[], shown: T[], key: (x: T) => string): T[] | undefined {
  const last = first.at(-1)
  const at = last ? shown.findIndex((x) => key(x) === key(last)) : -1
  if (at < 0) return undefined
  const known = new Set(first.map(key))
  return shown.slice(at + 1).filter((x) => !known.has(key(x)))
}

/** Keeps what is behind the first page of a list in step with that page. The list that is returned is the whole one. */
export function useBehind<T>(first: T[] | undefined, key: (x: T) => string, rest: { list: T[]; next: string } | undefined, setRest: (r: { list: T[]; next: string } | undefined) => void, mixed = false): T[] | undefined {
  const shown = useRef<T[]>([])
  useEffect(() => {
    if (!first || !rest) return
    const list = mixed ? shown.current : behindPage(first, shown.current, key)
    setRest(list && { list, next: rest.next })
  }, [first])
  const known = new Set(first?.map(key))
  const all = first && (rest ? [...first, ...rest.list.filter((x) => !known.has(key(x)))] : first)
  useEffect(() => {
    shown.current = all ?? []
  })
  return all
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

/**
 * A list in pages: the first one is loaded again when `changes` grows, those behind it when they are asked for.
 * `mixed`: the order within a page is not that of the pages.
 */
export function usePages<T>(load: (cursor: string, signal?: AbortSignal) => Promise<{ list: T[]; next: string }>, key: (x: T) => string, deps: unknown[], changes: number, mixed = false): Pages<T> {
  const first = useLoad((signal) => load('', signal), deps, slow)
  useAgain(changes, first.reload)
  const [rest, setRest] = useState<{ list: T[]; next: string }>()
  const [error, setError] = useState<WeirError>()
  useEffect(() => setRest(undefined), deps)
  const data = useBehind(first.data?.list, key, rest, setRest, mixed)
  const next = rest ? rest.next : (first.data?.next ?? '')
  const more = async () => {
    try {
      const p = await load(next)
      setRest((r) => ({ list: [...(r?.list ?? []), ...p.list], next: p.next }))
      setError(undefined)
    } catch (e) {
      setError(e as WeirError)
    }
  }
  const drop = (gone: string) => {
    setRest((r) => r && { ...r, list: r.list.filter((x) => key(x) !== gone) })
    first.reload()
  }
  return { data, error: error ?? first.error, loading: first.loading, reload: first.reload, more: next ? more : undefined, drop }
}
