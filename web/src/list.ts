import { createContext, startTransition, useCallback, useContext, useEffect, useRef, useState } from 'react'
import { api, followList, take, WeirError, type RunsFilter, type Schemas } from './api'
import { useBehind } from './use'

type Row = Schemas['RunRow']

export type Filters = Omit<RunsFilter, 'limit'>

export interface RunList {
  rows: Row[]
  /** How many changes have come. */
  changes: number
  loaded: boolean
  error?: WeirError
  reload: () => void
  /** Loads the next page, if there is one. */
  more?: () => Promise<void>
}

/** A list of runs: its first page is live while the tab is in view or `always`, those behind it are loaded when they are asked for. */
export function useRunList(filters: Filters, limit = 100, always = false): RunList {
  const key = JSON.stringify(filters)
  const [head, setHead] = useState<{ rows: Row[]; next: string }>()
  const [rest, setRest] = useState<{ list: Row[]; next: string }>()
  const [error, setError] = useState<WeirError>()
  const [turn, setTurn] = useState(0)
  const [changes, setChanges] = useState(0)
  const kept = useRef(new Map<string, Row>())
  const seen = useVisible()
  const visible = seen || always
  useEffect(() => {
    setHead(undefined)
    setRest(undefined)
    setError(undefined)
    kept.current = new Map()
  }, [key])
  useEffect(() => {
    if (!visible) return
    return followList(
      { ...(JSON.parse(key) as RunsFilter), limit },
      (change) => {
        for (const r of change.runs) kept.current.set(r.run, r)
        const rows = change.ids.flatMap((id) => kept.current.get(id) ?? [])
        kept.current = new Map(rows.map((r) => [r.run, r]))
        startTransition(() => setHead({ rows, next: change.next })) // drawn in slices, so that input is answered meanwhile
        setChanges((n) => n + 1)
      },
      (state) => {
        if (state === 'live') setError(undefined)
        if (state === 'lost') setError(new WeirError(0, {}))
      },
      setError,
    )
  }, [key, limit, visible, turn])
  const rows = useBehind(head?.rows, idOf, rest, setRest) ?? nothing
  const next = rest ? rest.next : (head?.next ?? '')
  const more = async () => {
    const p = await take(api.GET('/v1/runs', { params: { query: { ...(JSON.parse(key) as Filters), cursor: next, limit } } }))
    setRest((r) => ({ list: [...(r?.list ?? []), ...(p.runs ?? [])], next: p.next }))
  }
  return { rows, changes, loaded: !!head, error, reload: useCallback(() => setTurn((n) => n + 1), []), more: next ? more : undefined }
}

export const isEnded = (r: Row) => ['completed', 'failed', 'cancelled'].includes(r.status)

const idOf = (r: Row) => r.run
const nothing: Row[] = []

/** Whether the tab is in view: a browser has few connections for the streams of all its tabs. */
function useVisible(): boolean {
  const [visible, setVisible] = useState(!document.hidden)
  useEffect(() => {
    const f = () => setVisible(!document.hidden)
    document.addEventListener('visibilitychange', f)
    return () => document.removeEventListener('visibilitychange', f)
  }, [])
  return visible
}

/** A number that grows when a run of the server starts, changes or ends: what runs write has changed then, and is read again. */
export function useChanges(): number {
  return useRunList(everything, 20).changes + useLive().changes
}

const everything: Filters = { all: true }

/** The runs that execute or wait, live, for the whole page. */
export const Live = createContext<RunList>({ rows: [], changes: 0, loaded: false, reload: () => undefined })

export const useLive = () => useContext(Live)
