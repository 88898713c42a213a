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
assert.deepEqual(kinds, ['RUN_STARTED', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'STEP_FINISHED', 'TEXT_MESSAGE_END', 'STATE_SNAPSHOT', 'RUN_FINISHED'])
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
