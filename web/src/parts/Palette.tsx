import { Modal, TextInput } from '@mantine/core'
import { useId, useState, type KeyboardEvent, type ReactNode } from 'react'
import { api, take } from '../api'
import { ago } from '../format'
import { go, href } from '../route'
import { t } from '../strings'
import { useLoad, useSettled } from '../use'
import { Status } from './common'
import { Icon, type IconName } from './icons'

interface Target {
  to: string
  text: string
  view: ReactNode
}

const most = 50

/** Goes to a page, a flow or a run by typing a part of its name. */
export default function Palette({ pages, close }: { pages: (keyof typeof t.nav & IconName)[]; close: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const id = useId()
  const flows = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const runs = useLoad((signal) => take(api.GET('/v1/runs', { params: { query: { limit: 200 } }, signal })), [])
  const asked = useSettled(text.trim())
  const older = useLoad(async (signal) => (asked.length > 1 ? take(api.GET('/v1/runs', { params: { query: { limit: 50, text: asked } }, signal })) : undefined), [asked])
  const sessions = useLoad((signal) => take(api.GET('/v1/sessions', { params: { query: { limit: 100 } }, signal })), [])
  const known = new Set((runs.data?.runs ?? []).map((r) => r.run))
  const now = Date.now()
  const all: Target[] = [
    ...pages.map((x) => ({ to: href([x]), text: t.nav[x], view: <><Icon name={x} /><span>{t.nav[x]}</span></> })),
    ...(flows.data?.flows ?? []).map((f) => ({ to: href(['flows', f.name]), text: `${f.name} ${f.description}`, view: <><Icon name="flows" /><span>{f.name}</span><span className="small dim cut">{f.description}</span></> })),
    ...(sessions.data?.sessions ?? []).filter((s) => s.title).map((s) => ({ to: href(['sessions', s.session]), text: `${s.title} ${s.flow} ${s.session}`, view: <><Icon name="sessions" /><span className="cut">{s.title}</span><span className="small dim">{s.flow}</span></> })),
    ...[...(runs.data?.runs ?? []), ...(older.data?.runs ?? []).filter((r) => !known.has(r.run))].map((r) => ({ to: href(['runs', r.run]), text: `${r.run} ${r.flow} ${r.interrupts?.[0]?.prompt ?? ''} ${r.error?.message ?? ''}`, view: <><Status of={r.status} quiet /><span>{r.flow}</span><span className="mono dim">{r.run}</span><span className="small dim cut grow">{r.interrupts?.[0]?.prompt ?? r.error?.message}</span><span className="small dim">{ago(Date.parse(r.created), now)}</span></> })),
  ]
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = all.filter((x) => words.every((w) => x.text.toLowerCase().includes(w))).slice(0, most)
  // A run that is older than those that were loaded is opened by its id.
  if (found.length === 0 && /^[a-z0-9]{12,}$/.test(text.trim())) found.push({ to: href(['runs', text.trim()]), text, view: <><Icon name="runs" /><span>{t.palette.openRun}</span><span className="mono">{text.trim()}</span></> })
  const chosen = Math.min(at, found.length - 1)
  const open = (x: Target | undefined) => {
    if (!x) return
    go(x.to)
    close()
  }
  const onKey = (e: KeyboardEvent) => {
    const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0
    if (step) setAt((chosen + step + found.length) % Math.max(found.length, 1))
    else if (e.key === 'Enter') open(found[chosen])
    else return
    e.preventDefault()
  }
  return (
    <Modal opened onClose={close} size="lg" title={t.palette.open} closeButtonProps={{ 'aria-label': t.state.close }} yOffset="12vh" centered={false}>
      <div className="column gap8">
        <TextInput data-autofocus aria-label={t.palette.hint} placeholder={t.palette.hint} value={text} onChange={(e) => { setText(e.currentTarget.value); setAt(0) }} onKeyDown={onKey} role="combobox" aria-expanded aria-controls={id} aria-activedescendant={found.length ? `${id}${chosen}` : undefined} />
        <div className="found" role="listbox" id={id} aria-label={t.palette.open} tabIndex={-1}>
          {found.map((x, i) => (
            <a key={x.to} id={`${id}${i}`} role="option" aria-selected={i === chosen} href={x.to} tabIndex={-1} onClick={close} onMouseEnter={() => setAt(i)} ref={(e) => void (e && i === chosen && e.scrollIntoView({ block: 'nearest' }))}>{x.view}</a>
          ))}
        </div>
        {found.length === 0 && <div className="dim">{t.palette.none}</div>}
        <div className="small dim">{t.palette.keys}</div>
      </div>
    </Modal>
  )
}
