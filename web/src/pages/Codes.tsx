import { useEffect, useRef } from 'react'
import { useCodes } from '../codes'
import { Empty, LoadingRows, Ticks } from '../parts/common'
import { href, useQuery, useRoute } from '../route'
import { t } from '../strings'

/** What the codes of errors mean and what to do. The address may name one. */
export default function Codes() {
  const { path } = useRoute()
  const [query, set] = useQuery()
  const codes = useCodes()
  const find = (query.get('find') ?? '').toLowerCase()
  const list = [...(codes?.values() ?? [])].filter((c) => !find || `${c.code} ${c.meaning} ${c.remedy}`.toLowerCase().includes(find))
  const chosen = useRef<HTMLElement>(null)
  useEffect(() => void chosen.current?.scrollIntoView({ block: 'center' }), [path[1], codes])
  return (
    <>
      <div className="head">
        <h1 className="grow">{t.nav.codes}</h1>
        <input className="select search" type="search" aria-label={t.codes.find} placeholder={t.codes.find} value={query.get('find') ?? ''} onChange={(e) => set({ find: e.currentTarget.value })} />
      </div>
      <div className="body pad" tabIndex={0} role="region" aria-label={t.nav.codes}>
        {!codes && <LoadingRows />}
        {codes && list.length === 0 && <Empty title={t.codes.none} />}
        <div className="narrow column gap8">
          {list.map((c) => (
            <article key={c.code} ref={c.code === path[1] ? chosen : undefined} className="card column gap4" style={c.code === path[1] ? { borderColor: 'var(--run)', background: 'var(--chosen)' } : undefined}>
              <a className="mono strong" href={href(['codes', c.code])}>{c.code}</a>
              <div><Ticks text={c.meaning} /></div>
              <div className="dim"><Ticks text={c.remedy} /></div>
            </article>
          ))}
        </div>
      </div>
    </>
  )
}
