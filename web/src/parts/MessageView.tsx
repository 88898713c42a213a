import { useEffect, useMemo, useState } from 'react'
import { bytes } from '../format'
import { t } from '../strings'
import { CopyButton } from './common'
import { JsonTree } from './JsonTree'

interface Part {
  kind: string
  mime?: string
  name?: string
  url?: string
  data?: string
}

export interface Message {
  role: string
  text?: string
  name?: string
  id?: string
  calls?: { id?: string; name: string; arguments?: unknown }[]
  call?: string
  reasoning?: string
  parts?: Part[]
  [member: string]: unknown
}

const shown = 4000
const known = ['role', 'text', 'name', 'id', 'calls', 'call', 'reasoning', 'metadata', 'native', 'tokens', 'parts']

/** A message of a conversation. Its text is shown as it is, never as HTML. */
export function MessageView({ message, note }: { message: Message; note?: string }) {
  const [all, setAll] = useState(false)
  const text = message.text ?? ''
  const rest = Object.fromEntries(Object.entries(message).filter(([k, v]) => !known.includes(k) && v !== null && v !== ''))
  return (
    <div className="message" data-role={message.role}>
      <header>
        <b>{message.role}{message.name ? ` · ${message.name}` : ''}</b>
        {note && <span>{note}</span>}
        <span className="grow" />
        <span className="hover"><CopyButton text={() => text || JSON.stringify(message, null, 2)} /></span>
      </header>
      {message.reasoning && <div className="reasoning text small">{message.reasoning}</div>}
      {text && <div className="text">{all || text.length <= shown ? text : text.slice(0, shown) + '…'}</div>}
      {text.length > shown && !all && <button className="link" type="button" onClick={() => setAll(true)}>{t.state.whole} ({bytes(text.length)})</button>}
      {(message.calls ?? []).map((c, i) => (
        <div key={i} className="code call">
          <b>{c.name}</b>({typeof c.arguments === 'string' ? c.arguments : JSON.stringify(c.arguments ?? {})})
        </div>
      ))}
      {(message.parts ?? []).map((p, i) => <Media key={i} part={p} />)}
      {Object.keys(rest).length > 0 && <JsonTree value={rest} />}
    </div>
  )
}

const images = /^image\/(png|jpeg|gif|webp|avif)$/

/** A file of a message: images, sound and PDF are shown, others can be saved. An address of the web is text, because the page loads nothing from elsewhere. */
export function Media({ part }: { part: Part }) {
  const blob = useMemo(() => (part.data ? new Blob([bytesOf(part.data)], { type: part.mime ?? 'application/octet-stream' }) : undefined), [part.data, part.mime])
  const [url, setUrl] = useState('')
  useEffect(() => {
    if (!blob) return
    const made = URL.createObjectURL(blob)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [blob])
  const name = part.name || part.mime || part.kind
  if (!blob) return <div className="code call">{part.url ?? name}</div>
  if (!url) return null
  return (
    <>
      {images.test(part.mime ?? '') && <img className="media" src={url} alt={name} />}
      {/^audio\//.test(part.mime ?? '') && <audio className="media" controls src={url} aria-label={name} />}
      {part.mime === 'application/pdf' && navigator.pdfViewerEnabled && <iframe className="media pdf" src={url} title={name} />}
      <a className="small" href={url} download={part.name || `file.${(part.mime ?? 'bin').split('/').pop()}`}>{name} ({bytes(blob.size)})</a>
    </>
  )
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const out = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i)
  return out
}
