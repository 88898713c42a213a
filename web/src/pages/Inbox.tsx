import { Button } from '@mantine/core'
import { useState } from 'react'
import { ago } from '../format'
import { Empty, Failure, Loading } from '../parts/common'
import { QuestionForm } from '../parts/QuestionForm'
import { href } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'
import { waitingQuestions } from './questions'

/** The questions of all runs, each with the form for its answer. */
export default function Inbox() {
  const list = useLoad((signal) => waitingQuestions(signal), [], 3000)
  const now = useNow(true)
  const [answered, setAnswered] = useState<string[]>([])
  const open = (list.data ?? []).filter((q) => !answered.includes(q.run.run + q.interrupt.id))
  const [allowed, setAllowed] = useState(typeof Notification === 'undefined' ? 'denied' : Notification.permission)
  return (
    <>
      <div className="head">
        <h1 className="grow">{t.inbox.title}</h1>
        {allowed === 'default' && (
          <Button variant="default" onClick={async () => setAllowed(await Notification.requestPermission())}>{t.inbox.notify}</Button>
        )}
      </div>
      <div className="body">
        {list.error && !list.data && <Failure error={list.error} retry={list.reload} />}
        {list.loading && !list.data && <Loading />}
        {list.data && open.length === 0 && <Empty title={t.inbox.empty} hint={t.inbox.emptyHint} />}
        <div className="pad narrow column gap">
          {open.map(({ run, interrupt }) => (
            <article className="card column gap" key={run.run + interrupt.id} aria-label={interrupt.prompt}>
              <header className="row wrap small dim">
                <a href={href(['runs', run.run], { node: interrupt.node })}>{run.flow}</a>
                <span className="mono cut">{run.run}</span>
                <span className="mono cut">{interrupt.node}</span>
                <span className="grow" />
                <span>{ago(Date.parse(run.updated), now)}</span>
              </header>
              <QuestionForm run={run.run} interrupt={interrupt} done={() => { setAnswered((a) => [...a, run.run + interrupt.id]); list.reload() }} />
            </article>
          ))}
        </div>
      </div>
    </>
  )
}
