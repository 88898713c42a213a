import { Button } from '@mantine/core'
import { useState } from 'react'
import { ago, duration } from '../format'
import { Empty, Failure, LoadingRows } from '../parts/common'
import { QuestionForm } from '../parts/QuestionForm'
import { href } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'
import { waitingQuestions, type Question } from './questions'

/** The questions of all runs, each with the form for its answer. */
export default function Inbox() {
  const list = useLoad((signal) => waitingQuestions(signal), [], 3000)
  const now = useNow(true)
  const [answered, setAnswered] = useState<string[]>([])
  const open = (list.data ?? []).filter((q) => !answered.includes(keyOf(q)))
  const [allowed, setAllowed] = useState(typeof Notification === 'undefined' ? 'denied' : Notification.permission)
  const done = (q: Question) => {
    setAnswered((a) => [...a, keyOf(q)])
    list.reload()
  }
  return (
    <>
      <div className="head">
        <h1>{t.inbox.title}</h1>
        {open.length > 0 && <span className="badge">{open.length}</span>}
        <span className="grow" />
        {allowed === 'default' && (
          <Button variant="default" onClick={async () => setAllowed(await Notification.requestPermission())}>{t.inbox.notify}</Button>
        )}
      </div>
      <div className="body column">
        {list.error && !list.data && <Failure error={list.error} retry={list.reload} />}
        {list.loading && !list.data && <LoadingRows />}
        {list.data && open.length === 0 && <Empty art="inbox" title={t.inbox.empty} hint={t.inbox.emptyHint} />}
        {open.length > 0 && <div className="pad narrow column gap">{open.map((q) => <Card key={keyOf(q)} q={q} now={now} done={() => done(q)} />)}</div>}
      </div>
    </>
  )
}

const keyOf = (q: Question) => q.run.run + q.interrupt.id

function Card({ q: { run, interrupt }, now, done }: { q: Question; now: number; done: () => void }) {
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
      </header>
      <QuestionForm run={run.run} interrupt={interrupt} done={done} />
    </article>
  )
}
