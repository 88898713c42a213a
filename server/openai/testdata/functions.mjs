// Drives the official client through functions of its own.
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: process.env.WEIR_URL + '/v1', apiKey: process.env.WEIR_TOKEN, maxRetries: 0 })
const parameters = { type: 'object', properties: { berth: { type: 'string' } }, required: ['berth'] }
const tools = [{ type: 'function', function: { name: 'look_up', description: 'Looks a berth up', parameters, strict: true } }]
const flat = [{ type: 'function', name: 'look_up', description: 'Looks a berth up', parameters, strict: true }]

for (const model of ['talk', 'work']) {
  // Chat completions: two calls at once, and the answer from their outputs; then another message.
  const messages = [{ role: 'user', content: 'Look 4 7' }]
  const asked = await client.chat.completions.create({ model, messages, tools }).withResponse()
  const choice = asked.data.choices[0]
  assert.equal(choice.finish_reason, 'tool_calls')
  assert.deepEqual(choice.message.tool_calls.map((c) => [c.type, c.function.name, JSON.parse(c.function.arguments)]), [['function', 'look_up', { berth: '4' }], ['function', 'look_up', { berth: '7' }]])
  messages.push(choice.message)
  const outputs = choice.message.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: 'free ' + JSON.parse(c.function.arguments).berth }))
  await assert.rejects(client.chat.completions.create({ model, messages: [...messages, outputs[0]], tools }), (e) => e.status === 400 && /No tool output/.test(e.message))
  await assert.rejects(client.chat.completions.create({ model, messages: [...messages, { ...outputs[0], tool_call_id: 'call_x' }], tools }), (e) => e.status === 400 && /No tool call/.test(e.message))
  await assert.rejects(client.chat.completions.create({ model, messages: [...messages, { role: 'user', content: 'Well?' }], tools }), (e) => e.status === 400 && /No tool output/.test(e.message))
  messages.push(...outputs)
  const answered = await client.chat.completions.create({ model, messages, tools }).withResponse()
  assert.equal(answered.data.choices[0].message.content, 'Found free 4, free 7')
  assert.equal(answered.data.choices[0].finish_reason, 'stop')
  assert.equal(answered.response.headers.get('x-weir-session'), asked.response.headers.get('x-weir-session'))
  messages.push(answered.data.choices[0].message, { role: 'user', content: 'Thanks' })
  const thanks = await client.chat.completions.create({ model, messages, tools }).withResponse()
  assert.equal(thanks.response.headers.get('x-weir-session'), asked.response.headers.get('x-weir-session'))
  assert.match(thanks.data.choices[0].message.content, /: Thanks$/)

  // The helper of the client that calls functions, with streams.
  const runner = client.chat.completions.runTools({
    model, stream: true, messages: [{ role: 'user', content: 'Look 9' }],
    tools: [{ type: 'function', function: { name: 'look_up', parameters, parse: JSON.parse, function: ({ berth }) => 'taken ' + berth } }],
  })
  assert.equal(await runner.finalContent(), 'Found taken 9')

  // Without functions, and with tool_choice none, the model is offered none.
  for (const more of [{}, { tools, tool_choice: 'none' }]) {
    assert.equal((await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Look 4' }], ...more })).choices[0].message.content, '1: Look 4')
  }

  // Responses.
  const first = await client.responses.create({ model, input: 'Look 4', tools: flat })
  const call = first.output[0]
  assert.deepEqual([first.status, first.output.length, call.type, call.name, call.arguments, call.status], ['completed', 1, 'function_call', 'look_up', '{"berth":"4"}', 'completed'])
  assert.deepEqual(await client.responses.retrieve(first.id).then((r) => r.output), first.output)
  await assert.rejects(client.responses.create({ model, input: 'And?', previous_response_id: first.id }), (e) => e.status === 400)
  const item = { type: 'function_call_output', call_id: call.call_id, output: 'free' }
  const second = await client.responses.create({ model, input: [item], tools: flat, previous_response_id: first.id })
  assert.equal(second.output_text, 'Found free')
  assert.equal((await client.responses.create({ model, input: 'Thanks', previous_response_id: second.id })).output_text.split(': ')[1], 'Thanks')
  assert.deepEqual((await client.responses.retrieve(second.id)).output_text ?? 'Found free', 'Found free')

  // Streamed, and the items resent.
  const stream = client.responses.stream({ model, input: 'Look 5', tools: flat })
  const kinds = []
  for await (const e of stream) kinds.push(e.type)
  const streamed = await stream.finalResponse()
  assert.deepEqual(kinds, ['response.created', 'response.in_progress', 'response.output_item.added', 'response.function_call_arguments.delta', 'response.function_call_arguments.done', 'response.output_item.done', 'response.completed'])
  assert.equal(streamed.output[0].arguments, '{"berth":"5"}')
  const { parsed_arguments, ...sent } = streamed.output[0]
  const resent = await client.responses.create({ model, tools: flat, input: [{ role: 'user', content: 'Look 5' }, sent, { type: 'function_call_output', call_id: sent.call_id, output: 'free' }] })
  assert.equal(resent.output_text, 'Found free')

  // In a conversation.
  const conversation = await client.conversations.create()
  const inside = await client.responses.create({ model, input: 'Look 6', tools: flat, conversation: conversation.id })
  assert.equal((await client.responses.create({ model, input: [{ type: 'function_call_output', call_id: inside.output[0].call_id, output: 'decline' }], conversation: conversation.id })).output_text, 'Found decline')
}
await assert.rejects(client.responses.create({ model: 'talk', input: [{ type: 'function_call_output', call_id: 'call_x', output: 'x' }] }), (e) => e.status === 400)
console.log('ok')
