import { Button } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef } from 'react'
import { api, take, type Schemas } from '../api'
import { count } from '../format'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, Loading } from '../parts/common'
import { cutOf, MessageView, type Message } from '../parts/MessageView'
import { Stack } from '../parts/Stack'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'
import { LeftOut, Meter, SentMessages, type Manifest, type Request } from './CallView'

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
        <Stack list={contexts} id={(c) => c.id} size={44} gap={2} item={(c) => (
          <button type="button" className="context" aria-pressed={c.id === id} style={{ width: '100%', paddingLeft: 8 + depth(c, contexts) * 12 }} onClick={() => set({ context: c.id })}>
            <span className="cut">{c.label || c.id}</span>
            {c.parent && <span className="small dim" title={`${t.messages.forkedAt} ${c.at}`}>⑂ {c.at}</span>}
            <span className="small dim">{c.messages}</span>
            {c.window ? <span className="unseen">{`${count(c.used ?? 0)} ${t.node.window} ${count(c.window)}`}</span> : null}
            {c.window ? <span className="meter" aria-hidden="true" title={`${count(c.used ?? 0)} ${t.node.window} ${count(c.window)}`}><i data-p="messages" style={{ width: `${Math.min(100, ((c.used ?? 0) / c.window) * 100)}%` }} /></span> : null}
          </button>
        )} />
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
  const seen = list.data.last
  const beside = query.get('beside') === 'view' && !!seen
  const history = (
    <div className="column">
      <div className="bar small"><span className="dim">{context.model}</span><span className="grow" />
        {last > 0 && <button className="link" type="button" disabled={n === 0} onClick={() => set({ page: n - 1 })}>←</button>}
        <span>{n * page + 1}–{n * page + messages.length} {t.run.of} {context.messages}</span>
        {last > 0 && <button className="link" type="button" disabled={n === last} onClick={() => set({ page: n + 1 })}>→</button>}
        <CopyMenu label={context.id} size={20} json={() => list.data} path={`v1/runs/${encodeURIComponent(run)}/contexts/${encodeURIComponent(context.id)}?from=${n * page}&limit=${page}${at ? `&at=${at}` : ''}`} />
        {seen && <Button variant="default" aria-pressed={beside} onClick={() => set({ beside: beside ? '' : 'view' })}>{t.messages.view}</Button>}
      </div>
      {seen && <Bar used={seen.input + seen.output} whole={seen.window} />}
      <div className="body pad" ref={box} tabIndex={0} role="log" aria-label={context.id}>
        <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((v) => (
            <div key={v.index} data-index={v.index} ref={rows.measureElement} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${v.start}px)` }}>
              <MessageView message={messages[v.index]} note={`${n * page + v.index + 1}`} cut={cutOf(list.data?.truncated, `/list/${v.index}/`)} />
            </div>
          ))}
        </div>
      </div>
    </div>
  )
  if (!beside) return history
  return (
    <div className="halves beside">
      {history}
      <View key={seen.call} run={run} call={seen} />
    </div>
  )
}

/** How much of a model's window a context takes. */
function Bar({ used, whole }: { used: number; whole: number }) {
  if (!whole) return null
  return (
    <div className="row small dim budget-bar">
      <div className="meter grow" role="img" aria-label={`${count(used)} ${t.node.window} ${count(whole)}`}><i data-p="messages" style={{ width: `${Math.min(100, (used / whole) * 100)}%` }} /></div>
      <span>{count(used)} {t.node.window} {count(whole)}</span>
    </div>
  )
}

/** What the last model call with a context was sent, beside the history. */
function View({ run, call }: { run: string; call: Schemas['ContextCall'] }) {
  const [, set] = useQuery()
  const calls = useLoad((signal) => take(api.GET('/v1/runs/{run}/calls', { params: { path: { run }, query: { node: call.node } }, signal })), [run, call.node, call.call])
  const found = calls.data?.calls?.find((c) => c.call === call.call)
  if (calls.error) return <Failure error={calls.error} retry={calls.reload} />
  if (!calls.data) return <Loading />
  const sent = (found?.sent ?? undefined) as Request | undefined
  const manifest = (found?.manifest ?? undefined) as Manifest | undefined
  return (
    <section className="column" aria-label={t.messages.view}>
      <div className="bar small"><b>{t.messages.view}</b><span className="grow" /><button className="link narrow-only" type="button" onClick={() => set({ beside: '' })}>{t.messages.history}</button><a className="mono cut" href={href(['runs', run], { node: call.node, tab: 'calls' })}>{call.call}</a></div>
      <div className="body pad column gap" tabIndex={0} role="region" aria-label={t.messages.view}>
        <Meter m={manifest} u={{ input: call.input, output: call.output }} />
        {manifest && <LeftOut m={manifest} />}
        {!sent && <div className="dim">{t.node.onlyDigest}</div>}
        {sent && (
          <div className="column gap4">
            {sent.system && <MessageView message={{ role: 'system', text: sent.system }} />}
            <SentMessages list={sent.messages ?? []} />
          </div>
        )}
      </div>
    </section>
  )
}
