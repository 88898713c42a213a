import { ActionIcon, Button, TextInput, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { api, WeirError } from '../api'
import { useMay } from '../caller'
import { Icon } from './icons'
import { t } from '../strings'

/** The title of a session as a heading, which its user can change. Without a title it is the name of the flow. */
export function Title({ session, title, flow, done }: { session: string; title?: string; flow: string; done: () => void }) {
  const may = useMay('start')
  const [text, setText] = useState<string>()
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const close = () => {
    setText(undefined)
    setError(undefined)
  }
  const save = async () => {
    setBusy(true)
    try {
      await api.PUT('/v1/sessions/{session}/title', { params: { path: { session } }, body: { title: text!.trim() } })
      close()
      done()
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setBusy(false)
    }
  }
  if (text === undefined) {
    return (
      <div className="row">
        <h1 className="cut" title={title || flow}>{title || flow}</h1>
        {may && <Tooltip label={t.sessions.rename}><ActionIcon size={20} aria-label={t.sessions.rename} onClick={() => setText(title ?? '')}><Icon name="edit" size={14} /></ActionIcon></Tooltip>}
        {title && <span className="small dim cut">{flow}</span>}
      </div>
    )
  }
  return (
    <form className="row wrap" onSubmit={(e) => { e.preventDefault(); void save() }} onKeyDown={(e) => e.key === 'Escape' && close()}>
      <TextInput className="grow title-field" aria-label={t.sessions.titleOf} placeholder={flow} maxLength={200} value={text} error={error?.message} autoFocus onChange={(e) => setText(e.currentTarget.value)} />
      <Button type="submit" loading={busy}>{t.sessions.save}</Button>
      <Button variant="default" onClick={close}>{t.chat.cancel}</Button>
    </form>
  )
}
