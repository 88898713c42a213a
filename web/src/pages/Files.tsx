import { ActionIcon, Button } from '@mantine/core'
import { useEffect, useState } from 'react'
import { api, raw, take, WeirError } from '../api'
import { useMay } from '../caller'
import { ago, bytes, clock } from '../format'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, Loading, LoadingRows } from '../parts/common'
import { Uploads, type StoredFile } from '../parts/FileField'
import { Icon } from '../parts/icons'
import { Media } from '../parts/MessageView'
import { Rows } from '../parts/Rows'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { slow, useLoad, useNow, usePages } from '../use'

const columns = [{ name: t.files.name }, { name: t.files.type }, { name: t.files.size, right: true }, { name: t.files.uploaded, right: true }, { name: t.files.expires, right: true }]

/** The files that were uploaded, with the content of the one that the address names. */
export default function Files() {
  const [query, set] = useQuery()
  const chosen = query.get('file') ?? ''
  const show = (file: string) => set({ file }, false)
  const may = useMay('start')
  const list = usePages<StoredFile>(
    async (cursor, signal) => {
      const p = await take(api.GET('/v1/files', { params: { query: { limit: 100, order: 'desc', after: cursor || undefined } }, signal }))
      return { list: p.data ?? [], next: p.has_more ? p.last_id : '' }
    },
    (f) => f.id, [], 0,
  )
  const now = useNow(true)
  const rows = list.data ?? []
  const added = (files: StoredFile[]) => {
    list.reload()
    if (files.length) show(files[0].id)
  }
  return (
    <>
      <div className="head"><h1 className="grow">{t.nav.files}</h1>{may && <Uploads label={t.files.upload} button={t.files.upload} files={[]} change={added} />}</div>
      {list.error && !(list.error.offline && list.data) && <Failure error={list.error} retry={list.reload} />}
      {!list.data && !list.error && <LoadingRows />}
      <div className="split" data-panel={chosen ? 'node' : 'none'} hidden={!list.data && !chosen}>
        <div className="column">
          {list.data && rows.length === 0 && <Empty art="files" title={t.files.none} hint={t.files.noneHint} />}
          {rows.length > 0 && (
            <Rows
              label={t.nav.files} kind="files" columns={columns} list={rows} id={(f) => f.id} to={(f) => href(['files'], { file: f.id })} chosen={chosen} more={list.more}
              cells={(f) => [<b>{f.filename}</b>, f.type, bytes(f.bytes), <span title={clock(f.created_at * 1000)}>{ago(f.created_at * 1000, now)}</span>, f.expires_at ? <span title={clock(f.expires_at * 1000)}>{clock(f.expires_at * 1000).slice(0, 10)}</span> : '–']}
            />
          )}
        </div>
        {chosen && <FilePanel key={chosen} id={chosen} close={() => show('')} gone={() => { list.drop(chosen); show('') }} />}
      </div>
    </>
  )
}

/** Files up to this size are shown; larger ones can be saved. */
const mostShown = 8 << 20
const shownAs = /^(text\/|image\/(png|jpeg|gif|webp|avif)$|audio\/|application\/(pdf|json)$)/

function FilePanel({ id, close, gone }: { id: string; close: () => void; gone: () => void }) {
  const may = useMay('start')
  const file = useLoad((signal) => take(api.GET('/v1/files/{file}', { params: { path: { file: id } }, signal })), [id], slow)
  const [error, setError] = useState<WeirError>()
  const f = file.data
  const remove = async () => {
    if (!window.confirm(`${t.files.deleteConfirm} ${f!.filename}`)) return
    try {
      await api.DELETE('/v1/files/{file}', { params: { path: { file: id } } })
      gone()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => e.key === 'Escape' && !document.querySelector('[role=dialog],[role=menu]') && close()
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  })
  return (
    <aside className="panel" aria-label={f?.filename ?? id}>
      <div className="panel-head">
        <h2 className="cut grow" title={f?.filename}>{f?.filename ?? id}</h2>
        {may && f && <Button variant="default" onClick={remove}>{t.files.delete}</Button>}
        {f && <CopyMenu label={f.filename} json={() => f} path={`v1/files/${encodeURIComponent(id)}/content`} />}
        <ActionIcon aria-label={t.files.close} onClick={close}><Icon name="close" /></ActionIcon>
      </div>
      <div className="panel-body" tabIndex={0} role="region" aria-label={t.files.content}>
        {error && <Failure error={error} />}
        {file.error && !f && <Failure error={file.error} retry={file.reload} />}
        {!f && !file.error && <Loading />}
        {f && (
          <>
            <dl className="facts">
              <dt>{t.files.type}</dt><dd>{f.type}</dd>
              <dt>{t.files.size}</dt><dd>{bytes(f.bytes)}</dd>
              <dt>{t.files.uploaded}</dt><dd>{clock(f.created_at * 1000)}</dd>
              {f.expires_at ? <><dt>{t.files.expires}</dt><dd>{clock(f.expires_at * 1000)}{'. '}<span className="dim">{t.files.expiresHint}</span></dd></> : null}
              <dt>{t.files.id}</dt><dd className="mono">{f.id}</dd>
              <dt>SHA-256</dt><dd className="mono">{f.sha256}</dd>
            </dl>
            <FileContent f={f} />
          </>
        )}
      </div>
    </aside>
  )
}

/** The content of a file: text, image, sound or PDF is shown, anything else can be saved. */
function FileContent({ f }: { f: StoredFile }) {
  const [asked, setAsked] = useState(false)
  const shows = (shownAs.test(f.type) && f.bytes <= mostShown) || asked
  const content = useLoad(async (signal) => {
    if (!shows) return undefined
    const r = await raw(api.GET('/v1/files/{file}/content', { params: { path: { file: f.id } }, parseAs: 'stream', signal }))
    const blob = new Blob([await r.arrayBuffer()], { type: f.type })
    return { blob, text: /^text\/|json$/.test(f.type) ? await blob.slice(0, mostText).text() : undefined }
  }, [f.id, shows])
  if (!shows) return <div><Button variant="default" onClick={() => setAsked(true)}>{t.files.load} ({bytes(f.bytes)})</Button></div>
  if (content.error) return <Failure error={content.error} retry={content.reload} />
  if (!content.data) return <Loading />
  return (
    <div className="column gap8">
      {content.data.text !== undefined && <div className="code" style={{ maxHeight: 'none' }} tabIndex={0}>{content.data.text}{f.bytes > mostText && '…'}</div>}
      <Media part={{ kind: 'file', mime: f.type, name: f.filename }} content={content.data.blob} />
    </div>
  )
}

/** How much of a text is drawn. */
const mostText = 200_000
