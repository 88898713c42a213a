import { Button } from '@mantine/core'
import { useMemo } from 'react'
import type { Schemas } from '../api'
import { cost, count, plain } from '../format'
import { CopyButton, RunError, Section } from '../parts/common'
import { JsonTree } from '../parts/JsonTree'
import { MessageView, type Message } from '../parts/MessageView'
import { Stack } from '../parts/Stack'
import { href } from '../route'
import { t } from '../strings'

export interface Request {
  provider?: string
  model?: string
  system?: string
  messages?: Message[]
  tools?: { name: string; description?: string; parameters?: object }[]
  [setting: string]: unknown
}

/** What a view of the history shows and omits, in tokens. */
export interface Manifest {
  from?: number
  to?: number
  pins?: number[]
  left?: number
  cleared?: number
  short?: number
  repaired?: number
  summary?: [number, number]
  tokens?: number
  room?: number
  why?: string
  window?: number
  reserve?: number
  system?: number
  tools?: number
  held?: number
}

interface Reply {
  message?: unknown
  usage?: Partial<Schemas['Usage']>
  [k: string]: unknown
}

/** A model call: exactly what was sent, what was left out and why, and the answer. */
export function CallView({ run, call, cache, play }: { run: string; call: Schemas['CallReport']; cache?: Schemas['PromptCache']; play?: () => void }) {
  const sent = (call.sent ?? undefined) as Request | undefined
  const manifest = (call.manifest ?? undefined) as Manifest | undefined
  const { provider, model, system, messages, tools, ...settings } = sent ?? {}
  const rest = Object.fromEntries(Object.entries(settings).filter(([, v]) => v !== null && v !== '' && v !== 0))
  return (
    <article className="column gap" aria-label={call.call}>
      <div className="column">
        <div className="row">
          <b className="cut grow">{[provider, model].filter(Boolean).join('/') || call.call}</b>
          <span className="small mono dim">{call.call.slice(call.call.lastIndexOf('/') + 1)}</span>
          {sent && play && <Button variant="subtle" onClick={play}>{t.play.open}</Button>}
          {sent && <CopyButton text={() => JSON.stringify(sent, null, 2)} label={t.run.copyJson} />}
        </div>
        <div className="small dim">{call.proven ? <><span style={{ color: 'var(--ok)' }}>✓</span> {t.node.verified}</> : t.node.unverified}</div>
      </div>
      {!sent && <div className="dim">{t.node.onlyDigest} <span className="mono">{call.digest}</span></div>}
      <Meter m={manifest} u={cache?.usage} />
      {manifest && <LeftOut m={manifest} />}
      {cache && <Cache c={cache} run={run} />}
      {sent && (
        <Section title={t.node.request}>
          <div className="column gap4">
            {system && <MessageView message={{ role: 'system', text: system }} />}
            <SentMessages list={messages ?? []} />
          </div>
        </Section>
      )}
      {tools && tools.length > 0 && (
        <Section title={`${t.node.tools} (${tools.length})`}>
          {tools.map((x) => <details key={x.name}><summary><span className="mono">{x.name}</span> <span className="dim">{x.description}</span></summary>{x.parameters && <JsonTree value={x.parameters} />}</details>)}
        </Section>
      )}
      {Object.keys(rest).length > 0 && <Section title={t.node.settings}><div className="value"><JsonTree value={rest} /></div></Section>}
      {call.error && <RunError error={call.error} />}
      {call.answer != null && <Section title={t.node.answer}><Answer value={call.answer} /></Section>}
    </article>
  )
}

/** The messages of a request. They have no ids: their order names them. */
export function SentMessages({ list }: { list: Message[] }) {
  const numbered = useMemo(() => list.map((message, i) => ({ message, id: String(i) })), [list])
  return <Stack list={numbered} id={(x) => x.id} size={88} gap={4} item={(x) => <MessageView message={x.message} />} />
}

/** The tokens of a call by what they are for, in proportion to the window if it is known. */
export function Meter({ m, u }: { m?: Manifest; u?: Partial<Schemas['Usage']> }) {
  const total = u?.input || (m?.tokens ?? 0) + (m?.system ?? 0) + (m?.tools ?? 0)
  const parts: [string, string, number][] = m
    ? [['system', t.node.m_system, m.system ?? 0], ['tools', t.node.m_tools, m.tools ?? 0], ['messages', t.node.m_messages, Math.max(0, total - (m.system ?? 0) - (m.tools ?? 0))]]
    : [['messages', t.node.input, total]]
  parts.push(['output', t.node.m_output, u?.output ?? 0])
  const used = parts.reduce((n, [, , x]) => n + x, 0)
  if (used === 0) return null
  const whole = Math.max(used, m?.window ?? 0)
  return (
    <Section title={t.node.meter}>
      <div className="column gap8">
        <div className="meter" role="img" aria-label={`${count(used)} ${t.node.window} ${count(whole)}`}>{parts.filter(([, , n]) => n > 0).map(([p, , n]) => <i key={p} data-p={p} style={{ width: `${(n / whole) * 100}%` }} />)}</div>
        <div className="legend">
          {parts.filter(([, , n]) => n > 0).map(([p, label, n]) => <span key={p}><i data-p={p} />{label} {count(n)}</span>)}
          {(u?.cached ?? 0) > 0 && <span>{t.node.m_cached} {count(u?.cached ?? 0)}</span>}
          {(u?.reasoning ?? 0) > 0 && <span>{t.node.reasoning} {count(u?.reasoning ?? 0)}</span>}
          {m?.window && <span>{t.node.window} {count(m.window)}</span>}
          {m?.reserve ? <span>{t.node.m_reserve} {count(m.reserve)}</span> : null}
        </div>
      </div>
    </Section>
  )
}

/** What the view of the history left out of the request, and why. */
export function LeftOut({ m }: { m: Manifest }) {
  const rows: string[] = []
  if (m.left) rows.push(`${count(m.left)} ${t.node.omitted}`)
  if (m.from) rows.push(`${t.node.shows} ${m.from + 1} ${t.run.of} ${m.to}`)
  if (m.summary) rows.push(`${t.node.summary} ${m.summary[0] + 1}–${m.summary[1]}`)
  if (m.pins?.length) rows.push(`${t.node.pinned}: ${m.pins.map((x) => x + 1).join(', ')}`)
  if (m.cleared) rows.push(`${m.cleared} ${t.node.cleared}`)
  if (m.short) rows.push(`${m.short} ${t.node.shortened}`)
  if (m.repaired) rows.push(`${m.repaired} ${t.node.repaired}`)
  if (m.held) rows.push(`${m.held} ${t.node.held}`)
  return (
    <Section title={t.node.left}>
      {rows.length === 0 ? <div className="dim">{t.node.leftNone}</div> : rows.map((x) => <div key={x}>{x}</div>)}
      {m.why && <div className="dim">{t.node.why}: {m.why}</div>}
    </Section>
  )
}

const causes: Record<string, string> = { tools: t.node.c_tools, system: t.node.c_system, message: t.node.c_message, view: t.node.c_view }

/** What a vendor's prompt cache had of the request, where it differs from the call before, which node made it so, and what that cost. */
function Cache({ c, run }: { c: Schemas['PromptCache']; run: string }) {
  return (
    <Section title={t.node.cache}>
      <dl className="facts">
        <dt>{t.node.cachedTokens}</dt><dd>{count(c.usage.cached)} {t.run.of} {count(c.usage.input)} {t.run.tokens}</dd>
        <dt>{t.node.callBefore}</dt><dd className={c.before ? 'mono' : 'dim'}>{c.before ? <a href={href(['runs', c.beforeRun], { node: c.before.slice(0, c.before.lastIndexOf('/')), tab: 'calls' })}>{c.before}</a> : t.node.noBefore}{c.before && c.beforeRun !== run && <> {t.node.inRun} {c.beforeRun}</>}</dd>
        {c.before && <><dt>{t.node.differs}</dt><dd>{c.place ? `${c.place}, ${t.node.byte} ${c.byte}` : t.node.continues} ({c.equal} {t.run.of} {c.of} {t.node.equal})</dd></>}
        {c.cause && <><dt>{t.node.cacheCause}</dt><dd>{causes[c.cause] ?? c.cause}{c.node && <>: <a className="mono" href={href(['runs', run], { node: c.node })}>{c.node}</a></>}</dd></>}
        {c.lost > 0 && <><dt>{t.node.lost}</dt><dd>{t.node.about} {count(c.lost)} {t.run.tokens}{c.cost > 0 && <>, <b>{cost(c.cost)}</b> {t.node.moreThanCached}</>}</dd></>}
      </dl>
      {c.place && <div className="two" style={{ marginTop: 8 }}><div className="code">{c.was || '–'}</div><div className="code">{c.is || '–'}</div></div>}
    </Section>
  )
}

/** An answer is a message with what the vendor reported beside it. */
function Answer({ value }: { value: unknown }) {
  const { message, ...rest } = (typeof value === 'object' && value !== null ? value : {}) as Reply
  if (!isMessage(message)) return <div className="code">{plain(value)}</div>
  return (
    <div className="column gap8">
      <MessageView message={message} />
      <div className="value"><JsonTree value={rest} /></div>
    </div>
  )
}

function isMessage(v: unknown): v is Message {
  return typeof v === 'object' && v !== null && 'role' in v
}
