// Drives the official client through chat completions. WEIR_URL and WEIR_TOKEN say where.
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: process.env.WEIR_URL + '/v1', apiKey: process.env.WEIR_TOKEN })

// Models.
const models = []
for await (const m of client.models.list()) models.push(m.id)
assert.deepEqual(models, ['ask', 'broken', 'talk', 'waits'])
assert.equal((await client.models.retrieve('talk')).owned_by, 'weir')

// A chat, and the same conversation continued by resending the history.
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hello' }]
const first = await client.chat.completions.create({ model: 'talk', messages }).withResponse()
assert.equal(first.data.choices[0].message.content, '1: Hello')
assert.equal(first.data.choices[0].finish_reason, 'stop')
assert.deepEqual([first.data.usage.prompt_tokens, first.data.usage.completion_tokens], [10, 2])
const session = first.response.headers.get('x-weir-session')
messages.push(first.data.choices[0].message, { role: 'user', content: [{ type: 'text', text: 'Again' }] })
const second = await client.chat.completions.create({ model: 'talk', messages }).withResponse()
assert.equal(second.data.choices[0].message.content, '3: Again')
assert.equal(second.response.headers.get('x-weir-session'), session)

// The same, streamed.
messages.push(second.data.choices[0].message, { role: 'user', content: 'Once more' })
const stream = client.chat.completions.stream({ model: 'talk', messages, stream_options: { include_usage: true } })
let pieces = 0
stream.on('content', () => pieces++)
const third = await stream.finalChatCompletion()
assert.equal(third.choices[0].message.content, '5: Once more')
assert.ok(pieces > 1, `the answer came in ${pieces} pieces`)
assert.equal(third.usage.total_tokens, 12)

// Two messages of one session by its id, without the history.
const headers = { 'X-Weir-Session': session }
const named = await client.chat.completions.create({ model: 'talk', messages: [{ role: 'user', content: 'By id' }] }, { headers })
assert.equal(named.choices[0].message.content, '7: By id')

// A question is answered by the next message; one that does not fit is told why.
const asked = [{ role: 'user', content: 'Order 40 chairs' }]
const question = await client.chat.completions.create({ model: 'ask', messages: asked })
assert.equal(question.choices[0].message.content, 'Approve?\n\n(approve, reject)')
asked.push(question.choices[0].message, { role: 'user', content: 'maybe' })
const unfit = await client.chat.completions.create({ model: 'ask', messages: asked })
assert.match(unfit.choices[0].message.content, /Approve/)
asked.push(unfit.choices[0].message, { role: 'user', content: 'approve' })
const answered = await client.chat.completions.create({ model: 'ask', messages: asked })
assert.equal(answered.choices[0].message.content, 'You said approve.')

// Errors.
await assert.rejects(client.chat.completions.create({ model: 'none', messages }), (e) => e instanceof OpenAI.NotFoundError && e.code === 'not_found')
await assert.rejects(client.chat.completions.create({ model: 'talk', messages, top_p: 0.5 }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'top_p')
await assert.rejects(client.chat.completions.create({ model: 'talk', messages: [] }), OpenAI.BadRequestError)
const stranger = new OpenAI({ baseURL: process.env.WEIR_URL + '/v1', apiKey: 'weir_unknown' })
await assert.rejects(stranger.models.list(), (e) => e instanceof OpenAI.AuthenticationError && e.type === 'authentication_error')
await assert.rejects(client.chat.completions.create({ model: 'broken', messages: asked.slice(0, 1) }), (e) => e instanceof OpenAI.InternalServerError && e.code === 'no_berth')
const failing = client.chat.completions.stream({ model: 'broken', messages: asked.slice(0, 1) })
await assert.rejects(failing.finalChatCompletion(), (e) => e instanceof OpenAI.APIError && e.code === 'no_berth')
console.log('ok')
