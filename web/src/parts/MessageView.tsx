import { useState } from 'react'
import { t } from '../strings'
import { CopyButton } from './common'
import { JsonTree } from './JsonTree'

export interface Message {
  role: string
  text?: string
  name?: string
  id?: string
  calls?: { id?: string; name: string; arguments?: unknown }[]
  call?: string
  reasoning?: string
  [member: string]: unknown
}

const shown = 4000

/** A message of a conversation. Its text is shown as it is, never as HTML. */
export function MessageView({ message, note }: { message: Message; note?: string }) {
  const [all, setAll] = useState(false)
  const text = message.text ?? ''
  const known = ['role', 'text', 'name', 'id', 'calls', 'call', 'reasoning', 'metadata', 'native', 'tokens']
  const parts = Object.fromEntries(Object.entries(message).filter(([k, v]) => !known.includes(k) && v !== null && v !== ''))
  return (
    <div className="message" data-role={message.role}>
      <header>
        <b>{message.role}{message.name ? ` · ${message.name}` : ''}</b>
        {note && <span>{note}</span>}
        <span className="grow" />
        <CopyButton text={() => text || JSON.stringify(message, null, 2)} />
      </header>
      {message.reasoning && <div className="dim text small">{message.reasoning}</div>}
      {text && <div className="text">{all || text.length <= shown ? text : text.slice(0, shown) + '…'}</div>}
      {text.length > shown && !all && <button className="link" type="button" onClick={() => setAll(true)}>{t.state.whole}</button>}
      {(message.calls ?? []).map((c, i) => (
        <div key={i} className="code" style={{ marginTop: 4 }}>
          {c.name}({typeof c.arguments === 'string' ? c.arguments : JSON.stringify(c.arguments ?? {})})
        </div>
      ))}
      {Object.keys(parts).length > 0 && <JsonTree value={parts} />}
    </div>
  )
}
