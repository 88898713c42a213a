import { api, take, type Schemas } from '../api'
import { clock, duration } from '../format'
import { CopyButton, RunError, Section, Status } from '../parts/common'
import { Content } from '../parts/Value'
import { useQuery } from '../route'
import { phaseText, t } from '../strings'
import { useLoad } from '../use'
import type { RunNode } from './useRun'

type Phase = Schemas['TimelinePhase']

/** The attempts of a node, each with what it did when, and the program and steps of a code node. The address may name one. */
export function Attempts({ run, node, d }: { run: string; node: RunNode; d: Schemas['NodeDetails'] }) {
  const [query] = useQuery()
  const chosen = Number(query.get('attempt') ?? 0)
  const chain = useLoad((signal) => take(api.GET('/v1/runs/{run}/chain', { params: { path: { run }, query: { node: node.node } }, signal })), [run, node.node, node.status, node.ended])
  const by = new Map<number, Phase[]>()
  for (const p of node.phases ?? []) by.set(p.attempt, [...(by.get(p.attempt) ?? []), p])
  const failures = (d.effects ?? []).filter((e) => e.error)
  return (
    <>
      {[...by].map(([n, phases]) => (
        <section key={n} id={`attempt-${n}`} ref={(x) => void (x && n === chosen && x.scrollIntoView({ block: 'nearest' }))} className="card column gap8" style={n === chosen ? { borderColor: 'var(--run)' } : undefined} aria-label={`${t.node.attempt} ${n}`}>
          <div className="row"><b className="grow">{t.node.attempt} {n}</b><CopyButton label={t.run.copyLink} text={() => linkTo(n)} /></div>
          <dl className="facts">
            {phases.map((p, i) => <div key={i} style={{ display: 'contents' }}><dt>{clock(p.from).slice(11)}</dt><dd>{phaseText[p.kind] ?? p.kind} · {p.to ? duration(p.to - p.from) : '…'}</dd></div>)}
          </dl>
          {(chain.data?.work ?? []).filter((w) => w.attempt === n).map((w) => <Work key={w.seq} w={w} />)}
        </section>
      ))}
      {by.size === 0 && <div className="dim">{t.run.noNodes}</div>}
      {failures.map((e) => <Section key={e.key} title={e.key}><RunError error={e.error!} /></Section>)}
    </>
  )
}

/** The address of an attempt. */
function linkTo(n: number): string {
  const [path, query] = location.hash.split('?')
  const q = new URLSearchParams(query)
  q.set('tab', 'attempts')
  q.set('attempt', String(n))
  return `${location.href.slice(0, location.href.length - location.hash.length)}${path}?${q}`
}

/** What an attempt of a code node ran, and each step of the agents that wrote and checked it. */
function Work({ w }: { w: Schemas['WorkRow'] }) {
  return (
    <>
      {w.code_executed && <div className="code" tabIndex={0}>{w.code_executed}</div>}
      {(w.steps ?? []).map((s) => (
        <div className="value" key={s.sequence}>
          <header><b>{s.step_number}. {s.agent_name}</b><Status of={s.status} label={s.status} /><span className="grow" /><span className="dim">{duration(s.execution_time_ms)}</span><span className="dim">{s.model_used}</span></header>
          {s.error_message && <pre>{s.error_message}</pre>}
          {s.generated_code && <pre tabIndex={0}>{s.generated_code}</pre>}
          {s.output_data != null && <Content value={s.output_data} />}
        </div>
      ))}
    </>
  )
}
