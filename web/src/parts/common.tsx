import { ActionIcon, Button, Loader, Tooltip } from '@mantine/core'
import { useState, type ReactNode } from 'react'
import type { ApiError } from '../api/client'
import { statusText, t } from '../strings'
import { Icon } from './icons'

/** The status of a run or node, by colour and text. */
export function Status({ of, label }: { of: string; label?: string }) {
  return (
    <span className="status" data-s={of}>
      {label ?? statusText[of] ?? of}
    </span>
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

export function Empty({ title, hint, children }: { title: string; hint?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {hint && <span>{hint}</span>}
      {children}
    </div>
  )
}

/** A failure of a request, with its code and what to do. */
export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div className="pad">
      <div className="error-box" role="alert">
        <b>{error.offline ? t.state.offline : error.message}</b> {error.code && !error.offline && <span className="mono">{error.code}</span>}
        <div>{error.offline ? t.state.offlineHint : error.hint}</div>
        {error.mistakes.map((m, i) => (
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

/** An error of a run or node, with a link to the page about its code. */
export function RunError({ error }: { error: { code: string; message: string; hint?: string } }) {
  return (
    <div className="error-box">
      <b className="mono">{error.code}</b>
      <div className="text">{error.message}</div>
      {error.hint && <div className="dim">{error.hint}</div>}
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
        </button>
      ))}
    </div>
  )
}
