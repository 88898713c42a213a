import { api, take } from '../api'
import { Section } from '../parts/common'
import { plain } from '../format'
import { href } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'
import type { Timeline } from './useRun'

const asked = new Set(['input', 'approval', 'budget', 'effect'])
const most = 20

/** The questions of a run that were answered, by whom, and with what. */
export function Answered({ data, at }: { data: Timeline; at: number }) {
  const nodes = (data.nodes ?? []).filter((n) => n.phases?.some((p) => asked.has(p.kind) && p.to > 0))
  const shown = nodes.slice(0, most)
  const key = shown.map((n) => `${n.node} ${n.ended} ${n.phases?.filter((p) => p.to > 0).length}`).join('\n')
  const list = useLoad((signal) => Promise.all(shown.map((n) => take(api.GET('/v1/runs/{run}/node', { params: { path: { run: data.run }, query: { node: n.node, at: at || undefined } }, signal })))), [data.run, at, key])
  const rows = (list.data ?? []).flatMap((d) => (d.waits ?? []).filter((w) => w.answered && asked.has(w.kind)).map((w) => ({ ...w, path: d.node })))
  if (rows.length === 0) return null
  return (
    <Section title={t.run.answered}>
      <div className="column gap8">
        {rows.map((w) => (
          <div key={w.id} className="column">
            <a href={href(['runs', data.run], { node: w.path })}>{w.prompt || w.path}</a>
            <div className="row wrap"><span className="text">{plain(w.answer.value ?? w.answer.excerpt)}</span><span className="small dim">{t.node.answeredBy} {w.by || t.node.somebody}</span></div>
          </div>
        ))}
        {nodes.length > most && <div className="dim">{nodes.length - most} {t.run.answeredMore}</div>}
      </div>
    </Section>
  )
}
