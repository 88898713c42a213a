import { ActionIcon, Button, Textarea } from '@mantine/core'
import { useId, useRef, useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { bytes } from '../format'
import { t } from '../strings'
import { Icon } from './icons'

export type StoredFile = Schemas['FileRow']

/** Uploads a file to the server, which finds its type from the content. */
async function upload(file: File): Promise<StoredFile> {
  const bodySerializer = () => {
    const form = new FormData()
    form.set('file', file)
    return form
  }
  return take(api.POST('/v1/files', { body: { file: file.name }, bodySerializer }))
}

/** Uploads of a form: the files that were uploaded, with a button for more. `uploading` gets whether one is under way. */
export function Uploads({ label, describedBy, files, change, several, uploading, compact, button }: { label: string; button?: string; describedBy?: string; files: StoredFile[]; change: (f: StoredFile[]) => void; several?: boolean; uploading?: (busy: boolean) => void; compact?: boolean }) {
  const input = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<WeirError>()
  const add = async (list: File[]) => {
    if (list.length === 0) return
    setError(undefined)
    setBusy(true)
    uploading?.(true)
    let all = several ? files : []
    try {
      for (const f of list) {
        all = [...all, await upload(f)]
        change(all)
      }
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setBusy(false)
      uploading?.(false)
      if (input.current) input.current.value = '' // the same file can be chosen again
    }
  }
  return (
    <div className="column gap4">
      <div className="row wrap">
        <input ref={input} type="file" className="unseen" tabIndex={-1} aria-label={label} aria-describedby={describedBy} multiple={several} onChange={(e) => void add([...(e.currentTarget.files ?? [])])} />
        {compact
          ? <ActionIcon aria-label={t.files.choose} title={t.files.choose} loading={busy} onClick={() => input.current?.click()}><Icon name="clip" /></ActionIcon>
          : <Button variant="default" loading={busy} onClick={() => input.current?.click()}>{button ?? (several ? t.files.choose : t.files.chooseOne)}</Button>}
        {files.map((f) => (
          <span key={f.id} className="chip row" style={{ gap: 4 }}>
            <span className="cut">{f.filename}</span><span className="dim">{bytes(f.bytes)}</span>
            <ActionIcon size={16} aria-label={`${t.files.remove} ${f.filename}`} onClick={() => change(files.filter((x) => x.id !== f.id))}><Icon name="close" size={10} /></ActionIcon>
          </span>
        ))}
      </div>
      {error && <div className="error-box" role="alert"><b>{error.message}</b>{error.hint && <div className="dim">{error.hint}</div>}</div>}
    </div>
  )
}

/** The form in which a message names files. */
export const partsOf = (files: StoredFile[]) => files.map((f) => ({ kind: f.type.startsWith('image/') ? 'image' : 'file', file_id: f.id }))

/** A field for an input of type file, or of type message, which has a text and files. */
export function FileField({ label, description, required, message, change }: { label: string; description?: string; required: boolean; message: boolean; change: (v: unknown) => void }) {
  const id = useId()
  const [files, setFiles] = useState<StoredFile[]>([])
  const [text, setText] = useState('')
  const update = (nextText: string, next: StoredFile[]) => {
    setText(nextText)
    setFiles(next)
    if (!message) change(next[0] && { file_id: next[0].id })
    else change(nextText || next.length ? { role: 'user', text: nextText, ...(next.length && { parts: partsOf(next) }) } : undefined)
  }
  return (
    <div className="column gap4" role="group" aria-labelledby={id}>
      <span id={id} className="small">{label}{required && <span aria-hidden="true" style={{ color: 'var(--bad)' }}> *</span>}</span>
      {description && <span className="small dim" id={`${id}-d`}>{description}</span>}
      {message && <Textarea aria-label={label} autosize minRows={1} maxRows={10} value={text} onChange={(e) => update(e.currentTarget.value, files)} />}
      <Uploads label={`${t.files.fileOf} ${label}`} describedBy={description ? `${id}-d` : undefined} files={files} several={message} change={(next) => update(text, next)} />
    </div>
  )
}
