import { useEffect, useMemo, useState } from 'react'
import { rawAt } from '../api'
import { bytes } from '../format'
import { save } from '../save'
import { t } from '../strings'
import { CopyButton } from './common'
import { Formatted } from './Formatted'
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

/** A text or file of a message that is larger than what a list has: its place in the message, and where all of it is. */
export interface Cut {
  place: string
  size: number
  url: string
}

/** What of a message is too large for its list; place is where in the answer the message is. */
export function cutOf(list: Cut[] | null | undefined, place: string): Cut[] {
  return (list ?? []).filter((x) => x.place.startsWith(place)).map((x) => ({ ...x, place: x.place.slice(place.length) }))
}

const shown = 4000
/** How much of a text is drawn. */
const mostDrawn = 200_000
const known = ['role', 'text', 'name', 'id', 'calls', 'call', 'reasoning', 'metadata', 'native', 'tokens', 'parts']

/** A message of a conversation. Its text is shown as it is, or `formatted`, and never as HTML. */
export function MessageView({ message, note, cut, formatted }: { message: Message; note?: string; cut?: Cut[]; formatted?: boolean }) {
  const [all, setAll] = useState(false)
  const [loaded, setLoaded] = useState<string>()
  const text = loaded ?? message.text ?? ''
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
      {text && formatted && text.length <= shown && <Formatted text={text} />}
      {text && !(formatted && text.length <= shown) && <div className="text">{text.length <= (all ? mostDrawn : shown) ? text : text.slice(0, all ? mostDrawn : shown) + '…'}</div>}
      {text.length > shown && !all && <button className="link" type="button" onClick={() => setAll(true)}>{t.state.whole} ({bytes(text.length)})</button>}
      {(cut ?? []).filter((x) => !x.place.endsWith('/data')).map((x) => <Rest key={x.place} cut={x} loaded={x.place === 'text' && loaded !== undefined} show={x.place === 'text' ? (whole) => { setLoaded(whole); setAll(true) } : undefined} />)}
      {(message.calls ?? []).map((c, i) => (
        <div key={i} className="code call">
          <b>{c.name}</b>({typeof c.arguments === 'string' ? c.arguments : JSON.stringify(c.arguments ?? {})})
        </div>
      ))}
      {(message.parts ?? []).map((p, i) => <Media key={i} part={p} cut={cut?.find((x) => x.place === `parts/${i}/data`)} />)}
      {Object.keys(rest).length > 0 && <JsonTree value={rest} />}
    </div>
  )
}

/** Loads or saves the whole of what a list has the beginning of. */
function Rest({ cut, loaded, show }: { cut: Cut; loaded: boolean; show?: (text: string) => void }) {
  const message = async () => (await (await rawAt(cut.url)).json()) as Message
  const name = cut.place.replaceAll('/', '-')
  return (
    <div className="row">
      {show && !loaded && cut.size < 4 << 20 && <button className="link" type="button" onClick={async () => show((await message()).text ?? '')}>{t.state.whole} ({bytes(cut.size)})</button>}
      <button className="link" type="button" onClick={async () => { const m = await message(); save(show ? `${name}.txt` : `${name}.json`, show ? (m.text ?? '') : JSON.stringify(m, null, 2), show ? 'text/plain' : 'application/json') }}>{t.state.download} {cut.place} ({bytes(cut.size)})</button>
    </div>
  )
}

/** Files up to this size are loaded with their message. */
const mostLoaded = 8 << 20

const images = /^image\/(png|jpeg|gif|webp|avif)$/

/** A file of a message: images, sound and PDF are shown, others can be saved. An address of the web is text, because the page loads nothing from elsewhere. */
export function Media({ part, cut, content }: { part: Part; cut?: Cut; content?: Blob }) {
  const [got, setGot] = useState<Blob>()
  const kind = part.mime ?? 'application/octet-stream'
  const load = async () => setGot(new Blob([await (await rawAt(cut!.url)).arrayBuffer()], { type: kind }))
  useEffect(() => {
    if (cut && cut.size < mostLoaded) load().catch(() => undefined)
  }, [cut?.url])
  const inline = useMemo(() => (part.data ? new Blob([bytesOf(part.data)], { type: kind }) : undefined), [part.data, kind])
  const blob = content ?? got ?? inline
  const [url, setUrl] = useState('')
  useEffect(() => {
    if (!blob) return
    const made = URL.createObjectURL(blob)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [blob])
  const name = part.name || part.mime || part.kind
  if (!blob && cut) return <button className="link" type="button" onClick={() => void load()}>{t.state.whole} {name} ({bytes(cut.size)})</button>
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
