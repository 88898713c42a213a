import { ActionIcon, Button, TextInput } from '@mantine/core'
import { useState } from 'react'
import { api, WeirError, type Schemas } from '../api'
import { useCaller, useMay } from '../caller'
import { Empty, Failure, Section } from '../parts/common'
import { Icon } from '../parts/icons'
import { t } from '../strings'
import type { LoadedFlow } from './Flows'

type Grants = Schemas['Grants']

const kinds = ['providers', 'tools', 'servers', 'executors', 'hosts', 'secrets', 'flows'] as const

/** Who may use a flow that was put, and what its runs may use. */
export default function FlowAccess({ loaded, reload }: { loaded: LoadedFlow; reload: () => void }) {
  const d = loaded.flow.deployed
  const caller = useCaller()
  const admin = useMay('admin')
  const owns = useMay('start') && d?.owner === caller.user
  const [error, setError] = useState<WeirError>()
  if (!d) return <Empty art="flows" title={t.access.file} hint={t.access.fileHint} />
  const params = { path: { flow: loaded.flow.name }, header: { 'If-Match': loaded.tag } }
  const change = async (f: () => Promise<unknown>) => {
    setError(undefined)
    try {
      await f()
    } catch (e) {
      setError(e as WeirError)
    }
    reload()
  }
  const setUsers = (users: string[]) => change(() => api.PUT('/v1/flows/{flow}/access', { params, body: { users } }))
  const setGrants = (grants: Grants) => change(() => api.PUT('/v1/flows/{flow}/grants', { params, body: grants }))
  return (
    <div className="body pad" tabIndex={0} role="region" aria-label={t.access.title}>
      <div className="narrow column" style={{ gap: 24 }}>
        {error && <Failure error={error} />}
        <Section title={t.access.users}>
          <div className="column gap8">
            <div>{t.access.owner}: <b>{d.owner || t.access.process}</b></div>
            <Names label={t.access.users} add={t.access.addUser} hint={t.access.everyone} list={d.access ?? []} none={t.access.onlyOwner} change={admin || owns ? setUsers : undefined} shown={(x) => (x === '*' ? t.access.all : x)} />
          </div>
        </Section>
        <Section title={t.access.grants}>
          <div className="column gap">
            <div className="dim">{t.access.grantsHint}</div>
            {kinds.map((k) => (
              <div className="column gap4" key={k}>
                <span className="small strong">{t.access[k]}</span>
                <Names label={t.access[k]} add={t.access.add} hint={t.access[`${k}Hint`]} list={d.grants[k] ?? []} none={t.access.noGrant} change={admin ? (next) => setGrants({ ...d.grants, [k]: next }) : undefined} />
              </div>
            ))}
          </div>
        </Section>
      </div>
    </div>
  )
}

/** A list of names that can be added to and removed from. */
function Names({ label, add, hint, list, none, change, shown = (x) => x }: { label: string; add: string; hint: string; list: string[]; none: string; change?: (next: string[]) => Promise<void>; shown?: (x: string) => string }) {
  const [text, setText] = useState('')
  const fresh = text.trim()
  return (
    <div className="row wrap" role="group" aria-label={label}>
      {list.length === 0 && <span className="dim">{none}</span>}
      {list.map((x) => (
        <span key={x} className="chip label-chip">
          <span>{shown(x)}</span>
          {change && <ActionIcon size={16} aria-label={`${t.files.remove} ${x}`} onClick={() => void change(list.filter((y) => y !== x))}><Icon name="close" size={12} /></ActionIcon>}
        </span>
      ))}
      {change && (
        <form className="row" onSubmit={(e) => { e.preventDefault(); if (fresh && !list.includes(fresh)) void change([...list, fresh]).then(() => setText('')) }}>
          <TextInput aria-label={`${add}: ${label}`} placeholder={hint} value={text} onChange={(e) => setText(e.currentTarget.value)} style={{ width: 176 }} />
          <Button type="submit" variant="default" disabled={!fresh || list.includes(fresh)}>{add}</Button>
        </form>
      )}
    </div>
  )
}
