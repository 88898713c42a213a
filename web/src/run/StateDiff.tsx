import { api, take, type Schemas } from '../api'
import { plain } from '../format'
import { Failure, Loading, Section } from '../parts/common'
import TextDiff from '../parts/TextDiff'
import type { Shown } from '../parts/Value'
import { t } from '../strings'
import { useLoad } from '../use'

/** The state before a node started and after it ended, as a difference for each key that changed. */
export default function StateDiff({ run, node, d }: { run: string; node: string; d: Schemas['NodeDetails'] }) {
  const pair = useLoad(async (signal) => {
    const stateAt = async (at: number) => (at < 1 ? [] : ((await take(api.GET('/v1/runs/{run}/timeline', { params: { path: { run }, query: { at, limit: 1 } }, signal }))).state ?? []))
    const end = d.event ? await endOf(run, node, d.event, signal) : 0
    return { before: await stateAt(d.event - 1), after: end ? await stateAt(end) : undefined }
  }, [run, node, d.event, d.status])
  if (pair.error) return <Failure error={pair.error} retry={pair.reload} />
  if (!pair.data) return <Loading />
  const before = texts(pair.data.before)
  const after = texts(pair.data.after ?? pair.data.before)
  const names = [...new Set([...before.keys(), ...after.keys()])].sort()
  const changed = names.filter((n) => before.get(n) !== after.get(n))
  const same = names.filter((n) => !changed.includes(n))
  return (
    <>
      {changed.length === 0 && <div className="dim">{names.length ? t.node.sameState : t.node.noState}</div>}
      {changed.length > 0 && <div className="sides-head small dim"><span>{t.node.before}</span><span>{t.node.after}</span></div>}
      {changed.map((n) => <div className="value" key={n}><header><b className="mono">{n}</b></header><TextDiff a={before.get(n) ?? ''} b={after.get(n) ?? ''} label={n} /></div>)}
      {same.length > 0 && <Section title={t.node.unchanged}><dl className="facts">{same.map((n) => <div key={n} style={{ display: 'contents' }}><dt className="mono">{n}</dt><dd className="mono cut">{before.get(n)}</dd></div>)}</dl></Section>}
    </>
  )
}

const texts = (list: Shown[]) => new Map(list.map((v) => [v.name, v.value === null && v.excerpt ? v.excerpt + '…' : plain(v.value)]))

const ends = new Set(['node.completed', 'node.failed', 'node.skipped', 'node.cancelled', 'node.not_needed'])

/** The number of the event with which the node ended that started at an event; 0 if it has not. */
async function endOf(run: string, node: string, started: number, signal: AbortSignal): Promise<number> {
  for (let cursor: string | undefined; ; ) {
    const page = await take(api.GET('/v1/runs/{run}/events', { params: { path: { run }, query: { after: cursor ? undefined : started, cursor, limit: 1000 } }, signal }))
    const found = (page.events ?? []).find((e) => e.node === node && ends.has(e.type as string))
    if (found) return found.number as number
    if (!page.next) return 0
    cursor = page.next
  }
}
