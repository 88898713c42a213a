// Drives the official client through files.
import assert from 'node:assert/strict'
import OpenAI, { toFile } from 'openai'

const client = new OpenAI({ baseURL: process.env.WEIR_URL + '/v1', apiKey: process.env.WEIR_TOKEN, maxRetries: 0 })
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

const image = await client.files.create({ file: await toFile(png, 'chart.png'), purpose: 'vision', expires_after: { anchor: 'created_at', seconds: 3600 } })
assert.deepEqual([image.object, image.bytes, image.filename, image.purpose, image.status], ['file', png.length, 'chart.png', 'vision', 'processed'])
assert.equal(image.expires_at, image.created_at + 3600)
const text = await client.files.create({ file: await toFile(Buffer.from('Berth 4'), 'plan.txt'), purpose: 'user_data' })
const pdf = await client.files.create({ file: await toFile(Buffer.from('%PDF-1.7'), 'plan.pdf'), purpose: 'user_data' })
assert.deepEqual(await client.files.retrieve(text.id), text)
assert.equal(await (await client.files.content(text.id)).text(), 'Berth 4')
const list = []
for await (const f of client.files.list({ order: 'asc', limit: 2 })) list.push(f.id)
assert.deepEqual(list, [image.id, text.id, pdf.id])
const pictures = []
for await (const f of client.files.list({ purpose: 'vision' })) pictures.push(f.id)
assert.deepEqual(pictures, [image.id])

// In responses and chat completions, by id. Resent, they belong to the same session.
const seen = await client.responses.create({
  model: 'see', input: [{ role: 'user', content: [{ type: 'input_text', text: 'Look' }, { type: 'input_image', file_id: image.id, detail: 'auto' }, { type: 'input_file', file_id: pdf.id }] }],
})
assert.equal(seen.output_text, '1: Look [image image/png  16] [file application/pdf plan.pdf 8]')
const messages = [{ role: 'user', content: [{ type: 'text', text: 'Read' }, { type: 'file', file: { file_id: text.id } }] }]
const first = await client.chat.completions.create({ model: 'see', messages }).withResponse()
assert.equal(first.data.choices[0].message.content, '1: Read [file text/plain plan.txt 7]')
messages.push(first.data.choices[0].message, { role: 'user', content: 'And?' })
const second = await client.chat.completions.create({ model: 'see', messages }).withResponse()
assert.equal(second.response.headers.get('x-weir-session'), first.response.headers.get('x-weir-session'))
const conversation = await client.conversations.create({ items: [{ role: 'user', content: [{ type: 'input_file', file_id: text.id }] }] })
assert.equal((await client.responses.create({ model: 'see', input: 'So?', conversation: conversation.id })).output_text, '2: So?')

// Errors.
assert.equal((await client.files.delete(text.id)).deleted, true)
await assert.rejects(client.files.retrieve(text.id), (e) => e instanceof OpenAI.NotFoundError && e.code === 'not_found')
await assert.rejects(client.files.content('file-none'), OpenAI.NotFoundError)
await assert.rejects(client.files.create({ file: await toFile(Buffer.from([0, 1, 2]), 'a.txt'), purpose: 'user_data' }), (e) => e.status === 415)
await assert.rejects(client.files.create({ file: await toFile(Buffer.from('x'), 'a.jsonl'), purpose: 'batch' }), (e) => e.status === 422 && e.code === 'request_invalid')
await assert.rejects(client.responses.create({ model: 'see', input: [{ role: 'user', content: [{ type: 'input_file', file_id: text.id }] }] }), OpenAI.NotFoundError)
await assert.rejects(client.responses.create({ model: 'see', input: [{ role: 'user', content: [{ type: 'input_image', file_id: pdf.id }] }] }), OpenAI.BadRequestError)
console.log('ok')
