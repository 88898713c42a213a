import '@xyflow/react/dist/base.css'
import { Background, BaseEdge, Handle, Position, ReactFlow, ReactFlowProvider, useReactFlow, useStore, ViewportPortal, type Edge, type EdgeProps, type Node, type NodeProps } from '@xyflow/react'
import { ActionIcon } from '@mantine/core'
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { api, take, type Schemas } from '../api'
import { Empty, Loading } from '../parts/common'
import { Icon } from '../parts/icons'
import { useQuery } from '../route'
import { statusText, t } from '../strings'
import { useLoad } from '../use'
import type { RunNode } from './useRun'

type Layout = Schemas['Layout']

interface Box extends Record<string, unknown> {
  path: string
  label: string
  type: string
  category: string
  status: string
  times: number
  body: boolean
  folded: number
  toggle?: (path: string) => void
  chosen: boolean
}

/** A node of the drawing, with its place on the whole canvas. */
interface Placed {
  path: string
  id: string
  x: number
  y: number
  w: number
  h: number
  label: string
  type: string
  category: string
  body: boolean
  folded: number
}

const mostMounted = 300

/** The graph of a run's flow, or of a flow. */
export default function Graph({ run, flow, layout, nodes, chosen, choose }: { run?: string; flow?: string; layout?: Layout; nodes?: RunNode[]; chosen: string; choose: (path: string) => void }) {
  const [query, set] = useQuery()
  const open = query.getAll('open')
  const fold = { fold: true, open }
  const drawn = useLoad(
    (signal) => (layout ? Promise.resolve({ layout }) : run ? take(api.GET('/v1/runs/{run}/graph', { params: { path: { run }, query: fold }, signal })) : take(api.GET('/v1/flows/{flow}/graph', { params: { path: { flow: flow! }, query: fold }, signal }))),
    [run, flow, layout, open.join()],
  )
  const kept = useRef<Layout>(undefined)
  if (drawn.data?.layout) kept.current = drawn.data.layout
  const opens = useRef(open)
  opens.current = open
  const toggle = useCallback((path: string) => set({ open: opens.current.includes(path) ? opens.current.filter((x) => x !== path) : [...opens.current, path] }), [set])
  if (drawn.error && !drawn.data) return <Empty title={t.run.noGraph} hint={drawn.error.message} />
  if (!kept.current) return <Loading />
  return (
    <ReactFlowProvider>
      <Canvas layout={kept.current} nodes={nodes} chosen={chosen} choose={choose} toggle={layout ? undefined : toggle} />
    </ReactFlowProvider>
  )
}

function Canvas({ layout, nodes, chosen, choose, toggle }: { layout: Layout; nodes?: RunNode[]; chosen: string; choose: (path: string) => void; toggle?: (path: string) => void }) {
  const placed = useMemo(() => place(layout), [layout])
  const states = useMemo(() => statesOf(nodes), [nodes])
  const chosenBox = drawingPath(chosen)
  const large = placed.boxes.length > mostMounted
  const visible = useVisible(placed.boxes, large)
  const boxes = useMemo(() => visible.map((b) => boxNode(b, states.get(b.path), nodes !== undefined, isChosen(b, chosenBox), toggle)), [visible, states, chosenBox, nodes !== undefined, toggle])
  const cached = useStable(boxes)
  const ids = useMemo(() => new Set(visible.map((b) => b.path)), [visible])
  const edges = useMemo(() => (large ? [] : placed.edges.filter((e) => ids.has(e.source) && ids.has(e.target))), [placed, ids, large])
  return (
    <div className="graph" role="application" aria-label={t.run.graph}>
      <ReactFlow
        nodes={cached} edges={edges} nodeTypes={nodeTypes} edgeTypes={edgeTypes} nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} elementsSelectable
        onlyRenderVisibleElements={!large} minZoom={0.02} maxZoom={2} proOptions={{ hideAttribution: true }} onNodeClick={(_, n) => choose(latest(n.id, states))} zoomOnDoubleClick={false}
      >
        <Background gap={20} size={1} color="var(--line)" />
        {large && <Far boxes={placed.boxes} edges={placed.edges} states={states} run={nodes !== undefined} />}
        <Fit width={layout.width} height={layout.height} />
      </ReactFlow>
    </div>
  )
}

/** Which nodes have elements of their own: all of a small flow, and of a large one those in view while they are few. */
function useVisible(boxes: Placed[], large: boolean): Placed[] {
  const view = useStore((s) => (large ? `${s.transform.map((x) => x.toFixed(2)).join()},${s.width},${s.height}` : ''))
  return useMemo(() => {
    if (!large) return boxes
    const [x, y, zoom, width, height] = view.split(',').map(Number)
    if (!width || zoom < 0.4) return []
    const in_ = boxes.filter((b) => (b.x + b.w) * zoom + x > 0 && b.x * zoom + x < width && (b.y + b.h) * zoom + y > 0 && b.y * zoom + y < height)
    return in_.length <= mostMounted ? in_ : []
  }, [boxes, large, view])
}

/** Keeps node objects that did not change, so that one event draws one node anew. */
function useStable(next: Node<Box>[]): Node<Box>[] {
  const [known] = useState(() => new Map<string, Node<Box>>())
  return useMemo(
    () =>
      next.map((n) => {
        const old = known.get(n.id)
        if (old && old.data.status === n.data.status && old.data.times === n.data.times && old.data.chosen === n.data.chosen && old.data.folded === n.data.folded && old.data.body === n.data.body && old.width === n.width && old.height === n.height && old.position.x === n.position.x && old.position.y === n.position.y) return old
        known.set(n.id, n)
        return n
      }),
    [next, known],
  )
}

const shallow = (a: number[], b: number[]) => a[0] === b[0] && a[1] === b[1]

/** The buttons of the drawing. It is fitted by the size of the layout: a large one has no elements to measure. */
function Fit({ width, height }: { width: number; height: number }) {
  const { setViewport, zoomIn, zoomOut } = useReactFlow()
  const ready = useStore((s) => s.width > 0 && s.panZoom !== null)
  const [boxWidth, boxHeight] = useStore((s) => [s.width, s.height], shallow)
  const fit = () => {
    const zoom = Math.max(0.02, Math.min(1, boxWidth / (width + 64), boxHeight / (height + 64)))
    void setViewport({ x: (boxWidth - width * zoom) / 2, y: (boxHeight - height * zoom) / 2, zoom })
  }
  useEffect(() => {
    if (ready) fit()
  }, [ready, width, height])
  const far = useStore((s) => s.transform[2] < 0.4)
  useEffect(() => {
    document.querySelector('.graph')?.classList.toggle('far', far)
  }, [far])
  return (
    <div className="graph-tools">
      <ActionIcon variant="default" aria-label={t.run.zoomIn} onClick={() => zoomIn()}>+</ActionIcon>
      <ActionIcon variant="default" aria-label={t.run.zoomOut} onClick={() => zoomOut()}>−</ActionIcon>
      <ActionIcon variant="default" aria-label={t.run.fit} onClick={fit}><Icon name="fit" /></ActionIcon>
      {far && <span className="small dim">{t.run.zoomHint}</span>}
    </div>
  )
}

/** Everything of a large flow in a few paths, one for each status. */
const Far = memo(function Far({ boxes, edges, states, run }: { boxes: Placed[]; edges: Edge[]; states: ReadonlyMap<string, State>; run: boolean }) {
  const lines = useMemo(() => edges.map((e) => (e.data as { d: string }).d).join(''), [edges])
  const by = new Map<string, string>()
  for (const b of boxes) {
    const s = b.body ? 'body' : run ? (states.get(b.path)?.status ?? 'pending') : 'none'
    by.set(s, (by.get(s) ?? '') + `M${b.x} ${b.y}h${b.w}v${b.h}h${-b.w}z`)
  }
  return (
    <ViewportPortal>
      <svg className="graph-far" width="1" height="1" aria-hidden="true">
        <path className="line" d={lines} />
        {[...by].map(([s, d]) => <path key={s} data-s={s} d={d} />)}
      </svg>
    </ViewportPortal>
  )
})

const BoxView = memo(function BoxView({ data }: NodeProps<Node<Box>>) {
  return (
    <div className="gnode" data-s={data.status} data-body={data.body} data-folded={data.folded > 0} data-chosen={data.chosen} data-c={data.category} title={`${data.label}${data.status ? ': ' + (statusText[data.status] ?? data.status) : ''}`}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <b className="cut">{data.label}</b>
      <span className="cut">{data.type}{data.times > 1 && ` ×${data.times}`}</span>
      {data.toggle && (data.body || data.folded > 0) && (
        <button className="fold nodrag nopan" type="button" aria-expanded={data.body} aria-label={data.body ? `${t.run.fold} ${data.label} −` : `${t.run.unfold} ${data.label} +${data.folded}`} onClick={(e) => { e.stopPropagation(); data.toggle!(data.path) }}>{data.body ? '−' : `+${data.folded}`}</button>
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  )
})

function Line({ data, label, labelX, labelY }: EdgeProps & { labelX?: number; labelY?: number }) {
  const d = data as { d: string; kind: string; x: number; y: number }
  return <BaseEdge path={d.d} className={`gline ${d.kind}`} label={label} labelX={labelX ?? d.x} labelY={labelY ?? d.y} labelShowBg={false} markerEnd="" />
}

const nodeTypes = { box: BoxView }
const edgeTypes = { line: Line }

function place(l: Layout): { boxes: Placed[]; edges: Edge[] } {
  const boxes: Placed[] = []
  const edges: Edge[] = []
  const add = (l: Layout, prefix: string, x: number, y: number) => {
    const list = l.nodes ?? []
    for (const n of list) {
      boxes.push({ path: prefix + n.id, id: n.id, x: x + n.x, y: y + n.y, w: n.width, h: n.height, label: n.id, type: n.label, category: n.category, body: !!n.body, folded: n.folded ?? 0 })
      if (n.body) add(n.body, `${prefix}${n.id}/`, x + n.x + (n.bodyX ?? 0), y + n.y + (n.bodyY ?? 0))
    }
    ;(l.edges ?? []).forEach((e, i) => {
      const points = (e.points ?? []).map((p) => [p![0] + x, p![1] + y])
      edges.push({ id: `${prefix}${i}`, source: prefix + list[e.from].id, target: prefix + list[e.to].id, type: 'line', label: e.label, data: { d: curve(points), kind: e.kind, x: points[0][0] + (points[1][0] - points[0][0]) * 0.3, y: points[0][1] + (points[1][1] - points[0][1]) * 0.42 } })
    })
  }
  add(l, '', 0, 0)
  return { boxes, edges }
}

function curve(p: number[][]): string {
  let d = `M${p[0][0]} ${p[0][1]}`
  for (let i = 1; i < p.length; i++) {
    const [a, b] = [p[i - 1], p[i]]
    const bend = (b[1] - a[1]) / 2
    d += a[0] === b[0] ? `L${b[0]} ${b[1]}` : `C${a[0]} ${a[1] + bend} ${b[0]} ${b[1] - bend} ${b[0]} ${b[1]}`
  }
  return d
}

interface State {
  status: string
  times: number
  last: string
  /** How often the body of a composite ran. */
  iterations?: number
}

/** The path of a node in the drawing: without the numbers of iterations. */
function drawingPath(path: string): string {
  return path.includes('#') ? path.replace(/#\d+\//g, '/') : path
}

/** The state of each box: in bodies the worst of all iterations. */
function statesOf(nodes: RunNode[] | undefined): ReadonlyMap<string, State> {
  const out = new Map<string, State>()
  const order = ['failed', 'running', 'waiting', 'cancelled', 'completed', 'pending', 'skipped', 'not_needed']
  for (const n of nodes ?? []) {
    const key = drawingPath(n.node)
    const s = out.get(key)
    if (!s) out.set(key, { status: n.status, times: 1, last: n.node })
    else {
      s.times++
      if (order.indexOf(n.status) <= order.indexOf(s.status)) {
        s.status = n.status
        s.last = n.node
      }
    }
  }
  for (const [path, n] of iterationsOf(nodes ?? [])) {
    const s = out.get(path)
    if (s) s.iterations = n
  }
  return out
}

/** How often the body of each composite ran, by its path in the drawing. */
function iterationsOf(nodes: RunNode[]): Map<string, number> {
  const seen = new Map<string, Set<string>>()
  for (const n of nodes) {
    const scope = n.node.slice(0, Math.max(0, n.node.lastIndexOf('/')))
    const hash = scope.lastIndexOf('#')
    if (hash < 0) continue
    const path = drawingPath(scope.slice(0, hash) + '/').slice(0, -1)
    let set = seen.get(path)
    if (!set) seen.set(path, (set = new Set()))
    set.add(scope)
  }
  return new Map([...seen].map(([path, set]) => [path, set.size]))
}

function latest(path: string, states: ReadonlyMap<string, State>): string {
  return states.get(path)?.last ?? path
}

/** A folded box is chosen if a node of its body is. */
function isChosen(b: Placed, chosen: string): boolean {
  return b.path === chosen || (b.folded > 0 && chosen.startsWith(b.path + '/'))
}

function boxNode(b: Placed, s: State | undefined, run: boolean, chosen: boolean, toggle?: (path: string) => void): Node<Box> {
  return {
    id: b.path, type: 'box', position: { x: b.x, y: b.y }, width: b.w, height: b.h, initialWidth: b.w, initialHeight: b.h, zIndex: b.body ? 0 : 1,
    handles: [{ type: 'target', position: Position.Top, x: b.w / 2, y: 0, width: 1, height: 1 }, { type: 'source', position: Position.Bottom, x: b.w / 2, y: b.h, width: 1, height: 1 }],
    data: { path: b.path, label: b.label, type: b.type, category: b.category, status: run ? (s?.status ?? 'pending') : '', times: Math.max(s?.times ?? 0, s?.iterations ?? 0), body: b.body, folded: b.folded, toggle, chosen },
    ariaLabel: `${b.label}${s ? ': ' + (statusText[s.status] ?? s.status) : ''}`,
  }
}
