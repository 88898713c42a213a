import { ActionIcon } from '@mantine/core'
import { cost, duration } from '../format'
import { Failure, Loading, Status } from '../parts/common'
import { Icon } from '../parts/icons'
import { go, href } from '../route'
import { t } from '../strings'
import { useNow } from '../use'
import { TimelineView } from './TimelineView'
import { ended, useRun } from './useRun'

/** A run beside something else: its nodes with their times, live. A node leads to the page of the run. */
export default function RunBeside({ id, close }: { id: string; close: () => void }) {
  const run = useRun(id, 0)
  const data = run.data
  const now = useNow(!!data && !ended(data.status))
  return (
    <aside className="panel" aria-label={t.runs.run}>
      <div className="panel-head">
        <h2 className="cut grow">{t.runs.run}</h2>
        {data && <span className="small dim">{duration((ended(data.status) ? data.at : now) - data.started)} · {cost(data.usage.cost)}</span>}
        {data && <Status chip of={data.status} />}
        <ActionIcon aria-label={t.chat.hide} onClick={close}><Icon name="close" /></ActionIcon>
      </div>
      {run.error && !data && <Failure error={run.error} retry={run.reload} />}
      {!data && !run.error && <Loading />}
      {data && <TimelineView data={data} now={now} find="" chosen={{ run: '', path: '' }} choose={(inRun, node) => go(href(['runs', id], { node, in: inRun === id ? '' : inRun }))} />}
    </aside>
  )
}
