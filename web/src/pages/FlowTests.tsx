import { Button } from '@mantine/core'
import { useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { ago, duration } from '../format'
import { Empty, Failure, LoadingRows, Section, Status } from '../parts/common'
import { t } from '../strings'
import { useLoad, useNow } from '../use'

type Result = Schemas['TestResult']

/** The tests beside the file of a flow, with what they gave last. */
export default function FlowTests({ flow }: { flow: string }) {
  const may = useMay('start')
  const now = useNow(true)
  const params = { path: { flow } }
  const list = useLoad((signal) => take(api.GET('/v1/flows/{flow}/tests', { params, signal })), [flow])
  const results = useLoad((signal) => take(api.GET('/v1/flows/{flow}/tests/results', { params, signal })), [flow])
  const [running, setRunning] = useState<string>()
  const [error, setError] = useState<WeirError>()
  const run = async (test?: string) => {
    setRunning(test ?? '')
    setError(undefined)
    try {
      await api.POST('/v1/flows/{flow}/tests/run', { params, body: { test } })
      results.reload()
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setRunning(undefined)
    }
  }
  if (list.error) return <Failure error={list.error} retry={list.reload} />
  if (!list.data) return <LoadingRows />
  const files = list.data.files ?? []
  if (files.length === 0) return <Empty art="flows" title={t.tests.none} hint={t.tests.noneHint}><div className="code">{flow}.test.yaml</div></Empty>
  const reports = results.data?.results ?? []
  const last = latest(reports)
  const hasTests = files.some((f) => (f.tests ?? []).length > 0)
  return (
    <div className="body pad" tabIndex={0} role="region" aria-label={t.tests.title}>
      <div className="narrow column gap">
        {may && hasTests && <div><Button loading={running === ''} disabled={running !== undefined} onClick={() => void run()}>{t.tests.runAll}</Button></div>}
        {error && <Failure error={error} />}
        {results.error && <Failure error={results.error} retry={results.reload} />}
        {files.map((f) => (
          <Section key={f.file} title={f.file}>
            <div className="column gap8">
              {(f.problems ?? []).map((p, i) => <div className="error-box" key={i}><div><span className="mono">{p.place}</span> {p.message}</div>{p.hint && <div className="dim">{p.hint}</div>}</div>)}
              {(f.tests ?? []).map((x) => <Test key={x.name} x={x} result={last.get(f.file + '\n' + x.name)} busy={running} run={may && !x.skip ? () => void run(x.name) : undefined} />)}
            </div>
          </Section>
        ))}
        {reports.length > 0 && (
          <Section title={t.tests.earlier}>
            <div className="column gap4">{reports.map((r) => <Report key={r.id} r={r} now={now} />)}</div>
          </Section>
        )}
      </div>
    </div>
  )
}

/** The newest result of each test, by its file and name. */
function latest(reports: Schemas['TestReport'][]): Map<string, Result & { at: string }> {
  const out = new Map<string, Result & { at: string }>()
  for (const r of reports) for (const x of r.tests ?? []) if (!out.has(x.file + '\n' + x.name)) out.set(x.file + '\n' + x.name, { ...x, at: r.at })
  return out
}

const signs = { passed: 'completed', failed: 'failed', skipped: 'skipped', stopped: 'cancelled', invalid: 'failed' } as const

function Test({ x, result, busy, run }: { x: Schemas['TestRow']; result?: Result; busy?: string; run?: () => void }) {
  return (
    <article className="card column gap8" aria-label={x.name}>
      <div className="row">
        {result ? <Status of={signs[result.status]} label={t.tests[result.status]} /> : <Status of="pending" label={x.skip ? t.tests.skipped : t.tests.notRun} />}
        <b className="grow">{x.name}</b>
        {result && <span className="small dim">{duration(result.seconds * 1000)}</span>}
        {run && <Button variant="default" loading={busy === x.name} disabled={busy !== undefined} aria-label={`${t.tests.run} ${x.name}`} onClick={run}>{t.tests.run}</Button>}
      </div>
      {x.skip && <div className="dim">{x.skip}</div>}
      {(result?.failures ?? []).map((f, i) => (
        <div key={i} className="error-box">
          <div>{f.where && <span className="mono">{f.where}: </span>}{f.message} <span className="small dim">{t.tests.line} {f.line}</span></div>
          {(f.diff ?? []).length > 0 && <div className="code">{f.diff!.map((line, n) => <div key={n} className="diff-line" data-k={line[0]}>{line || ' '}</div>)}</div>}
        </div>
      ))}
    </article>
  )
}

function Report({ r, now }: { r: Schemas['TestReport']; now: number }) {
  const parts: [string, number][] = [[t.tests.passed, r.passed], [t.tests.failed, r.failed], [t.tests.skipped, r.skipped], [t.tests.stopped, r.stopped], [t.tests.invalid, r.invalid]]
  return (
    <div className="row wrap">
      <Status of={r.failed + r.invalid > 0 ? 'failed' : r.stopped > 0 ? 'cancelled' : 'completed'} label={parts.filter(([, n]) => n > 0).map(([name, n]) => `${n} ${name.toLowerCase()}`).join(', ')} />
      <span className="grow" />
      <span className="small dim cut">{[r.by, duration(r.seconds * 1000), ago(Date.parse(r.at), now)].filter(Boolean).join(' · ')}</span>
      <span className="small mono dim">{r.fingerprint.replace('sha256:', '').slice(0, 8)}</span>
    </div>
  )
}
