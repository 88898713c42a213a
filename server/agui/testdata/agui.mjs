// Drives the official client of AG-UI.
import assert from 'node:assert/strict'
import { HttpAgent } from '@ag-ui/client'

const agent = (flow) => new HttpAgent({ url: `${process.env.WEIR_URL}/agui/${flow}`, headers: { Authorization: `Bearer ${process.env.WEIR_TOKEN}` } })
const say = async (a, text) => {
  const kinds = []
  a.addMessage({ id: crypto.randomUUID(), role: 'user', content: text })
  await a.runAgent({}, { onEvent: ({ event }) => { kinds.push(event.type) } })
  return kinds.filter((k, i) => k !== kinds[i - 1])
}

// Two turns of a thread.
const talk = agent('talk')
const kinds = await say(talk, 'Hello')
assert.deepEqual(kinds, ['RUN_STARTED', 'STATE_SNAPSHOT', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'STEP_FINISHED', 'TEXT_MESSAGE_END', 'RUN_FINISHED'])
assert.equal(talk.messages.at(-1).content, '1: Hello')
assert.deepEqual(talk.state, { mood: 'calm' })
await say(talk, 'Again')
assert.equal(talk.messages.at(-1).content, '3: Again')

// Tools of the server.
const tool = agent('tool')
await say(tool, 'What is the time?')
const [call] = tool.messages.find((m) => m.toolCalls)?.toolCalls ?? []
assert.equal(call.function.name, 'memoryRead')
assert.equal(tool.messages.find((m) => m.role === 'tool').toolCallId, call.id)
assert.match(tool.messages.at(-1).content, /done/)

// Several interrupts at once.
const ask = agent('ask')
await say(ask, 'Order')
assert.deepEqual(ask.pendingInterrupts.map((i) => i.message).sort(), ['How many?', 'Which colour?'])
const resume = ask.pendingInterrupts.map((i) => ({ interruptId: i.id, status: 'resolved', payload: i.message === 'How many?' ? 40 : 'red' }))
await ask.runAgent({ resume })
assert.equal(ask.messages.at(-1).content, '40 red')
assert.deepEqual(ask.pendingInterrupts, [])

// State: a snapshot, and what nodes change of it.
const steps = agent('steps')
const states = []
steps.addMessage({ id: 'm', role: 'user', content: 'Go' })
await steps.runAgent({}, {
  onStateSnapshotEvent: ({ event }) => { states.push(event.snapshot) },
  onStateDeltaEvent: ({ event }) => { states.push(event.delta) },
})
assert.deepEqual(states[0], { notes: [], mood: { 'a/b': 'calm' } })
assert.deepEqual(states.slice(1).flat().filter((o) => o.path.startsWith('/mood')), [
  { op: 'replace', path: '/mood/a~1b', value: 'glad' }, { op: 'add', path: '/mood/c', value: 1 }])
assert.deepEqual(steps.state, { notes: ['one', 'two'], mood: { 'a/b': 'glad', c: 1 } })

// Images.
const see = agent('see')
await say(see, [{ type: 'text', text: 'Seen' }, { type: 'image', source: { type: 'data', mimeType: 'image/png', value: process.env.PNG } }])
assert.equal(see.messages.at(-1).content, `Seen: image/png of ${Buffer.from(process.env.PNG, 'base64').length} bytes`)
await say(see, 'Again')
assert.equal(see.messages.at(-1).content, '3: Again')

// Reasoning.
const think = agent('talk')
const thought = await say(think, 'Think')
assert.deepEqual(thought.filter((k) => k.startsWith('REASONING') || k.startsWith('TEXT')), ['REASONING_START', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END',
  'REASONING_END', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'])
assert.deepEqual(think.messages.slice(-2).map((m) => [m.role, m.content]), [['reasoning', 'It is a question of berths.'], ['assistant', 'Berth 4.']])
await say(think, 'Next')
assert.equal(think.messages.at(-1).content, '3: Next')

// Tools of the client: one and several calls, twice in a thread, with a node that is a model call, and an agent.
const tools = [{ name: 'show', description: 'Shows something.', parameters: { type: 'object', properties: { what: { type: 'string' } } } }]
const callsOf = (a) => a.messages.flatMap((m) => m.toolCalls ?? [])
for (const flow of ['talk', 'work']) {
  const own = agent(flow)
  let seen = 0
  for (const wanted of [['map'], ['map', 'crane']]) {
    let outcome
    const subscriber = { onRunFinishedEvent: ({ event }) => { outcome = event.outcome } }
    own.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'Show ' + wanted.join(' ') })
    await own.runAgent({ tools }, subscriber)
    const calls = callsOf(own).slice(seen)
    seen += calls.length
    assert.deepEqual(calls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]), wanted.map((what) => ['show', { what }]))
    assert.deepEqual(outcome, { type: 'success', pendingToolCallIds: calls.map((c) => c.id) })
    for (const c of calls) own.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: c.id, content: 'seen ' + JSON.parse(c.function.arguments).what })
    await own.runAgent({}, subscriber)
    assert.equal(outcome.type, 'success')
    assert.equal(outcome.pendingToolCallIds, undefined)
    assert.equal(own.messages.at(-1).content, 'Shown: seen ' + wanted.at(-1))
    assert.equal(callsOf(own).length, seen)
  }
}

// A call of the client beside a question.
const both = agent('both')
both.addMessage({ id: 'm', role: 'user', content: 'Show map' })
await both.runAgent({ tools })
const [mine] = callsOf(both)
assert.deepEqual(both.pendingInterrupts.map((i) => i.message), ['How many?'])
await both.runAgent({ tools, resume: [{ interruptId: both.pendingInterrupts[0].id, status: 'resolved', payload: 4 }] })
assert.deepEqual([callsOf(both).length, both.pendingInterrupts.length], [1, 0])
both.addMessage({ id: 'o', role: 'tool', toolCallId: mine.id, content: 'seen' })
let result
await both.runAgent({ tools }, { onRunFinishedEvent: ({ event }) => { result = event.result } })
assert.deepEqual(result, { all: 'Shown: seen 4' })

// A cancelled question cancels the round.
const cancelled = agent('ask')
await say(cancelled, 'Order')
let outcome
await cancelled.runAgent({ resume: cancelled.pendingInterrupts.map((i) => ({ interruptId: i.id, status: 'cancelled' })) }, { onRunFinishedEvent: (e) => { outcome = e.event.outcome?.type } })
assert.equal(outcome, 'cancelled')

// A flow that fails.
const broken = agent('broken')
let code
await broken.runAgent({}, {}).catch(() => {})
broken.addMessage({ id: 'x', role: 'user', content: 'x' })
await broken.runAgent({}, { onRunErrorEvent: ({ event }) => { code = event.code } }).catch(() => {})
assert.equal(code, 'no_berth')
console.log('ok')
process.exit(0)
