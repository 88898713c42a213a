import { ActionIcon, Button, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { api, raw, type operations, type Schemas } from '../api'
import { bytes, plain } from '../format'
import { save } from '../save'
import { t } from '../strings'
import { CopyButton } from './common'
import { Icon } from './icons'
import { JsonTree } from './JsonTree'
import { Media, MessageView, type Message } from './MessageView'

export type Shown = Schemas['ShownValue']

/** Where the whole of a value is. */
export interface Source {
  run: string
  node: string
  at: number
  part: Part
}

type Part = operations['getNodeValue']['parameters']['query']['part']

async function whole(s: Source, name: string): Promise<string> {
  const query = { node: s.node, part: s.part, name, at: s.at || undefined }
  return (await raw(api.GET('/v1/runs/{run}/value', { params: { path: { run: s.run }, query }, parseAs: 'stream' }))).text()
}

/** A named value. A large one is its beginning, with the whole on request. */
export function Value({ value, source, index }: { value: Shown; source?: Source; index?: number }) {
  const [full, setFull] = useState<unknown>()
  const cut = value.value === null && value.excerpt !== '' && full === undefined
  const v = full !== undefined ? full : value.value
  const name = index === undefined ? value.name : String(index)
  return (
    <div className="value">
      <header>
        <b className="cut">{value.name}</b>
        <span className="dim">{value.deleted ? t.node.deleted : bytes(value.size)}</span>
        {value.template && <span className="chip" title={t.node.templateHint}>{t.node.template}</span>}
        {value.computed && <span className="chip" title={t.node.computedHint}>{t.node.computed}</span>}
        <span className="grow" />
        {source && value.size > 16384 && (
          <Tooltip label={t.state.download}>
            <ActionIcon size={20} aria-label={`${t.state.download} ${value.name}`} onClick={async () => save(`${value.name}.json`, await whole(source, name))}>
              <Icon name="download" size={14} />
            </ActionIcon>
          </Tooltip>
        )}
        {!cut && <CopyButton text={() => plain(v)} label={`${t.state.copy} ${value.name}`} />}
      </header>
      {cut ? (
        <>
          <pre tabIndex={0}>{value.excerpt}…</pre>
          {source && value.size < 4 << 20 && (
            <Button variant="default" m={8} onClick={async () => setFull(JSON.parse(await whole(source, name)))}>
              {t.state.whole} ({bytes(value.size)})
            </Button>
          )}
        </>
      ) : (
        <Content value={v} />
      )}
    </div>
  )
}

/** Text as text, anything else as a tree. HTML is text. */
export function Content({ value }: { value: unknown }) {
  if (value === '') return <pre className="dim">{t.node.emptyText}</pre>
  if (typeof value === 'string') {
    return <pre tabIndex={0}>{value.length > 200000 ? value.slice(0, 200000) + '…' : value}</pre>
  }
  if (isMessage(value)) return <div style={{ padding: 8 }}><MessageView message={value} /></div>
  if (isFile(value)) return <div style={{ padding: 8 }}><Media part={value} /></div>
  if (value === null || typeof value !== 'object') return <pre>{JSON.stringify(value)}</pre>
  return <JsonTree value={value} />
}

function isMessage(v: unknown): v is Message {
  return typeof v === 'object' && v !== null && typeof (v as Message).role === 'string' && ('text' in v || 'calls' in v)
}

/** A file or image as a value. */
function isFile(v: unknown): v is { kind: string; mime?: string; data: string } {
  return typeof v === 'object' && v !== null && typeof (v as { data: unknown }).data === 'string' && typeof (v as { mime: unknown }).mime === 'string'
}

export function Values({ list, source, none }: { list: Shown[]; source?: Source; none: string }) {
  if (list.length === 0) return <div className="dim">{none}</div>
  return (
    <>
      {list.map((v, i) => (
        <Value key={i} value={v} source={source} />
      ))}
    </>
  )
}
