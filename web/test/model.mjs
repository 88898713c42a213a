import { createServer } from 'node:http'
import { once } from 'node:events'

/** The answers of the model: the first entry whose pattern is in the last message of the user. */
const answers = [
  [/Is anything unusual/, 'Nothing stands out. The supplier and the goods are named, and the amount fits what was ordered before.'],
  [/confirms the payment/, 'Thank you for your invoice. You will be paid within 14 days.'],
  [/politely declines/, 'We cannot approve the invoice as it stands. Please send us the order number.'],
  [/Welcome (\S+?)\./, 'A warm welcome, $1. The harbour master expects you.'],
  [/Describe/, `${'The quay is long, '.repeat(900)}and there it ends.`],
  [/How long/, 'Until noon. After that the tide is too low.'],
  [/berth/i, 'Berth 4 is free. It has water and 16 A.'],
  [/Show a format/, 'These are free:\n\n- **Berth 4** with `16 A`\n- *Berth 5*\n\n1. Moor first.\n\n```sh\nmoor --berth 4\n  --stern\n```\n<img src=x onerror=document.title=1>\n2 * 3 * 4 = 24 and **open'],
  [/^\d+$/, 'I have counted them.'],
]

const tokens = (text) => Math.ceil(text.length / 4)

/** A model server with the API of chat completions, which counts tokens as bytes / 4. It keeps the requests that it got. Replies are answers to whole messages. */
export async function startModel(replies = new Map()) {
  const requests = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    const asked = JSON.parse(text || '{}')
    requests.push(asked)
    const last = asked.messages?.findLast((m) => m.role === 'user')?.content ?? ''
    const said = typeof last === 'string' ? last : JSON.stringify(last)
    const [pattern, form] = answers.find(([p]) => p.test(said)) ?? [null, 'I see.']
    const answer = replies.get(said) ?? (pattern ? form.replace('$1', pattern.exec(said)[1]) : form)
    const prompt = tokens(text)
    const usage = { prompt_tokens: prompt, completion_tokens: tokens(answer), total_tokens: prompt + tokens(answer), prompt_tokens_details: { cached_tokens: asked.messages.length > 2 ? Math.floor(prompt / 2) : 0 } }
    if (!asked.stream) {
      response.setHeader('Content-Type', 'application/json')
      return response.end(JSON.stringify({ id: 'r', object: 'chat.completion', model: asked.model, choices: [{ index: 0, message: { role: 'assistant', content: answer }, finish_reason: 'stop' }], usage }))
    }
    response.setHeader('Content-Type', 'text/event-stream')
    const send = (choices, more = {}) => response.write(`data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', model: asked.model, choices, ...more })}\n\n`)
    const given = asked.messages.at(-1)
    const calls = asked.tools?.length > 0 && given.role === 'user' // each tool once, then the last output is the answer
    if (calls) send([{ index: 0, delta: { tool_calls: asked.tools.map((x, index) => ({ index, id: `call_${index}`, type: 'function', function: { name: x.function.name, arguments: '{"berth":4}' } })) } }])
    const words = calls ? [] : given.role === 'tool' ? [`It is ${given.content}.`] : answer.match(/\S+\s*/g)
    for (const word of words) {
      send([{ index: 0, delta: { content: word } }])
      await new Promise((done) => setTimeout(done, 12))
    }
    send([{ index: 0, delta: {}, finish_reason: calls ? 'tool_calls' : 'stop' }])
    send([], { usage })
    response.end('data: [DONE]\n\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${server.address().port}/v1`, requests, stop: () => server.close() }
}
