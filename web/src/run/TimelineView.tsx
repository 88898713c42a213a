import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { api, take } from '../api'
import { cost, count, duration } from '../format'
import { Empty, Status } from '../parts/common'
import { Icon } from '../parts/icons'
import { phaseText, t } from '../strings'
import { treeRows, type TreeRow } from './tree'
import { ended, type RunNode, type Timeline } from './useRun'

interface Props {
  data: Timeline
  now: number
  find: string
  /** The least length of the scale of time, in milliseconds. */
  span?: number
  chosen: { run: string; path: string }
  choose: (run: string, path: string) => void
  /** The nodes that the run shares with the one that it was forked from. */
  shared?: ReadonlySet<string>
}

/** The tree of a run's nodes with their times. */
export function TimelineView({ data, now, find, span = 1, chosen, choose, shared }: Props) {
  const [open, setOpen] = useState<ReadonlyMap<string, boolean>>(new Map())
  const inline = useChildNodes(data, open)
  const rows = useMemo(() => treeRows(data.run, data.nodes ?? [], data.children ?? [], open, find, (id) => inline.get(id)), [data, open, find, inline])
  const box = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 28, overscan: 12 })
  const range = { from: data.started, to: Math.max(ended(data.status) ? data.at : now, data.started + Math.max(span, 1)) }
  const at = rows.findIndex((r) => r.run === chosen.run && r.path === chosen.path && r.kind !== 'iteration')
  useEffect(() => {
    if (at >= 0) list.scrollToIndex(at, { align: 'auto' })
  }, [chosen.path, chosen.run])
  const toggle = (row: TreeRow, to = !row.open) => setOpen((o) => new Map(o).set(row.key, to))
  const pick = (row: TreeRow) => (row.kind === 'iteration' ? toggle(row) : choose(row.run, row.path))
  const onKey = (e: KeyboardEvent) => {
    const row = rows[at]
    const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0
    if (step) {
      let i = at + step
      while (rows[i] && rows[i].kind === 'iteration') i += step
      if (rows[i]) pick(rows[i])
    } else if (e.key === 'ArrowRight' && row?.opens) toggle(row, true)
    else if (e.key === 'ArrowLeft' && row?.opens) toggle(row, false)
    else return
    e.preventDefault()
  }
  if (rows.length === 0) return <Empty title={find ? t.run.noMatch : t.run.noNodes} />
  return (
    <>
      <div className="body" ref={box}>
        <div className="tree-row tree-head" aria-hidden="true">
          <span style={{ paddingLeft: 24 }}>{t.run.tree}</span>
          <span className="ticks">{[0, 0.25, 0.5, 0.75].map((x) => <span key={x}>{x ? duration((range.to - range.from) * x) : '0'}</span>)}</span>
          <span className="right">{t.run.duration}</span><span className="right">{t.runs.tokens}</span><span className="right">{t.run.cost}</span>
        </div>
        <div role="tree" aria-label={t.run.timeline} tabIndex={0} onKeyDown={onKey} style={{ height: list.getTotalSize(), position: 'relative' }}>
          {list.getVirtualItems().map((v) => (
            <Row key={rows[v.index].key} row={rows[v.index]} top={v.start} from={range.from} to={range.to} chosen={v.index === at} shared={rows[v.index].run === data.run && shared?.has(rows[v.index].path) === true} pick={pick} toggle={toggle} />
          ))}
        </div>
      </div>
      {data.total > (data.nodes ?? []).length && <div className="notice small">{(data.nodes ?? []).length} {t.run.of} {data.total} {t.run.notAll}</div>}
      <Legend nodes={data.nodes ?? []} />
    </>
  )
}

/** The colours of the bars that this run has. */
const Legend = memo(function Legend({ nodes }: { nodes: RunNode[] }) {
  const kinds = useMemo(() => [...new Set(nodes.flatMap((n) => (n.phases ?? []).map((p) => p.kind)))], [nodes])
  if (kinds.length < 2) return null
  return (
    <div className="bar foot" style={{ minHeight: 28 }}>
      <div className="legend" role="group" aria-label={t.run.legend}>{kinds.map((k) => <span key={k}><i className="swatch" data-k={k} />{phaseText[k] ?? k}</span>)}</div>
    </div>
  )
})

/** Loads the nodes of child runs that are open. */
function useChildNodes(data: Timeline, open: ReadonlyMap<string, boolean>): ReadonlyMap<string, RunNode[]> {
  const [nodes, setNodes] = useState<ReadonlyMap<string, RunNode[]>>(new Map())
  const wanted = [...open].filter(([k, v]) => v && !k.startsWith(data.run)).map(([k]) => k).join(' ')
  useEffect(() => {
    let stopped = false
    for (const id of wanted.split(' ').filter(Boolean)) {
      take(api.GET('/v1/runs/{run}/timeline', { params: { path: { run: id }, query: { limit: 20000 } } }))
        .then((r) => !stopped && setNodes((n) => new Map(n).set(id, r.nodes ?? [])))
        .catch(() => undefined)
    }
    return () => {
      stopped = true
    }
  }, [wanted, data.event])
  return nodes
}

interface RowProps {
  row: TreeRow
  top: number
  from: number
  to: number
  chosen: boolean
  shared: boolean
  pick: (row: TreeRow) => void
  toggle: (row: TreeRow) => void
}

const Row = memo(function Row({ row, top, from, to, chosen, shared, pick, toggle }: RowProps) {
  const n = row.node
  const took = n ? n.us / 1000 : row.child ? row.child.us / 1000 : 0
  return (
    <div role="treeitem" aria-level={row.depth + 1} aria-selected={chosen} aria-expanded={row.opens ? row.open : undefined} className="tree-row" style={{ position: 'absolute', top: 0, left: 0, transform: `translateY(${top}px)` }} onClick={() => pick(row)}>
      <span className="tree-name" style={{ paddingLeft: row.depth * 16 }}>
        {row.opens ? (
          <button className="twist" type="button" tabIndex={-1} aria-label={row.open ? t.run.collapse : t.run.expand} onClick={(e) => { e.stopPropagation(); toggle(row) }}>
            <Icon name={row.open ? 'down' : 'right'} size={12} />
          </button>
        ) : (
          <span className="twist none" />
        )}
        <span className="cut" title={row.path || row.name}>{row.kind === 'child' ? `↳ ${row.name}` : row.name}</span>
        <Status of={row.status} quiet />
        {row.iterations > 0 && <span className="chip">× {row.iterations}</span>}
        {n && n.attempts > 1 && <span className="chip" data-s="waiting">{t.node.attempt} {n.attempts}</span>}
        {n?.cached && <span className="chip" title={t.node.cached}>{t.run.cached}</span>}
        {shared && <span className="chip" title={t.run.sharedHint}>{t.run.shared}</span>}
        <span className="small dim cut">{row.type}</span>
      </span>
      <span className="lane">{n && bars(n, from, to)}</span>
      <span className="right small">{took > 0 ? duration(took) : ''}</span>
      <span className="right small">{row.tokens ? count(row.tokens) : ''}</span>
      <span className="right small">{row.cost ? cost(row.cost) : ''}</span>
    </div>
  )
})

function bars(n: RunNode, from: number, to: number) {
  const whole = to - from
  return (n.phases ?? []).map((p, i, all) => {
    const left = ((p.from - from) / whole) * 100
    const width = (((p.to || to) - p.from) / whole) * 100
    return <i key={i} data-k={p.kind} data-bad={(n.status === 'failed' || all.length > i + 1) && p.kind === 'run' && all[i + 1]?.kind === 'retry' || (n.status === 'failed' && i === all.length - 1)} style={{ left: `${left}%`, width: `${width}%` }} title={`${phaseText[p.kind] ?? p.kind}, ${duration((p.to || to) - p.from)}`} />
  })
}
