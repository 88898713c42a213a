import type { Schemas } from '../api'
import type { RunNode } from './useRun'

export interface TreeRow {
  key: string
  /** The run that the node is in. */
  run: string
  path: string
  name: string
  depth: number
  kind: 'node' | 'iteration' | 'child'
  node?: RunNode
  child?: Schemas['ChildRun']
  status: string
  type: string
  opens: boolean
  open: boolean
  iterations: number
  cost: number
  tokens: number
}

interface Branch {
  path: string
  node?: RunNode
  iterations: Map<string, Branch>
  inner: Branch[]
  children: Schemas['ChildRun'][]
  cost: number
  tokens: number
}

/** Builds the rows of a run's tree: nodes, the iterations of composites, and child runs. */
export function treeRows(run: string, nodes: RunNode[], children: Schemas['ChildRun'][], open: ReadonlyMap<string, boolean>, find: string, inline: (id: string) => RunNode[] | undefined): TreeRow[] {
  const roots: Branch[] = []
  const byPath = new Map<string, Branch>()
  for (const node of nodes) add(node)
  for (const c of children) byPath.get(c.node)?.children.push(c)
  roots.forEach(sum)
  const out: TreeRow[] = []
  const text = find.toLowerCase()
  roots.forEach((b) => emit(b, 0))
  return out

  function add(node: RunNode) {
    const b: Branch = { path: node.node, node, iterations: new Map(), inner: [], children: [], cost: node.usage.cost, tokens: node.usage.input + node.usage.output }
    byPath.set(node.node, b)
    const slash = node.node.lastIndexOf('/')
    if (slash < 0) return roots.push(b)
    const scope = node.node.slice(0, slash)
    const host = byPath.get(scope.slice(0, scope.lastIndexOf('#')))
    if (!host) return roots.push(b)
    let it = host.iterations.get(scope)
    if (!it) host.iterations.set(scope, (it = { path: scope, iterations: new Map(), inner: [], children: [], cost: 0, tokens: 0 }))
    it.inner.push(b)
  }

  function sum(b: Branch) {
    for (const x of [...b.iterations.values(), ...b.inner]) {
      sum(x)
      b.cost += x.cost
      b.tokens += x.tokens
    }
    for (const c of b.children) {
      b.cost += c.usage.cost
      b.tokens += c.usage.input + c.usage.output
    }
  }

  function matches(b: Branch): boolean {
    return !text || b.path.toLowerCase().includes(text) || (b.node?.type.toLowerCase().includes(text) ?? false) || [...b.iterations.values(), ...b.inner].some(matches)
  }

  function emit(b: Branch, depth: number) {
    if (!matches(b)) return
    const iteration = !b.node
    const kids = [...b.iterations.values(), ...b.inner]
    const opens = kids.length > 0 || b.children.length > 0
    const isOpen = opens && (open.get(run + b.path) ?? (text !== '' || (iteration ? true : b.iterations.size <= 3)))
    out.push({
      key: run + b.path, run, path: b.path, name: b.path.slice(iteration ? b.path.lastIndexOf('#') : b.path.lastIndexOf('/') + 1), depth, kind: iteration ? 'iteration' : 'node', node: b.node,
      status: b.node?.status ?? rolledUp(b), type: b.node?.type ?? '', opens, open: isOpen, iterations: b.iterations.size, cost: b.cost, tokens: b.tokens,
    })
    if (!isOpen) return
    kids.forEach((k) => emit(k, depth + 1))
    b.children.forEach((c) => emitChild(c, depth + 1))
  }

  function emitChild(c: Schemas['ChildRun'], depth: number) {
    const isOpen = open.get(c.run) ?? false
    out.push({ key: c.run, run: c.run, path: '', name: c.flow, depth, kind: 'child', child: c, status: c.status, type: c.run, opens: true, open: isOpen, iterations: 0, cost: c.usage.cost, tokens: c.usage.input + c.usage.output })
    if (!isOpen) return
    for (const r of treeRows(c.run, inline(c.run) ?? [], c.children ?? [], open, find, inline)) out.push({ ...r, depth: r.depth + depth + 1 })
  }
}

/** The status of an iteration: that of the worst of its nodes. */
function rolledUp(b: Branch): string {
  const all = b.inner.map((x) => x.node?.status ?? '')
  for (const s of ['failed', 'running', 'waiting', 'cancelled', 'pending']) if (all.includes(s)) return s
  return 'completed'
}
