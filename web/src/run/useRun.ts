import { startTransition, useCallback, useEffect, useRef, useState } from 'react'
import { api, follow, take, WeirError, type Schemas, type StreamItem } from '../api'
import { duration } from '../format'
import { t } from '../strings'

export type Timeline = Schemas['Timeline']
export type Connection = 'connecting' | 'live' | 'lost' | 'ended'
export type RunNode = Schemas['TimelineNode']

/** Live output of an effect: what was seen of it so far. */
export interface Live {
  text: string
  reasoning: string
  stdout: string
  /** Why a model call waits; empty if it does not. */
  waits?: string
}

export interface RunState {
  data?: Timeline
  error?: WeirError
  connection: Connection
  live: ReadonlyMap<string, Live>
  reload: () => void
}

const statusOf: Record<string, string> = {
  'node.started': 'running', 'node.resumed': 'running', 'node.waiting': 'waiting', 'node.completed': 'completed', 'node.failed': 'failed',
  'node.skipped': 'skipped', 'node.not_needed': 'not_needed', 'node.cancelled': 'cancelled',
}

export const ended = (status: string) => ['completed', 'failed', 'cancelled'].includes(status)

/**
 * A run, live. Events change statuses at once; the server's summary of the run follows, at
 * most a few times a second, and is what counts. at is an event in the past, 0 for now.
 */
export function useRun(id: string, at: number): RunState {
  const [data, setData] = useState<Timeline>()
  const [error, setError] = useState<WeirError>()
  const [connection, setConnection] = useState<Connection>('connecting')
  const [live, setLive] = useState<ReadonlyMap<string, Live>>(new Map())
  const [turn, setTurn] = useState(0)
  const shown = useRef<Timeline>(undefined)
  useEffect(() => {
    let stopped = false
    let unfollow: (() => void) | undefined
    let timer = 0
    let took = 0
    let loading = false
    let again = false
    const buffers = new Map<string, Live>()
    let flushing = 0
    const load = async (): Promise<Timeline | undefined> => {
      loading = true
      const began = performance.now()
      try {
        const next = await take(api.GET('/v1/runs/{run}/timeline', { params: { path: { run: id }, query: { at: at || undefined, limit: 20000 } } }))
        if (stopped) return
        took = performance.now() - began
        setError(undefined)
        const merged = (shown.current = keepUnchanged(shown.current, next))
        startTransition(() => setData(merged)) // drawn in slices, so that input is answered meanwhile
        return next
      } catch (e) {
        if (!stopped) setError(e as WeirError)
      } finally {
        loading = false
        if (again && !stopped) {
          again = false
          schedule()
        }
      }
    }
    const schedule = () => {
      if (loading) again = true
      else if (!timer) {
        timer = window.setTimeout(() => {
          timer = 0
          void load()
        }, Math.max(250, took * 3))
      }
    }
    const flush = () => {
      flushing ||= window.setTimeout(() => {
        flushing = 0
        setLive(new Map(buffers))
      }, 80)
    }
    const onItem = (item: StreamItem) => {
      if (item.type.startsWith('model.') || item.type.startsWith('live.') || item.type === 'code.output') {
        if (applyLive(buffers, item)) flush()
        return
      }
      if (item.type === 'effect.completed' && buffers.delete(liveKey(item, String(item.key)))) flush()
      const status = statusOf[item.type]
      if (status && !item.above && (item.number ?? 0) > (shown.current?.event ?? 0)) {
        const changed = (shown.current = shown.current && setStatus(shown.current, String(item.node), status))
        setData(changed)
      }
      schedule()
    }
    const begin = async () => {
      const first = await load()
      if (stopped) return
      if (!first) {
        timer = window.setTimeout(() => { timer = 0; void begin() }, 2000)
        return
      }
      // The summary of a run that has ended is whole: reading it again, and drawing it, would be work for nothing. After a
      // reload it is followed, because what was asked for may continue it.
      if (at || (turn === 0 && ended(first.status))) return setConnection('ended')
      let known = turn === 0 // what comes behind the cursor of the first summary is in the stream
      unfollow = follow(id, first.cursor, onItem, (c) => {
        setConnection(c)
        if (c === 'ended' || (c === 'live' && !known)) schedule()
        known = known && c !== 'live'
      })
    }
    void begin()
    return () => {
      stopped = true
      unfollow?.()
      clearTimeout(timer)
      clearTimeout(flushing)
    }
  }, [id, at, turn])
  return { data, error, connection, live, reload: useCallback(() => setTurn((n) => n + 1), []) }
}

const nothingShared: ReadonlySet<string> = new Set()

/** The nodes of a fork that ended in the past that it shares with another run: they did not run in the fork. */
export function useShared(data: Timeline | undefined): ReadonlySet<string> {
  const [shared, setShared] = useState(nothingShared)
  const [run, at] = [data?.run, data?.fork?.at]
  useEffect(() => {
    setShared(nothingShared)
    if (!run || !at) return
    let stopped = false
    take(api.GET('/v1/runs/{run}/timeline', { params: { path: { run }, query: { at, limit: 20000 } } }))
      .then((then) => !stopped && setShared(new Set((then.nodes ?? []).filter((n) => n.ended > 0).map((n) => n.node))))
      .catch(() => undefined) // the run itself says that the server does not answer
    return () => {
      stopped = true
    }
  }, [run, at])
  return shared
}

const liveKey = (item: StreamItem, effect: string) => (item.above ?? '') + effect

/** Adds live output to what was seen; false if nothing changed. */
function applyLive(buffers: Map<string, Live>, item: StreamItem): boolean {
  if (item.type === 'live.gap') {
    buffers.clear()
    return true
  }
  if (!item.effect) return false
  const key = liveKey(item, item.effect)
  const b = buffers.get(key) ?? { text: '', reasoning: '', stdout: '' }
  switch (item.type) {
    case 'model.waiting':
      buffers.set(key, { ...b, waits: waitText(String(item.why), String(item.about ?? ''), Number(item.ms)) })
      return true
    case 'model.text':
      buffers.set(key, { ...b, waits: '', text: b.text + (item.text ?? '') })
      return true
    case 'model.reasoning':
      buffers.set(key, { ...b, waits: '', reasoning: b.reasoning + (item.text ?? '') })
      return true
    case 'code.output':
      buffers.set(key, { ...b, stdout: b.stdout + (item.text ?? '') })
      return true
    case 'live.snapshot':
      buffers.set(key, { text: item.text ?? '', reasoning: item.reasoning ?? '', stdout: String(item.stdout ?? '') + String(item.stderr ?? '') })
      return true
    case 'live.retracted':
      return buffers.delete(key)
  }
  return false
}

/** Why a model call waits, in words. */
function waitText(why: string, about: string, ms: number): string {
  if (why === 'limit') return `${t.node.waitsLimit} ${about}`
  if (why === 'stopped') return `${t.node.waitsStopped} ${about}`
  return `${t.node.waitsRetry} ${duration(ms)}: ${about || why}`
}

function setStatus(old: Timeline, path: string, status: string): Timeline {
  const nodes = old.nodes ?? []
  const i = nodes.findIndex((n) => n.node === path)
  if (i < 0 || nodes[i].status === status) return old
  const next = nodes.slice()
  next[i] = { ...nodes[i], status }
  return { ...old, nodes: next }
}

/** Returns next with the node objects of old where nothing changed, so that they are not drawn again. */
function keepUnchanged(old: Timeline | undefined, next: Timeline): Timeline {
  if (!old || old.run !== next.run) return next
  const before = new Map((old.nodes ?? []).map((n) => [n.node, n]))
  const nodes = (next.nodes ?? []).map((n) => {
    const b = before.get(n.node)
    return b && same(b, n) ? b : n
  })
  return { ...next, nodes }
}

function same(a: RunNode, b: RunNode): boolean {
  const p = a.phases ?? []
  const q = b.phases ?? []
  return (
    a.status === b.status && a.attempts === b.attempts && a.ended === b.ended && a.started === b.started && a.result === b.result && a.usage.cost === b.usage.cost &&
    a.usage.calls === b.usage.calls && a.usage.output === b.usage.output && p.length === q.length && p.at(-1)?.to === q.at(-1)?.to && p.at(-1)?.kind === q.at(-1)?.kind && a.error?.code === b.error?.code
  )
}
