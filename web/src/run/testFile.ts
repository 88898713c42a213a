import { api, take, type Schemas } from '../api'

/** What a test expects of the call that was played. */
export interface Expected {
  node: string
  call: string
  /** The answer that was played. */
  text: string
  /** The last message and the instructions with which it was played; empty if they are not the last message, or none. */
  last: string
  system: string
}

interface Answer {
  message?: { text?: string; reasoning?: string; calls?: { name: string; arguments?: string }[] }
}

/** The test of a flow that begins as a run did, has the model answer as it did except at the call that was played, and expects that call to be made as it was played. */
export async function testFile(run: string, expected: Expected): Promise<{ flow: string; text: string }> {
  const of = { path: { run } }
  const timeline = await take(api.GET('/v1/runs/{run}/timeline', { params: { ...of, query: { limit: 20000 } } }))
  const nodes = timeline.nodes ?? []
  const script: Record<string, unknown[]> = {}
  for (const { node } of nodes.filter((n) => n.usage.calls > 0)) {
    const { calls } = await take(api.GET('/v1/runs/{run}/calls', { params: { ...of, query: { node } } }))
    script[node] = (calls ?? []).map((c) => (c.call === expected.call ? expected.text : answerOf(c)))
  }
  const answers: Record<string, unknown[]> = {}
  for (const { node } of nodes.filter((n) => n.phases?.some((p) => ['input', 'approval', 'event'].includes(p.kind) && p.to > 0))) {
    const { waits } = await take(api.GET('/v1/runs/{run}/node', { params: { ...of, query: { node } } }))
    answers[node] = (waits ?? []).filter((w) => w.answered).map((w) => w.answer.value)
  }
  const inputs = Object.fromEntries((timeline.inputs ?? []).map((v) => [v.name, v.value]))
  const request = { ...(expected.last ? { last: expected.last } : {}), ...(expected.system ? { system: expected.system } : {}) }
  const members: [string, object][] = [['inputs', inputs], ['script', script], ['answers', answers], ['expect', { requests: { $subset: [request] } }]]
  const lines = members.filter(([, v]) => Object.keys(v).length > 0).map(([name, v]) => `    ${name}: ${JSON.stringify(v)}\n`)
  return { flow: timeline.flow, text: `# The name of the file of the flow, in the folder of this file.\nflow: ${JSON.stringify(`${timeline.flow}.yaml`)}\ntests:\n  - name: ${JSON.stringify(`${expected.node} as it was played from ${run}`)}\n${lines.join('')}` }
}

function answerOf(c: Schemas['CallReport']): unknown {
  if (c.error) return { error: c.error.code }
  const m = (c.answer as Answer | null)?.message
  if (!m?.calls?.length && !m?.reasoning) return m?.text ?? ''
  return { text: m.text ?? '', ...(m.reasoning ? { reasoning: m.reasoning } : {}), ...(m.calls?.length ? { calls: m.calls.map((x) => ({ tool: x.name, arguments: x.arguments ?? '{}' })) } : {}) }
}
