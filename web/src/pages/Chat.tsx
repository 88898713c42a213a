import { ActionIcon, Button, Textarea, Tooltip } from '@mantine/core'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { api, newKey, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { ago, count } from '../format'
import { useChanges } from '../list'
import { CardGrid } from '../parts/CardGrid'
import { Empty, Failure, Loading, RunError, Section, Status } from '../parts/common'
import { Icon } from '../parts/icons'
import { cutOf, MessageView, type Cut, type Message } from '../parts/MessageView'
import { QuestionForm } from '../parts/QuestionForm'
import { partsOf, Uploads, type StoredFile } from '../parts/FileField'
import { Title } from '../parts/Title'
import { go, href, useQuery, useRoute } from '../route'
import { ended, useRun } from '../run/useRun'
import { t } from '../strings'
import { slow, useAgain, useLoad, useNow } from '../use'

const RunBeside = lazy(() => import('../run/RunBeside'))

/** Flows that take a message, and conversations with them. */
export default function Chat() {
  const { path } = useRoute()
  return path[1] ? <Conversation key={path[1]} id={path[1]} /> : <Choose />
}

function Choose() {
  const flows = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const sessions = useLoad((signal) => take(api.GET('/v1/sessions', { params: { query: { limit: 20 } }, signal })), [], slow)
  useAgain(useChanges(), sessions.reload)
  const now = useNow(true)
  const may = useMay('start')
  const [error, setError] = useState<WeirError>()
  const talkative = (flows.data?.flows ?? []).filter((f) => takesMessage(f))
  const list = sessions.data?.sessions ?? []
  const open = async (flow: string) => {
    try {
      const s = await take(api.POST('/v1/sessions', { params: { header: { 'Idempotency-Key': newKey() } }, body: { flow } }))
      go(href(['chat', s.session]))
    } catch (e) {
      setError(e as WeirError)
    }
  }
  return (
    <>
      <div className="head"><h1>{t.chat.title}</h1></div>
      <div className="body column">
        {error && <Failure error={error} />}
        {flows.error && <Failure error={flows.error} retry={flows.reload} />}
        {flows.data && talkative.length === 0 && <Empty art="chat" title={t.chat.noFlows} />}
        {talkative.length > 0 && (
          <div className="pad narrow column" style={{ gap: 24 }}>
            <Section title={t.chat.choose}>
              <CardGrid list={talkative} id={(f) => f.name} most={760} item={(f) => (
                  <article className="card column gap8" key={f.name}>
                    <b>{f.name}</b>
                    <div className="dim grow">{f.description}</div>
                    {may && <div><Button variant="default" onClick={() => open(f.name)}>{t.chat.newChat}</Button></div>}
                  </article>
              )} />
            </Section>
            {list.length > 0 && (
              <Section title={t.chat.recent} action={<a href={href(['sessions'])}>{t.chat.allSessions}</a>}>
                {list.map((s) => (
                  <a key={s.session} className="row trow" href={href(['chat', s.session])}>
                    <span className="strong cut">{s.title || s.flow}</span>{s.title && <span className="dim">{s.flow}</span>}<span className="mono dim cut">{s.session}</span><span className="grow" /><span className="small dim">{s.messages} {t.messages.count} · {ago(Date.parse(s.updated), now)}</span>
                  </a>
                ))}
              </Section>
            )}
          </div>
        )}
      </div>
    </>
  )
}

/** A flow takes a message if it has no required input but the message. */
function takesMessage(f: Schemas['FlowRow']): boolean {
  const schema = f.inputs as { properties?: Record<string, unknown>; required?: string[] }
  return !!schema.properties?.message && (schema.required ?? []).every((x) => x === 'message')
}

/** How many messages a conversation has at first, and how many more each time that earlier ones are asked for. */
const page = 200

interface Row {
  m: Schemas['MessageRow']
  cut: Cut[]
}

const rowsOf = (p: Schemas['MessageList']): Row[] => (p.messages ?? []).map((m, i) => ({ m, cut: cutOf(p.truncated, `/messages/${i}/message/`) }))

const post = (session: string, message: unknown) =>
  take(api.POST('/v1/sessions/{session}/messages', { params: { path: { session }, query: { wait: 1 }, header: { 'Idempotency-Key': newKey() } }, body: { message: message as never } }))

function Conversation({ id }: { id: string }) {
  const may = useMay('start')
  const [query, set] = useQuery()
  const session = useLoad((signal) => take(api.GET('/v1/sessions/{session}', { params: { path: { session: id } }, signal })), [id], 1500)
  const length = session.data?.messages ?? 0
  const messages = (from: number, signal?: AbortSignal) => take(api.GET('/v1/sessions/{session}/messages', { params: { path: { session: id }, query: { from, limit: page } }, signal }))
  const list = useLoad((signal) => messages(Math.max(0, length - page), signal), [id, length, session.data?.run])
  const [rows, setRows] = useState<Row[]>([])
  useEffect(() => {
    const last = list.data && rowsOf(list.data)
    if (last) setRows((before) => joined(before, last))
  }, [list.data])
  const first = rows[0]?.m.position ?? 0
  const loadEarlier = async () => {
    const from = Math.max(0, first - page)
    const before = rowsOf(await messages(from)).filter((r) => r.m.position < first)
    setRows((after) => (after[0]?.m.position === first ? [...before, ...after] : after))
  }
  const kept = useMemo(() => rows.map((r) => r.m), [rows])
  const [text, setText] = useState('')
  const [files, setFiles] = useState<StoredFile[]>([])
  const [uploading, setUploading] = useState(false)
  const flow = useLoad(async (signal) => (session.data?.flow ? take(api.GET('/v1/flows/{flow}', { params: { path: { flow: session.data.flow } }, signal })) : undefined), [session.data?.flow])
  const takesFiles = flow.data?.inputTypes.message === 'message'
  const [pending, setPending] = useState<string[]>([])
  const [error, setError] = useState<WeirError>()
  const [run, setRun] = useState('')
  const [works, setWorks] = useState('')
  const [steered, setSteered] = useState('')
  const round = session.data?.run || run || kept.at(-1)?.run || ''
  const [takers, setTakers] = useState<string[]>([]) // the last ones that are known: while they are read again, a message still names its node
  const nodes = useLoad(async (signal) => {
    const list = works ? ((await take(api.GET('/v1/runs/{run}/steer', { params: { path: { run: round } }, signal }))).nodes ?? []) : []
    if (!signal.aborted) setTakers(list)
  }, [round, works])
  const [to, setTo] = useState('')
  const several = takers.length > 1 ? takers : []
  const node = several.includes(to) ? to : several[0]
  const beside = query.get('beside') ?? ''
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    void end.current?.scrollIntoView({ block: 'end' })
  }, [kept.at(-1)?.position, pending.length]) // and not when earlier ones are loaded
  const send = async () => {
    const message = text.trim()
    if (uploading || (!message && files.length === 0)) return
    setText('')
    setFiles([])
    setError(undefined)
    setPending((p) => [...p, message])
    try {
      const r = await post(id, files.length ? { role: 'user', text: message, parts: partsOf(files) } : message)
      if (r!.run) setRun(r!.run)
      session.reload()
      list.reload()
    } catch (e) {
      setError(e as WeirError)
      setText(message)
      setFiles(files)
    } finally {
      setPending((p) => p.filter((x) => x !== message))
    }
  }
  /** Sends a message to the round that runs, or ends the model's answer where it is. */
  const steer = async (interrupt: boolean) => {
    const message = text.trim()
    setText('')
    setError(undefined)
    try {
      const r = await take(api.POST('/v1/sessions/{session}/steer', { params: { path: { session: id }, header: { 'Idempotency-Key': newKey() } }, body: { message: message || undefined, interrupt: interrupt || undefined, node } }))
      setSteered(r.outcome === 'steered' ? `${t.chat.steered} ${r.node}` : t.chat.notSteered)
      session.reload()
      list.reload()
    } catch (e) {
      setError(e as WeirError)
      setText(message)
      nodes.reload()
    }
  }
  /** Has a message, as it is or edited, answered again in a fork of the conversation. */
  const again = async (position: number, edited?: string) => {
    setError(undefined)
    const params = { path: { session: id, position }, query: { wait: 1 }, header: { 'Idempotency-Key': newKey() } }
    try {
      const s = await take(edited === undefined ? api.POST('/v1/sessions/{session}/messages/{position}/regenerate', { params, body: {} }) : api.POST('/v1/sessions/{session}/messages/{position}/edit', { params, body: { message: edited as never } }))
      go(href(['chat', s.session]))
    } catch (e) {
      setError(e as WeirError)
    }
  }
  if (session.error && !session.data) return <Failure error={session.error} retry={session.reload} />
  if (!session.data) return <Loading />
  const shown = new Set(kept.map((m) => m.message.text as string))
  return (
    <>
      <div className="head">
        <div className="column grow"><Title session={id} title={session.data.title} flow={session.data.flow} done={session.reload} /><span className="mono dim cut">{id}</span></div>
        {session.data.parent && <a className="wide" href={href(['chat', session.data.parent])}>{t.chat.original}</a>}
        {round && <Button variant="default" className="wide" onClick={() => set({ beside: beside ? '' : 'run' })}>{beside ? t.chat.hide : t.chat.beside}</Button>}
        {round && <a href={href(['runs', round])}>{t.chat.openRun}</a>}
        <a href={href(['sessions', id])}>{t.nav.sessions}</a>
      </div>
      <div className="split" data-panel={beside && round ? 'node' : 'none'}>
        <div className="column">
          <div className="body">
            <div className="pad narrow column gap" role="log" aria-label={t.chat.title}>
              {first > 0 && <div className="center"><Button variant="default" onClick={() => void loadEarlier()}>{t.chat.earlier} ({count(first)})</Button></div>}
              {kept.length === 0 && pending.length === 0 && !round && <Empty art="chat" title={t.chat.empty} />}
              {rows.map(({ m, cut }) => <Bubble key={m.position} m={m} cut={cut} again={may ? (edited) => again(m.position, edited) : undefined} />)}
              {pending.filter((x) => !shown.has(x)).map((x, i) => <div key={i} className="bubble" data-role="user"><MessageView message={{ role: 'user', text: x }} /></div>)}
              {round && <Round key={round} id={round} works={setWorks} changed={() => { session.reload(); list.reload() }} />}
              {session.data.queued > 0 && <div className="small dim">{session.data.queued} {t.chat.queued}</div>}
              {works && steered && <div className="small dim" role="status">{steered}</div>}
              {error && <Failure error={error} />}
              <div ref={end} />
            </div>
          </div>
          {may && (
            <form className="bar composer" onSubmit={(e) => { e.preventDefault(); void send() }}>
              <Textarea className="grow" aria-label={t.chat.message} placeholder={t.chat.hint} autosize minRows={1} maxRows={8} value={text} onChange={(e) => setText(e.currentTarget.value)}
                onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); void send() } }} />
              {works && several.length > 0 && <select className="select auto" aria-label={t.chat.steerNode} title={t.chat.steerNode} value={node} onChange={(e) => setTo(e.currentTarget.value)}>{several.map((x) => <option key={x}>{x}</option>)}</select>}
              {works && <Tooltip label={t.chat.steerHint}><Button variant="default" disabled={!text.trim()} onClick={() => steer(false)}>{t.chat.steer}</Button></Tooltip>}
              {works && <Tooltip label={t.chat.interruptHint}><Button variant="default" onClick={() => steer(true)}>{t.chat.interrupt}</Button></Tooltip>}
              {takesFiles && <Uploads compact several label={t.files.ofMessage} files={files} change={setFiles} uploading={setUploading} />}
              <Button type="submit" disabled={uploading || (!text.trim() && files.length === 0)}>{t.chat.send}</Button>
            </form>
          )}
        </div>
        {beside && round && <Suspense fallback={<Loading />}><RunBeside id={round} close={() => set({ beside: '' })} /></Suspense>}
      </div>
    </>
  )
}

/** The rows before a last page of the conversation, and that page; the page alone if rows between them are not known. */
function joined(before: Row[], last: Row[]): Row[] {
  const from = last[0]?.m.position ?? 0
  const kept = before.filter((r) => r.m.position < from)
  return (kept.at(-1)?.m.position ?? from - 1) === from - 1 ? [...kept, ...last] : last
}

/** A message, and for one of the user what can be done with it. */
function Bubble({ m, cut, again }: { m: Schemas['MessageRow']; cut: Cut[]; again?: (edited?: string) => Promise<void> }) {
  const text = (m.message.text as string) ?? ''
  const [edited, setEdited] = useState<string>()
  const [busy, setBusy] = useState(false)
  const repeat = async (message?: string) => {
    setBusy(true)
    await again!(message)
    setBusy(false)
  }
  if (edited !== undefined) {
    return (
      <form className="card column gap8" onSubmit={(e) => { e.preventDefault(); void repeat(edited) }}>
        <Textarea label={t.chat.edit} description={t.chat.editHint} autosize minRows={1} maxRows={10} value={edited} onChange={(e) => setEdited(e.currentTarget.value)} data-autofocus />
        <div className="row"><Button type="submit" loading={busy} disabled={!edited.trim()}>{t.chat.send}</Button><Button variant="default" onClick={() => setEdited(undefined)}>{t.chat.cancel}</Button></div>
      </form>
    )
  }
  return (
    <div className="bubble" data-role={m.message.role as string}>
      <MessageView formatted={m.message.role === 'assistant'} message={m.message as unknown as Message} cut={cut} note={m.status === 'failed' || m.status === 'cancelled' ? m.status : undefined} />
      {again && m.message.role === 'user' && text && (
        <div className="row" style={{ justifyContent: 'flex-end', gap: 4 }}>
          <Tooltip label={t.chat.edit}><ActionIcon size={20} aria-label={t.chat.edit} onClick={() => setEdited(text)}><Icon name="edit" size={14} /></ActionIcon></Tooltip>
          <Tooltip label={t.chat.again}><ActionIcon size={20} aria-label={t.chat.again} loading={busy} onClick={() => repeat()}><Icon name="again" size={14} /></ActionIcon></Tooltip>
        </div>
      )}
    </div>
  )
}

/** The round that is running: its text while it comes, and its questions. `works` gets the nodes that run, "" if none does. */
function Round({ id, works, changed }: { id: string; works: (nodes: string) => void; changed: () => void }) {
  const run = useRun(id, 0)
  const status = run.data?.status ?? ''
  const over = ended(status)
  const events = useMemo(() => `${status} ${(run.data?.interrupts ?? []).length}`, [status, run.data?.interrupts])
  useEffect(() => {
    if (status) changed()
  }, [events])
  const running = useMemo(() => (status === 'running' ? ['', ...(run.data?.nodes ?? []).filter((n) => n.status === 'running' || n.status === 'waiting').map((n) => n.node), ...(run.data?.children ?? []).map((c) => `${c.node}>${c.status}`)].join('\n') || ' ' : ''), [status, run.data])
  useEffect(() => {
    works(running)
    return () => works('')
  }, [running])
  const texts = [...run.live].filter(([, v]) => v.text)
  const waits = [...run.live.values()].find((v) => v.waits)?.waits
  if (!run.data) return null
  return (
    <>
      {!over && texts.map(([effect, v]) => <div key={effect} className="bubble" data-role="assistant" aria-live="polite"><MessageView formatted message={{ role: 'assistant', text: v.text }} note={texts.length > 1 ? effect.split('/model')[0] : t.state.live} /></div>)}
      {(run.data.interrupts ?? []).filter((i) => !['timer', 'child'].includes(i.kind)).map((i) => <div className="ask" key={i.id}><QuestionForm run={id} interrupt={i} done={changed} /></div>)}
      {!over && status === 'running' && <div className="small"><Status of={waits ? 'waiting' : 'running'} label={waits || t.chat.thinking} /></div>}
      {status === 'failed' && run.data.error && <RunError error={run.data.error} />}
      {status === 'failed' && run.data.error?.code === 'budget_exceeded' && run.data.session && <a href={href(['sessions', run.data.session], { tab: 'budget' })}>{t.budget.ofThis}</a>}
    </>
  )
}
