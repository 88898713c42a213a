// Drives the official client through responses and conversations.
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: process.env.WEIR_URL + '/v1', apiKey: process.env.WEIR_TOKEN })

// Two turns by previous_response_id.
const first = await client.responses.create({ model: 'talk', input: 'Hello', instructions: 'Be brief.', metadata: { order: '17' } })
assert.equal(first.output_text, '1: Hello')
assert.equal(first.status, 'completed')
assert.deepEqual(first.metadata, { order: '17' })
assert.equal(first.usage.total_tokens, 12)
const second = await client.responses.create({ model: 'talk', input: [{ role: 'user', content: 'Again' }], previous_response_id: first.id })
assert.equal(second.output_text, '3: Again')
assert.equal(second.previous_response_id, first.id)
const other = await client.responses.create({ model: 'talk', input: 'Otherwise', previous_response_id: first.id })
assert.equal(other.output_text, '3: Otherwise') // a fork
assert.deepEqual((await client.responses.retrieve(second.id)).output, second.output)

// The same by resending what was said.
const resent = await client.responses.create({
  model: 'talk', store: false,
  input: [{ role: 'user', content: 'Hello' }, ...first.output, { role: 'user', content: 'Again' }, ...second.output, { role: 'user', content: 'Third' }],
}).withResponse()
assert.equal(resent.data.output_text, '5: Third')
await assert.rejects(client.responses.retrieve(resent.data.id), OpenAI.NotFoundError)

// Streamed.
const stream = client.responses.stream({ model: 'talk', input: 'Streamed', previous_response_id: second.id })
const kinds = []
let text = ''
for await (const e of stream) {
  kinds.push(e.type)
  if (e.type === 'response.output_text.delta') text += e.delta
}
assert.match(text, /: Streamed$/)
assert.equal((await stream.finalResponse()).output_text, text)
assert.deepEqual(kinds.filter((k, i) => k !== kinds[i - 1]), [
  'response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added', 'response.output_text.delta',
  'response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.completed',
])

// In the background: a durable run. The question of the flow is the answer, and the next
// response answers it.
let asked = await client.responses.create({ model: 'ask', input: 'Order 40 chairs', background: true })
while (asked.status === 'queued' || asked.status === 'in_progress') asked = await client.responses.retrieve(asked.id)
assert.equal(asked.output_text, 'Approve?\n\n(approve, reject)')
const answered = await client.responses.create({ model: 'ask', input: 'approve', previous_response_id: asked.id })
assert.equal(answered.output_text, 'You said approve.')
let waits = await client.responses.create({ model: 'waits', input: 'x', background: true })
assert.ok(['queued', 'in_progress'].includes(waits.status))
waits = await client.responses.cancel(waits.id)
assert.equal(waits.status, 'cancelled')
assert.equal((await client.responses.retrieve(waits.id)).status, 'cancelled')

// A stored response is streamed, from any of its events on; in the background as it is made.
const eventsOf = async (stream) => { const out = []; for await (const e of stream) out.push(e); return out }
const whole = await eventsOf(await client.responses.retrieve(second.id, { stream: true }))
assert.deepEqual(whole.map((e) => e.sequence_number), whole.map((_, i) => i))
assert.deepEqual([whole[0].type, whole[0].response.status, whole.at(-1).type], ['response.created', 'in_progress', 'response.completed'])
assert.deepEqual(whole.at(-1).response.output, second.output)
assert.equal(whole.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join(''), second.output_text)
for (let after = 0; after <= whole.length; after++) {
  assert.deepEqual(await eventsOf(await client.responses.retrieve(second.id, { stream: true, starting_after: after })), whole.slice(after + 1))
}
const live = await eventsOf(await client.responses.create({ model: 'talk', input: 'Later', background: true, stream: true }))
assert.equal(live.at(-1).response.output_text ?? live.at(-1).response.output[0].content[0].text, '1: Later')
assert.deepEqual(await eventsOf(await client.responses.retrieve(live[0].response.id, { stream: true, starting_after: 2 })), live.slice(3))
const long = Array.from({ length: 40 }, (_, i) => `word${i}`).join(' ')
const inPieces = client.responses.stream({ model: 'talk', input: long, background: true })
const numbers = []
for await (const e of inPieces) numbers.push(e.sequence_number)
const complete = await inPieces.finalResponse()
assert.equal(complete.output_text, '1: ' + long)
assert.deepEqual(numbers, numbers.map((_, i) => i))
assert.ok(numbers.length > 20)
for (const after of [0, 4, 9, numbers.length - 2]) {
  const resumed = client.responses.stream({ response_id: complete.id, starting_after: after })
  const rest = []
  for await (const e of resumed) rest.push(e.sequence_number)
  assert.deepEqual(rest, numbers.slice(after + 1))
  assert.equal((await resumed.finalResponse()).output_text, '1: ' + long)
}
assert.deepEqual((await eventsOf(await client.responses.retrieve(waits.id, { stream: true }))).map((e) => e.type), ['response.created', 'response.in_progress', 'response.failed'])

// What was asked.
const inputs = []
for await (const i of client.responses.inputItems.list(second.id, { order: 'asc' })) inputs.push([i.role, i.content[0].text])
assert.deepEqual(inputs, [['user', 'Again']])
await assert.rejects(client.responses.inputItems.list('resp_unknown'), OpenAI.NotFoundError)

// Conversations.
const conversation = await client.conversations.create({ metadata: { topic: 'berths' }, items: [{ role: 'user', content: 'Before' }, { role: 'assistant', content: 'An answer' }] })
assert.deepEqual((await client.conversations.retrieve(conversation.id)).metadata, { topic: 'berths' })
const one = await client.responses.create({ model: 'talk', input: 'One', conversation: conversation.id })
assert.equal(one.output_text, '3: One')
const two = await client.responses.create({ model: 'talk', input: 'Two', conversation: { id: conversation.id } })
assert.equal(two.output_text, '5: Two')
const items = []
for await (const i of client.conversations.items.list(conversation.id, { order: 'asc', limit: 4 })) items.push(i.content[0].text)
assert.deepEqual(items, ['Before', 'An answer', 'One', '3: One', 'Two', '5: Two'])
// Single items: read in any state, deleted before the first response, with ids that stay.
const planned = await client.conversations.create({ items: ['a', 'b', 'c', 'd'].map((content) => ({ role: 'user', content })) })
const ids = []
for await (const i of client.conversations.items.list(planned.id, { order: 'asc' })) ids.push(i.id)
const within = { conversation_id: planned.id }
assert.equal((await client.conversations.items.retrieve(ids[1], within)).content[0].text, 'b')
assert.equal((await client.conversations.items.delete(ids[1], within)).id, planned.id)
await assert.rejects(client.conversations.items.retrieve(ids[1], within), OpenAI.NotFoundError)
await assert.rejects(client.conversations.items.delete(ids[1], within), OpenAI.NotFoundError)
const [added] = (await client.conversations.items.create(planned.id, { items: [{ role: 'user', content: 'e' }] })).data
ids.push(added.id)
assert.equal((await client.responses.create({ model: 'talk', input: 'f', conversation: planned.id })).output_text, '5: f')
const held = []
for await (const i of client.conversations.items.list(planned.id, { order: 'asc' })) held.push([i.id, i.content[0].text])
assert.deepEqual(held.slice(0, 4), [[ids[0], 'a'], [ids[2], 'c'], [ids[3], 'd'], [ids[4], 'e']])
assert.deepEqual(held.slice(4).map((i) => i[1]), ['f', '5: f'])
for (const [id, text] of held) assert.equal((await client.conversations.items.retrieve(id, within)).content[0].text, text)
await assert.rejects(client.conversations.items.delete(held[0][0], within), (e) => e instanceof OpenAI.ConflictError && e.code === 'status_conflict' && /record of session/.test(e.message))
await assert.rejects(client.conversations.items.retrieve('msg_x', within), OpenAI.NotFoundError)
await assert.rejects(client.conversations.items.retrieve(held[0][0], { conversation_id: conversation.id }), OpenAI.NotFoundError)
assert.deepEqual((await client.conversations.update(conversation.id, { metadata: { topic: 'x' } })).metadata, { topic: 'x' })
assert.equal((await client.conversations.delete(conversation.id)).deleted, true)
await assert.rejects(client.conversations.retrieve(conversation.id), OpenAI.NotFoundError)

// Failures and errors.
const failed = await client.responses.create({ model: 'broken', input: 'x' })
assert.deepEqual([failed.status, failed.error.code, failed.output], ['failed', 'no_berth', []])
await client.responses.delete(failed.id)
await assert.rejects(client.responses.retrieve(failed.id), OpenAI.NotFoundError)
await assert.rejects(client.responses.create({ model: 'talk', input: 'x', previous_response_id: 'resp_unknown' }), OpenAI.NotFoundError)
await assert.rejects(client.responses.create({ model: 'talk', input: 'x', tools: [{ type: 'web_search' }] }), (e) => e.param === 'tools')
console.log('ok')
