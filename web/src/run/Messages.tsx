import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef } from 'react'
import { api, take, type Schemas } from '../api/client'
import { Empty, Failure, Loading } from '../parts/common'
import { MessageView, type Message } from '../parts/MessageView'
import { useQuery } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'

const page = 200

/** The messages of a run's contexts, as they were at the event that is shown. */
export function Messages({ run, at, event, contexts }: { run: string; at: number; event: number; contexts: Schemas['ContextRow'][] }) {
  const [query, set] = useQuery()
  const id = query.get('context') ?? (contexts.some((c) => c.id === 'main') ? 'main' : contexts[0]?.id)
  const chosen = contexts.find((c) => c.id === id)
  if (!chosen) return <Empty title={t.messages.empty} />
  return (
    <div className="contexts">
      <nav className="column" aria-label={t.messages.tree}>
        {contexts.map((c) => (
          <button key={c.id} type="button" className="context" aria-pressed={c.id === id} style={{ paddingLeft: 8 + depth(c, contexts) * 12 }} onClick={() => set({ context: c.id })}>
            <span className="cut">{c.label || c.id}</span><span className="small dim">{c.messages}</span>
          </button>
        ))}
      </nav>
      <List key={id} run={run} at={at} event={event} context={chosen} />
    </div>
  )
}

function depth(c: Schemas['ContextRow'], all: Schemas['ContextRow'][]): number {
  const parent = c.parent && all.find((x) => x.id === c.parent)
  return parent ? depth(parent, all) + 1 : 0
}

function List({ run, at, event, context }: { run: string; at: number; event: number; context: Schemas['ContextRow'] }) {
  const [query, set] = useQuery()
  const last = Math.max(0, Math.ceil(context.messages / page) - 1)
  const n = Math.min(Number(query.get('page') ?? last), last)
  const list = useLoad((signal) => take(api.GET('/v1/runs/{run}/contexts/{context}', { params: { path: { run, context: context.id }, query: { at: at || undefined, from: n * page, limit: page } }, signal })), [run, context.id, at, n, context.messages, event > 0])
  const box = useRef<HTMLDivElement>(null)
  const messages = (list.data?.list ?? []) as unknown as Message[]
  const rows = useVirtualizer({ count: messages.length, getScrollElement: () => box.current, estimateSize: () => 88, overscan: 6, gap: 8 })
  if (list.error) return <Failure error={list.error} retry={list.reload} />
  if (!list.data) return <Loading />
  if (messages.length === 0) return <Empty title={t.messages.empty} />
  return (
    <div className="column">
      <div className="bar small"><span className="dim">{context.model}</span><span className="grow" />
        {last > 0 && <button className="link" type="button" disabled={n === 0} onClick={() => set({ page: n - 1 })}>←</button>}
        <span>{n * page + 1}–{n * page + messages.length} {t.run.of} {context.messages}</span>
        {last > 0 && <button className="link" type="button" disabled={n === last} onClick={() => set({ page: n + 1 })}>→</button>}
      </div>
      <div className="body pad" ref={box} tabIndex={0} role="log" aria-label={context.id}>
        <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((v) => (
            <div key={v.index} data-index={v.index} ref={rows.measureElement} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${v.start}px)` }}>
              <MessageView message={messages[v.index]} note={`${n * page + v.index + 1}`} />
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
