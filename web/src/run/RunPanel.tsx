import type { ReactNode } from 'react'
import type { Schemas } from '../api'
import { clock, cost, count, duration, many } from '../format'
import { RunError, Section, Status } from '../parts/common'
import { QuestionForm } from '../parts/QuestionForm'
import { Values } from '../parts/Value'
import { Stack } from '../parts/Stack'
import { href } from '../route'
import { t } from '../strings'
import { Answered } from './Answered'
import { Labels, Ratings } from './Feedback'
import { ended, type Timeline } from './useRun'

/** The run as a whole: its questions, inputs, outputs, and relatives. */
export function RunPanel({ data, now, at }: { data: Timeline; now: number; at: number }) {
  return (
    <aside className="panel" aria-label={t.run.overview}>
      <div className="panel-head"><h2 className="grow">{t.run.overview}</h2><Status chip of={data.status} /></div>
      <div className="panel-body" tabIndex={0} role="region" aria-label={t.node.details}>
        {data.error && <RunError error={data.error} />}
        {!at && (data.interrupts ?? []).filter((i) => !['timer', 'child'].includes(i.kind)).map((i) => (
          <section className="ask column gap8" key={i.id} aria-label={t.run.waiting}>
            <a className="small mono" href={href(['runs', data.run], { node: i.node })}>{i.node}</a>
            <QuestionForm run={data.run} interrupt={i} done={() => undefined} />
          </section>
        ))}
        <Facts data={data} now={now} />
        <Labels run={data.run} />
        <Answered data={data} at={at} />
        <Lineage data={data} />
        {(data.outputs ?? []).length > 0 && <Section title={t.run.outputs}><Values list={data.outputs!} none="" /></Section>}
        {(data.absent ?? []).length > 0 && <Section title={t.run.absent}><Values list={data.absent!} none="" /></Section>}
        <Section title={t.run.inputs}><Values list={data.inputs ?? []} none={t.node.noInputs} /></Section>
        {ended(data.status) && <Ratings run={data.run} />}
        {(data.children ?? []).length > 0 && <Section title={t.run.children}><Children list={data.children!} /></Section>}
      </div>
    </aside>
  )
}

function Facts({ data, now }: { data: Timeline; now: number }) {
  const rows: [string, ReactNode][] = [
    [t.run.flow, <a href={href(['flows', data.flow])}>{data.flow}</a>],
    [t.runs.started, clock(data.started)],
    [t.run.duration, duration((['running', 'paused', 'pending'].includes(data.status) ? now : data.at) - data.started)],
    [t.run.origin, [data.origin, data.user].filter(Boolean).join(' · ')],
    [t.runs.tokens, data.usage.calls === 0 ? '–' : `${count(data.usage.input)} ${t.node.input} (${count(data.usage.cached)} ${t.node.cachedTokens}), ${count(data.usage.output)} ${t.node.output}`],
    ...(data.fork && data.fork.shared_usage.calls > 0 ? [[t.run.sharedUsage, `${count(data.fork.shared_usage.input + data.fork.shared_usage.output)} ${t.run.tokens} · ${cost(data.fork.shared_usage.cost)}`] as [string, ReactNode]] : []),
    [t.run.cost, data.usage.calls === 0 ? '–' : `${cost(data.usage.cost)} · ${many(data.usage.calls, t.run.call)}`],
  ]
  return (
    <dl className="facts">
      {rows.map(([name, value]) => <div key={name} style={{ display: 'contents' }}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  )
}

/** The runs that this one comes from. */
function Lineage({ data }: { data: Timeline }) {
  const rows: [string, ReactNode][] = []
  if (data.fork) rows.push([t.run.forkOf, <><a href={href(['runs', data.fork.from])} className="mono">{data.fork.from}</a> {t.run.upTo} {data.fork.at} · <a href={href(['runs', data.run], { view: 'compare', with: data.fork.from })}>{t.run.compare}</a></>])
  if (data.parent) rows.push([t.run.childOf, <a className="mono" href={href(['runs', data.parent], { node: data.parentNode })}>{data.parent}</a>])
  if (data.session) rows.push([t.run.roundOf, <a className="mono" href={href(['sessions', data.session])}>{data.session}</a>])
  if (rows.length === 0) return null
  return <Section title={t.run.lineage}><dl className="facts">{rows.map(([name, value]) => <div key={name} style={{ display: 'contents' }}><dt>{name}</dt><dd>{value}</dd></div>)}</dl></Section>
}

function Children({ list }: { list: Schemas['ChildRun'][] }) {
  return (
    <Stack list={list} id={(c) => c.run} size={24} gap={4} item={(c) => (
        <a className="row" href={href(['runs', c.run])}>
          <Status of={c.status} label={c.flow} /><span className="small dim cut">{c.node}</span><span className="grow" /><span className="small dim">{cost(c.usage.cost)}</span>
        </a>
    )} />
  )
}
