import { lazy, Suspense, useState } from 'react'
import { api, take, type Schemas } from '../api'
import { plain } from '../format'
import { Failure, Loading, Section } from '../parts/common'
import { t } from '../strings'
import { useLoad } from '../use'

const TextDiff = lazy(() => import('../parts/TextDiff'))

/** What differs between two versions of a flow: the settings of each node, and whole nodes. */
export function FlowChanges({ flow, from, to, text }: { flow: string; from: string; to: string; text: { a: string; b: string } }) {
  const [lines, setLines] = useState(false)
  const diff = useLoad((signal) => take(api.GET('/v1/flows/{flow}/diff', { params: { path: { flow }, query: { from, to } }, signal })), [flow, from, to])
  if (diff.error) return <Failure error={diff.error} retry={diff.reload} />
  if (!diff.data) return <Loading />
  const byNode = new Map<string, Schemas['FlowChange'][]>()
  const moves = diff.data.moves ?? []
  for (const c of withoutMoves(diff.data.changes ?? [], moves)) byNode.set(c.node ?? '', [...(byNode.get(c.node ?? '') ?? []), c])
  return (
    <Section title={t.flows.differences} action={<button type="button" className="link" onClick={() => setLines(!lines)}>{lines ? t.flows.byNode : t.flows.byLine}</button>}>
      {lines && <div className="value"><Suspense fallback={<Loading />}><TextDiff a={text.a} b={text.b} label={t.flows.differences} /></Suspense></div>}
      {!lines && diff.data.same && <div className="dim">{t.flows.noDifference}</div>}
      {!lines && moves.length > 0 && (
        <article className="value" aria-label={t.flows.moved}>
          <header><b>{t.flows.moved}</b></header>
          {moves.map((m) => <Moved key={m.from + m.name} m={m} />)}
        </article>
      )}
      {!lines && [...byNode].map(([node, list]) => <Node key={node} name={node} list={list} />)}
    </Section>
  )
}

type Move = Schemas['FlowMove']

/** The changes without what moved: the side of a change that moved is left out, and a change without sides as well. */
function withoutMoves(list: Schemas['FlowChange'][], moves: Move[]): Schemas['FlowChange'][] {
  return list.flatMap((c) => {
    const left = moves.some((m) => m.from === c.node && m.name === c.name)
    const came = moves.some((m) => m.to === c.node && m.name === c.name)
    const rest = { ...c, a: left ? null : c.a, b: came ? null : c.b }
    return rest.a == null && rest.b == null ? [] : [rest]
  })
}

/** What another node has in the other version. */
function Moved({ m }: { m: Move }) {
  return (
    <div className="change">
      <div className="row wrap small mono"><span>{m.from}</span><span aria-hidden="true">→</span><span className="unseen">{t.flows.movedTo}</span><span>{m.to}</span>{m.name ? <span className="dim">{m.name}</span> : <span className="chip">{t.flows.renamed}</span>}</div>
      {m.name && <pre className="diff-line">{plain(m.value)}</pre>}
    </div>
  )
}

/** The changes of a node. A change without a name is the node as a whole: one of the versions lacks it. */
function Node({ name, list }: { name: string; list: Schemas['FlowChange'][] }) {
  const whole = list.find((c) => !c.name)
  const kind = whole && (whole.a == null ? t.flows.added : t.flows.removed)
  return (
    <article className="value" aria-label={name || t.flows.flowItself}>
      <header><b className={name ? 'mono' : undefined}>{name || t.flows.flowItself}</b>{kind && <span className="chip" data-s={whole.a == null ? 'completed' : 'failed'}>{kind}</span>}</header>
      {list.map((c) => <Change key={c.name} c={c} />)}
    </article>
  )
}

function Change({ c }: { c: Schemas['FlowChange'] }) {
  const [a, b] = [c.a, c.b].map((x) => (x == null ? '' : plain(x)))
  const isShort = !a.includes('\n') && !b.includes('\n') && a.length + b.length < 200
  return (
    <div className="change">
      {c.name && <div className="small mono dim">{c.name}</div>}
      {isShort || !a || !b
        ? <>{a && <pre className="diff-line" data-k="-">{marked('-', a)}</pre>}{b && <pre className="diff-line" data-k="+">{marked('+', b)}</pre>}</>
        : <Suspense fallback={<Loading />}><TextDiff a={a} b={b} label={c.name} /></Suspense>}
    </div>
  )
}

const marked = (sign: string, text: string) => text.split('\n').map((line) => `${sign} ${line}`).join('\n')
