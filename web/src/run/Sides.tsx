import { api, take } from '../api'
import { duration } from '../format'
import { Failure, Loading, Section, Status } from '../parts/common'
import { Values, type Source } from '../parts/Value'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'
import { TimelineView } from './TimelineView'
import { ended, useRun, type RunState } from './useRun'

/** The trees of two runs beside each other, live and on one scale of time, and what a node that is chosen was given and gave in both. */
export default function Sides({ a, b }: { a: string; b: string }) {
  const [query, set] = useQuery()
  const node = query.get('pair') ?? ''
  const [left, right] = [useRun(a, 0), useRun(b, 0)]
  const now = useNow([left, right].some((r) => r.data && !ended(r.data.status)))
  const span = Math.max(length(left, now), length(right, now))
  const choose = (_: string, path: string) => set({ pair: path })
  return (
    <>
      <div className="two sides">
        <Tree name={t.diff.left} run={left} now={now} span={span} node={node} choose={choose} />
        <Tree name={t.diff.right} run={right} now={now} span={span} node={node} choose={choose} />
      </div>
      {node && (
        <Section title={node}>
          <div className="two">
            <Details run={a} node={node} turn={statusOf(left, node)} />
            <Details run={b} node={node} turn={statusOf(right, node)} />
          </div>
        </Section>
      )}
    </>
  )
}

const length = ({ data }: RunState, now: number) => (data ? (ended(data.status) ? data.at : now) - data.started : 0)

const statusOf = (r: RunState, node: string) => r.data?.nodes?.find((n) => n.node === node)?.status ?? ''

function Tree({ name, run: { data, error, reload }, now, span, node, choose }: { name: string; run: RunState; now: number; span: number; node: string; choose: (run: string, path: string) => void }) {
  if (error && !data) return <Failure error={error} retry={reload} />
  if (!data) return <Loading />
  return (
    <section className="side-tree panel" aria-label={`${name} ${data.run}`}>
      <div className="bar small"><b>{name}</b><a className="mono cut" href={href(['runs', data.run])}>{data.run}</a><span className="grow" /><span className="dim">{duration((ended(data.status) ? data.at : now) - data.started)}</span><Status chip of={data.status} /></div>
      <TimelineView data={data} now={now} span={span} find="" chosen={{ run: data.run, path: node }} choose={choose} />
    </section>
  )
}

function Details({ run, node, turn }: { run: string; node: string; turn: string }) {
  const d = useLoad((signal) => take(api.GET('/v1/runs/{run}/node', { params: { path: { run }, query: { node } }, signal })), [run, node, turn])
  if (d.error) return <div className="dim">{t.diff.missing}</div>
  if (!d.data) return <Loading />
  const from = (part: Source['part']): Source => ({ run, node, at: 0, part })
  return (
    <div className="column gap">
      <Section title={t.node.inputs}><Values list={d.data.inputs ?? []} source={from('inputs')} none={t.node.noInputs} /></Section>
      <Section title={t.node.outputs}><Values list={d.data.outputs ?? []} source={from('outputs')} none={t.node.noOutputs} /></Section>
    </div>
  )
}
