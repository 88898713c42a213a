import { ActionIcon, Button, Menu } from '@mantine/core'
import { useState } from 'react'
import { api, newKey, raw, take, WeirError } from '../api'
import { useMay } from '../caller'
import { cost, count, duration, many } from '../format'
import { CopyButton, Status } from '../parts/common'
import { CopyItems } from '../parts/CopyMenu'
import { Icon } from '../parts/icons'
import { save } from '../save'
import { go, href, useQuery } from '../route'
import { t } from '../strings'
import { ended, type Timeline } from './useRun'

/** The title of a run with its figures, and what can be done with it. */
export function RunHead({ data, now, at, connection }: { data: Timeline; now: number; at: number; connection: string }) {
  const may = useMay('start')
  const [, set] = useQuery()
  const [error, setError] = useState<WeirError>()
  const active = !ended(data.status)
  const command = async (f: () => Promise<unknown>) => {
    setError(undefined)
    try {
      await f()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  const params = () => ({ path: { run: data.run }, header: { 'Idempotency-Key': newKey() } })
  const rerun = () => command(async () => go(href(['runs', (await take(api.POST('/v1/runs/{run}/rerun', { params: params(), body: {} }))).run])))
  const first = data.nodes?.[0]?.node
  return (
    <div className="head">
      <a className="row dim" href={href(['runs'])} aria-label={t.runs.title}><Icon name="back" /></a>
      <div className="column grow">
        <div className="row">
          <h1 className="cut">{data.flow}</h1>
          <Status chip of={data.stopped && active ? 'stopped' : data.status} />
          {active && !at && connection === 'live' && <span className="row small dim" style={{ gap: 4 }}><span className="pulse" />{t.state.live}</span>}
        </div>
        <div className="metas">
          <span className="row" style={{ gap: 4 }}><span className="mono cut">{data.run}</span><CopyButton text={() => data.run} label={`${t.state.copy} ${t.runs.run}`} /></span>
          <span><b>{duration((active && !at ? now : data.at) - data.started)}</b></span>
          {data.usage.calls > 0 && <span><b>{count(data.usage.input + data.usage.output)}</b> {t.run.tokens}</span>}
          {data.usage.calls > 0 && <span>{many(data.usage.calls, t.run.call)}</span>}
          {data.usage.cost > 0 && <span><b>{cost(data.usage.cost)}</b></span>}
        </div>
      </div>
      {error && <div className="error-box" role="alert">{error.message} {error.hint}</div>}
      {may && data.stopped && active && <Button onClick={() => command(() => api.POST('/v1/runs/{run}/resume', { params: params() }))}>{t.run.resume}</Button>}
      {may && active && <Button variant="default" onClick={() => window.confirm(t.run.cancelConfirm) && command(() => api.POST('/v1/runs/{run}/cancel', { params: params(), body: {} }))}>{t.run.cancel}</Button>}
      {may && !active && !data.parent && <Button variant="default" onClick={rerun}>{t.run.rerun}</Button>}
      {data.fork && <Button variant="default" className="wide" onClick={() => set({ view: 'compare', with: data.fork!.from, sides: '1', node: '' })}>{t.run.compareWith}</Button>}
      <RunMenu run={data.run} fork={may && first ? () => set({ fork: first }, false) : undefined} />
    </div>
  )
}

function RunMenu({ run, fork }: { run: string; fork?: () => void }) {
  const download = async () => {
    const r = await raw(api.GET('/v1/runs/{run}/export', { params: { path: { run } }, parseAs: 'stream' }))
    save(`${run}.weir`, await r.text(), 'application/x-ndjson')
  }
  const verify = async () => {
    const r = await take(api.GET('/v1/runs/{run}/verify', { params: { path: { run } } }))
    window.alert((r!.findings ?? []).length === 0 ? t.run.verified : t.run.notVerified)
  }
  return (
    <Menu position="bottom-end">
      <Menu.Target><ActionIcon aria-label={t.run.more}><Icon name="more" /></ActionIcon></Menu.Target>
      <Menu.Dropdown>
        {fork && <Menu.Item onClick={fork}>{t.run.forkFrom}</Menu.Item>}
        <CopyItems json={() => take(api.GET('/v1/runs/{run}', { params: { path: { run } } }))} cli={`weir show ${run}`} path={`v1/runs/${encodeURIComponent(run)}`} />
        <Menu.Divider />
        <Menu.Item onClick={download}>{t.run.export}</Menu.Item>
        <Menu.Item onClick={verify}>{t.run.verify}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
