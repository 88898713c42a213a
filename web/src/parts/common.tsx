import { ActionIcon, Button, Loader, Tooltip } from '@mantine/core'
import { useState, type ReactNode } from 'react'
import type { WeirError } from '../api'
import { statusText, t } from '../strings'
import { useCodes } from '../codes'
import { href } from '../route'
import { Icon, type IconName } from './icons'

/** The status of a run or node, by the form and colour of a sign, and by text, which tight places give to screen readers alone. */
export function Status({ of, label, chip, quiet }: { of: string; label?: string; chip?: boolean; quiet?: boolean }) {
  const text = label ?? statusText[of] ?? of
  return (
    <span className={chip ? 'status chip' : 'status'} data-s={of} title={quiet ? text : undefined}>
      <StatusSign of={of} />
      <span className={quiet ? 'unseen' : 'cut'}>{text}</span>
    </span>
  )
}

const signs: Record<string, ReactNode> = {
  completed: <><circle cx="8" cy="8" r="6" fill="currentColor" stroke="none" /><path d="M5.5 8.2 7.2 10l3.4-4" stroke="var(--page)" /></>,
  failed: <><circle cx="8" cy="8" r="6" fill="currentColor" stroke="none" /><path d="M6 6l4 4M10 6l-4 4" stroke="var(--page)" /></>,
  running: <><circle cx="8" cy="8" r="5.3" opacity="0.3" /><path className="spin" d="M8 2.700a5.300 5.300 0 0 1 5.300 5.300" /></>,
  waiting: <><circle cx="8" cy="8" r="5.300" /><path d="M8 5v3.200l2 1.300" /></>,
  cancelled: <><circle cx="8" cy="8" r="5.300" /><path d="M4.500 11.500l7-7" /></>,
  skipped: <><circle cx="8" cy="8" r="5.300" strokeDasharray="2 2" /><path d="M6 8h4" /></>,
  pending: <circle cx="8" cy="8" r="5.300" strokeDasharray="2 2" />,
  stopped: <><circle cx="8" cy="8" r="5.300" /><path d="M6.500 6v4M9.500 6v4" /></>,
}

function StatusSign({ of }: { of: string }) {
  const form = of === 'paused' ? 'waiting' : of === 'not_needed' ? 'skipped' : of
  return (
    <svg className="sicon" data-s={of} width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      {signs[form] ?? signs.pending}
    </svg>
  )
}

export function Loading() {
  return (
    <div className="empty" role="status">
      <Loader size={20} />
      <span>{t.state.loading}</span>
    </div>
  )
}

/** Lines where rows will be. */
export function LoadingRows() {
  return (
    <div className="ghosts" role="status" aria-label={t.state.loading}>
      {[88, 72, 80, 64, 76, 60].map((w, i) => <i key={i} style={{ width: `${w}%` }} />)}
    </div>
  )
}

export function Empty({ title, hint, art, children }: { title: string; hint?: string; art?: IconName; children?: ReactNode }) {
  return (
    <div className="empty">
      {art && <span className="art"><Icon name={art} size={32} /></span>}
      <h2>{title}</h2>
      {hint && <span>{hint}</span>}
      {children}
    </div>
  )
}

/** A failure of a request, with its code and what to do. */
export function Failure({ error, retry }: { error: WeirError; retry?: () => void }) {
  if (error.offline && retry) {
    return (
      <div role="alert" className="column">
        <Empty art="offline" title={t.state.offline} hint={t.state.offlineHint}><Button variant="default" onClick={retry}>{t.state.retry}</Button></Empty>
      </div>
    )
  }
  return (
    <div className="pad">
      <div className="error-box" role="alert">
        <b>{error.offline ? t.state.offline : error.message}</b> {error.code && !error.offline && <span className="mono">{error.code}</span>}
        <div>{error.offline ? t.state.offlineHint : error.hint}</div>
        {(error.problem.errors ?? []).map((m, i) => (
          <div key={i}>
            <span className="mono">{m.place}</span> {m.message}
          </div>
        ))}
        {retry && (
          <Button variant="default" mt={8} onClick={retry}>
            {t.state.retry}
          </Button>
        )}
      </div>
    </div>
  )
}

/** A text whose parts between backticks are code. */
export function Ticks({ text }: { text: string }) {
  return <>{text.split('`').map((x, i) => (i % 2 ? <span key={i} className="mono">{x}</span> : x))}</>
}

/** An error of a run or node: its cause, what its code means and what to do, and a link to the page of codes. */
export function RunError({ error }: { error: { code: string; message: string; hint?: string } }) {
  const info = useCodes()?.get(error.code)
  return (
    <div className="error-box">
      <div className="text"><b>{error.message}</b></div>
      {error.hint && <div>{error.hint}</div>}
      {info && <div className="small dim"><Ticks text={`${info.meaning} ${info.remedy}`} /></div>}
      <div className="small"><a className="mono" href={href(['codes', error.code])} title={t.node.codeLink}>{error.code}</a></div>
    </div>
  )
}

export function CopyButton({ text, label = t.state.copy }: { text: () => string; label?: string }) {
  const [done, setDone] = useState(false)
  return (
    <Tooltip label={done ? t.state.copied : label}>
      <ActionIcon
        aria-label={label}
        size={20}
        onClick={() => {
          void copyText(text())
          setDone(true)
          setTimeout(() => setDone(false), 1500)
        }}
      >
        <Icon name="copy" size={14} />
      </ActionIcon>
    </Tooltip>
  )
}

/** Copies a text; without a secure context by a selection. */
export async function copyText(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

export function Section({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <section className="section">
      <h3 className="row">
        <span className="grow">{title}</span>
        {action}
      </h3>
      {children}
    </section>
  )
}

export interface Tab {
  id: string
  label: string
  count?: number
}

/** Tabs that are reached by the arrow keys. */
export function Tabs({ tabs, chosen, choose, label }: { tabs: Tab[]; chosen: string; choose: (id: string) => void; label: string }) {
  return (
    <div
      className="tabs"
      role="tablist"
      aria-label={label}
      onKeyDown={(e) => {
        const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0
        if (!step) return
        const i = (tabs.findIndex((x) => x.id === chosen) + step + tabs.length) % tabs.length
        choose(tabs[i].id)
        ;(e.currentTarget.children[i] as HTMLElement).focus()
      }}
    >
      {tabs.map((x) => (
        <button key={x.id} role="tab" type="button" aria-selected={x.id === chosen} tabIndex={x.id === chosen ? 0 : -1} onClick={() => choose(x.id)}>
          {x.label}
          {x.count ? <span className="n">{x.count}</span> : null}
        </button>
      ))}
    </div>
  )
}
