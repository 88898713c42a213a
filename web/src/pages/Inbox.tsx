import { Button } from '@mantine/core'
import { useMemo, useState } from 'react'
import { api, take, type Schemas } from '../api'
import { ago, clock, duration, plain } from '../format'
import { useChanges, useLive } from '../list'
import { Cards } from '../parts/Cards'
import { CopyMenu, quoted } from '../parts/CopyMenu'
import { Empty, Failure, LoadingRows, Tabs } from '../parts/common'
import { QuestionForm } from '../parts/QuestionForm'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { useNow, usePages } from '../use'
import { questionsOf, type Question } from './questions'

/** The questions of all runs: those that wait, each with the form for its answer, and those that were answered. */
export default function Inbox() {
  const [query, set] = useQuery()
  const past = query.get('tab') === 'answered'
  const list = useLive()
  const [answered, setAnswered] = useState<string[]>([])
  const open = useMemo(() => questionsOf(list.rows).filter((q) => !answered.includes(keyOf(q))), [list.rows, answered])
  const [allowed, setAllowed] = useState(typeof Notification === 'undefined' ? 'denied' : Notification.permission)
  return (
    <>
      <div className="head">
        <h1>{t.inbox.title}</h1>
        <Tabs label={t.inbox.title} chosen={past ? 'answered' : ''} choose={(tab) => set({ tab })} tabs={[{ id: '', label: t.inbox.waiting, count: open.length }, { id: 'answered', label: t.run.answered }]} />
        <span className="grow" />
        {allowed === 'default' && (
          <Button variant="default" onClick={async () => setAllowed(await Notification.requestPermission())}>{t.inbox.notify}</Button>
        )}
      </div>
      {past ? <Answers /> : (
        <>
          {list.error && !(list.error.offline && list.loaded) && <Failure error={list.error} retry={list.reload} />}
          {!list.loaded && !list.error && <LoadingRows />}
          {list.loaded && open.length === 0 && <Empty art="inbox" title={t.inbox.empty} hint={list.more ? t.runs.moreThere : t.inbox.emptyHint} />}
          {open.length > 0 && <Cards list={open} id={keyOf} label={t.inbox.waiting} card={(q) => <Card q={q} done={() => setAnswered((a) => [...a, keyOf(q)])} />} end={list.more && <Button variant="default" onClick={list.more}>{t.state.more}</Button>} />}
          {open.length === 0 && list.more && <div className="pad center"><Button variant="default" onClick={list.more}>{t.state.more}</Button></div>}
        </>
      )}
    </>
  )
}

const keyOf = (q: Question) => q.run.run + q.interrupt.id

function Card({ q: { run, interrupt }, done }: { q: Question; done: () => void }) {
  const now = useNow(true)
  const left = interrupt.due ? interrupt.due - now : 0
  return (
    <article className="card column gap" aria-label={interrupt.prompt} style={{ flex: 'none' }}>
      <header className="metas">
        <a className="strong" href={href(['runs', run.run], { node: interrupt.node })}>{run.flow}</a>
        <span className="mono cut">{interrupt.node}</span>
        {run.user && <span>{run.user}</span>}
        <span className="grow" />
        {interrupt.due ? <span className="chip" data-s={left < 3600_000 ? 'failed' : 'waiting'} title={new Date(interrupt.due).toLocaleString()}>{left > 0 ? `${t.inbox.expires} ${duration(left)}` : t.inbox.expired}</span> : null}
        <span>{ago(Date.parse(run.updated), now)}</span>
        <CopyMenu label={interrupt.prompt} size={20} link={href(['runs', run.run], { node: interrupt.node })} json={() => interrupt} cli={`weir answer ${run.run} ${quoted(interrupt.id)}`} path={`v1/runs/${encodeURIComponent(run.run)}`} />
      </header>
      <QuestionForm run={run.run} interrupt={interrupt} done={done} />
    </article>
  )
}

type Answer = Schemas['GivenAnswer']

/** The questions that were answered, by whom, and with what, in pages. */
function Answers() {
  const list = usePages<Answer>(
    async (cursor, signal) => {
      const p = await take(api.GET('/v1/answers', { params: { query: { cursor: cursor || undefined } }, signal }))
      return { list: p.answers ?? [], next: p.next }
    },
    (a) => a.run + a.event, [], useChanges(), true,
  )
  const now = useNow(true)
  const all = list.data ?? []
  return (
    <>
      {list.error && !(list.error.offline && list.data) && <Failure error={list.error} retry={list.reload} />}
      {!list.data && !list.error && <LoadingRows />}
      {list.data && all.length === 0 && <Empty art="inbox" title={t.inbox.noAnswers} hint={list.more ? t.runs.moreThere : undefined} />}
      {all.length > 0 && (
        <Cards list={all} id={(a) => a.run + a.event} label={t.run.answered} end={list.more && <Button variant="default" onClick={list.more}>{t.state.more}</Button>} card={(a) => (
            <article className="card column gap4" aria-label={a.prompt || a.node}>
              <header className="metas">
                <a className="strong" href={href(['runs', a.run], { node: a.node })}>{a.flow}</a>
                <span className="mono cut">{a.node}</span>
                <span className="grow" />
                <a href={href(['runs', a.run], { node: a.node, at: a.event })} title={clock(a.at)}>{ago(a.at, now)}</a>
              </header>
              {a.prompt && <div className="text">{a.prompt}</div>}
              <div className="row wrap"><b className="text">{plain(a.value.value ?? a.value.excerpt)}</b><span className="small dim">{t.node.answeredBy} {a.by || t.node.somebody}</span></div>
            </article>
          )} />
      )}
      {all.length === 0 && list.more && <div className="pad center"><Button variant="default" onClick={list.more}>{t.state.more}</Button></div>}
    </>
  )
}
