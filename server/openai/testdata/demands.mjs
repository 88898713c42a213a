// Drives the official client through formats of answers and forced calls of functions.
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: process.env.WEIR_URL + '/v1', apiKey: process.env.WEIR_TOKEN, maxRetries: 0 })
const schema = { type: 'object', properties: { berth: { type: 'integer' } }, required: ['berth'], additionalProperties: false }
const nested = { type: 'json_schema', json_schema: { name: 'place', description: 'Where', schema, strict: true } }
const flat = { type: 'json_schema', name: 'place', description: 'Where', schema, strict: true }
const object = { type: 'json_object' }
const parameters = { type: 'object', properties: { berth: { type: 'string' } }, required: ['berth'] }
const names = ['look_up', 'look_down']
const tools = names.map((name) => ({ type: 'function', function: { name, parameters } }))
const flatTools = names.map((name) => ({ type: 'function', name, parameters }))
const ask = (content) => [{ role: 'user', content }]
const refused = (param, about) => (e) => {
  assert.ok(e.status === 400 && e.param === param && about.test(e.message), `${e.status} ${e.param} ${e.message}`)
  return true
}

for (const model of ['talk', 'work', 'plan']) {
  // Prose around the JSON is removed, an answer that does not fit is made again, and the next message is free again.
  for (const content of ['Plain', 'Fence', 'Once']) {
    const messages = ask(content)
    const one = await client.chat.completions.parse({ model, messages, response_format: nested }).withResponse()
    assert.deepEqual(JSON.parse(one.data.choices[0].message.content), { berth: 4 }, model + ' ' + content)
    messages.push({ role: 'assistant', content: one.data.choices[0].message.content }, ...ask('Text'))
    const next = await client.chat.completions.create({ model, messages }).withResponse()
    assert.match(next.data.choices[0].message.content, /: Text$/)
    assert.equal(next.response.headers.get('x-weir-session'), one.response.headers.get('x-weir-session'))

    const streamed = await client.chat.completions.stream({ model, messages: ask(content), response_format: nested }).finalContent()
    assert.deepEqual(JSON.parse(streamed), { berth: 4 })
    const loose = await client.chat.completions.create({ model, messages: ask(content), response_format: object })
    assert.deepEqual(JSON.parse(loose.choices[0].message.content), { berth: 4 })

    const response = await client.responses.create({ model, input: content, text: { format: flat } })
    assert.deepEqual(JSON.parse(response.output_text), { berth: 4 })
    assert.deepEqual(response.text, { format: flat })
    const followed = await client.responses.create({ model, input: 'Text', previous_response_id: response.id })
    assert.match(followed.output_text, /: Text$/)
    let text = ''
    for await (const e of client.responses.stream({ model, input: content, text: { format: object } })) text += e.type === 'response.output_text.delta' ? e.delta : ''
    assert.deepEqual(JSON.parse(text), { berth: 4 })
    let background = await client.responses.create({ model, input: content, text: { format: flat }, background: true })
    while (background.status === 'queued' || background.status === 'in_progress') background = await client.responses.retrieve(background.id)
    assert.deepEqual(JSON.parse(background.output[0].content[0].text), { berth: 4 })
  }

  // The text format is no format.
  for (const format of [{ type: 'text' }, null]) {
    assert.match((await client.chat.completions.create({ model, messages: ask('Plain'), response_format: format })).choices[0].message.content, /: Plain$/)
  }

  // An answer that never fits is an error.
  for (const content of ['Never', 'Cut']) {
    const invalid = (e) => e.status === 500 && e.code === 'model_answer_invalid'
    await assert.rejects(client.chat.completions.create({ model, messages: ask(content), response_format: nested }), invalid)
    await assert.rejects(client.chat.completions.stream({ model, messages: ask(content), response_format: nested }).finalContent(), (e) => e.code === 'model_answer_invalid')
    const failed = await client.responses.create({ model, input: content, text: { format: flat } })
    assert.deepEqual([failed.status, failed.error.code, failed.output], ['failed', 'model_answer_invalid', []])
  }
  const never = await client.responses.create({ model, input: 'Never', text: { format: flat }, background: true })
  let after = never
  while (after.status === 'queued' || after.status === 'in_progress') after = await client.responses.retrieve(never.id)
  assert.deepEqual([after.status, after.error.code], ['failed', 'model_answer_invalid'])

  // With functions: the call first, then the answer in the format with which the round began.
  const messages = ask('Look 4')
  const asked = await client.chat.completions.create({ model, messages, tools, response_format: nested })
  assert.equal(asked.choices[0].finish_reason, 'tool_calls', model)
  const call = asked.choices[0].message.tool_calls[0]
  messages.push(asked.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'Plain' })
  const found = await client.chat.completions.create({ model, messages, tools, response_format: nested })
  assert.deepEqual(JSON.parse(found.choices[0].message.content), { berth: 4 })
  const free = await client.responses.create({ model, input: 'Look 4', tools: flatTools })
  const outputs = [{ type: 'function_call_output', call_id: free.output[0].call_id, output: 'Plain' }]
  const late = await client.responses.create({ model, input: outputs, previous_response_id: free.id, text: { format: flat } })
  assert.deepEqual([late.status, late.error.code], ['failed', 'model_answer_invalid'])
}

for (const model of ['talk', 'work']) {
  // A call is forced: of any function, or of one; the model is not asked for more once it was made.
  for (const [choice, flatChoice, name] of [
    ['required', 'required', 'look_up'],
    [{ type: 'function', function: { name: 'look_down' } }, { type: 'function', name: 'look_down' }, 'look_down'],
  ]) {
    for (const content of ['Plain', 'Once']) {
      const messages = ask(content)
      const forced = await client.chat.completions.create({ model, messages, tools, tool_choice: choice })
      const calls = forced.choices[0].message.tool_calls
      assert.deepEqual(calls.map((c) => c.function.name), [name])
      messages.push(forced.choices[0].message, { role: 'tool', tool_call_id: calls[0].id, content: 'free' })
      await assert.rejects(client.chat.completions.create({ model, messages, tools, tool_choice: choice }), refused('tool_choice', /outputs/))
      assert.match((await client.chat.completions.create({ model, messages, tools })).choices[0].message.content, /free$/)
      const response = await client.responses.create({ model, input: content, tools: flatTools, tool_choice: flatChoice })
      assert.deepEqual(response.output.map((o) => o.name), [name])
      assert.deepEqual(response.tool_choice, flatChoice)
      const events = []
      for await (const e of client.responses.stream({ model, input: content, tools: flatTools, tool_choice: flatChoice })) events.push(e.type)
      assert.equal(events.at(-1), 'response.completed')
      assert.ok(events.includes('response.function_call_arguments.done') && !events.includes('response.output_text.delta'))
    }
    await assert.rejects(client.chat.completions.create({ model, messages: ask('Never'), tools, tool_choice: choice }), (e) => e.code === 'model_answer_invalid')
  }
}

// What a flow cannot carry, and what is not valid, is refused before a round begins.
for (const [model, about] of [['outputs', /not that of a model/], ['says', /type say/], ['inside', /type loop/], ['own', /schema of its own/]]) {
  await assert.rejects(client.chat.completions.create({ model, messages: ask('Plain'), response_format: nested }), refused('response_format', about))
  await assert.rejects(client.responses.create({ model, input: 'Plain', text: { format: flat } }), refused('text', about))
}
for (const [model, about] of [['outputs', /not that of a model/], ['plan', /queue/]]) {
  await assert.rejects(client.chat.completions.create({ model, messages: ask('Plain'), tools, tool_choice: 'required' }), refused('tool_choice', about))
}
for (const [bad, about] of [
  [{ type: 'grammar' }, /grammar/], [{ type: 'json_object', more: 1 }, /more/], ['json', /format/],
  [{ type: 'json_schema', json_schema: { name: 'x' } }, /needs a schema/],
  [{ type: 'json_schema', json_schema: { name: 'a b', schema } }, /name/],
  [{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'array' } } }, /object/],
  [{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', properties: 7 } } }, /not valid/],
  [{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', $ref: 'https://example.org/s.json' } } }, /not valid/],
]) {
  await assert.rejects(client.chat.completions.create({ model: 'talk', messages: ask('Plain'), response_format: bad }), refused('response_format', about))
}
for (const [bad, about] of [
  [{ tool_choice: 'required' }, /no functions/], [{ tools, tool_choice: 'some' }, /tool_choice is/],
  [{ tools, tool_choice: { type: 'function', function: { name: 'none_such' } } }, /none_such/],
  [{ tools, tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } } }, /tool_choice is/],
]) {
  await assert.rejects(client.chat.completions.create({ model: 'talk', messages: ask('Plain'), ...bad }), refused('tool_choice', about))
}
await assert.rejects(client.responses.create({ model: 'talk', input: 'x', text: { verbosity: 'low' } }), refused('text.verbosity', /verbosity/))
console.log('ok')
