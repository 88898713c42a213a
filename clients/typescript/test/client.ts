// Drives a server with the built client: WEIR_URL, WEIR_TOKEN. It serves the flows ask and talk.
import assert from 'node:assert/strict'
import { createWeir, newKey, take, WeirError, type StreamEvent } from 'weir-client'

const url = process.env.WEIR_URL!
const token = process.env.WEIR_TOKEN!
const weir = createWeir({ url: url + '/', token })

function start(key: string, client = weir) {
  return take(client.POST('/v1/runs', {
    params: { header: { 'Idempotency-Key': key }, query: { wait: 60 } },
    body: { flow: 'ask', inputs: { name: 'Ada' } },
  }))
}

function answer(run: string, value: unknown, key?: string) {
  return take(weir.POST('/v1/runs/{run}/answer', {
    params: { path: { run }, header: { 'Idempotency-Key': key }, query: { wait: 60 } },
    body: { interrupt: 'ask:ask#1', value },
  }))
}

async function refused(call: Promise<unknown>): Promise<WeirError> {
  return call.then(() => assert.fail('the server did not refuse'), (e: unknown) => {
    assert(e instanceof WeirError, String(e))
    return e
  })
}

async function runsAreStartedOnceAndAnswered(): Promise<string> {
  const key = newKey()
  const first = await start(key)
  assert.equal(first.status, 'paused')
  assert.equal(first.interrupts?.[0]?.prompt, 'Approve?')
  assert.equal((await start(key)).run, first.run)
  assert.notEqual((await start(newKey())).run, first.run)
  const done = await answer(first.run, 'approve', key)
  assert.deepEqual(done.outputs, { decision: 'approve', greeting: 'Hello Ada' })
  assert.deepEqual((await answer(first.run, 'approve', key)).outputs, done.outputs)
  return first.run
}

async function refusalsHaveCodes(run: string) {
  const late = await refused(answer(run, 'reject'))
  assert.equal(late.status, 409)
  assert.notEqual(late.code, '')
  const wrong = await refused(take(weir.POST('/v1/runs', { body: { flow: 'ask', inputs: { nam: 'Ada' } } })))
  assert.deepEqual([wrong.status, wrong.code], [422, 'input_invalid'])
  const stranger = createWeir({ url, token: 'weir_wrong' })
  assert.equal((await refused(stranger.GET('/v1/flows'))).status, 401)
  assert.equal((await refused(read(stranger.runEvents(run)))).status, 401)
  assert.equal((await refused(read(weir.runEvents('unknown')))).status, 404)
}

async function read<T>(events: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = []
  for await (const e of events) out.push(e)
  return out
}

/** Sends requests over connections that break behind each complete event, in the middle of the next one. */
function breaking(seen: (string | null)[], whole = /^id:.*\n(.+\n)*\n/m) {
  return async (request: Request): Promise<Response> => {
    seen.push(request.headers.get('Last-Event-ID'))
    const response = await fetch(request)
    if (!response.body) return response
    const reader = response.body.getReader()
    let text = ''
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          text += new TextDecoder().decode(value)
          const event = whole.exec(text)
          if (!event) continue
          controller.enqueue(new TextEncoder().encode(text.slice(0, event.index + event[0].length + 7)))
          await reader.cancel()
          return controller.error(new TypeError('the connection broke'))
        }
      },
    }, { highWaterMark: 0 })
    return new Response(body, { status: response.status, headers: response.headers })
  }
}

async function streamsContinueWhereTheConnectionBroke(run: string) {
  const listed = await take(weir.GET('/v1/runs/{run}/events', { params: { path: { run }, query: { limit: 200 } } }))
  const numbers = listed.events!.map((e) => e.number)
  assert(numbers.length > 5)
  const whole = await read(weir.runEvents(run))
  const numbered = (list: StreamEvent[]) => list.map((e) => e.item.number).filter((n) => n !== undefined)
  assert.deepEqual(numbered(whole), numbers)
  const cursors: (string | null)[] = []
  const broken = await read(createWeir({ url, token, fetch: breaking(cursors) }).runEvents(run))
  assert.deepEqual(numbered(broken), numbers)
  assert(cursors.length > numbers.length / 2, `${cursors.length} connections`)
  assert.deepEqual(cursors.slice(0, 2), [null, broken[0]!.id])
  const rest = await read(weir.runEvents(run, { after: whole[2]!.id }))
  assert.deepEqual(numbered(rest), numbered(whole.slice(3)))
}

async function lostAnswersAreAskedForAgain() {
  let sent = 0
  const loses = createWeir({
    url, token,
    async fetch(request) {
      const response = await fetch(request)
      if (++sent > 1) return response
      await response.body?.cancel()
      throw new TypeError('the connection broke')
    },
  })
  const key = newKey()
  const { run } = await start(key, loses)
  assert.equal(sent, 2)
  assert.equal((await start(key)).run, run)
  sent = 0
  const lost = await refused(loses.POST('/v1/runs', { body: { flow: 'ask', inputs: { name: 'Ada' } } }))
  assert.deepEqual([lost.status, lost.code, lost.offline], [0, '', true])
  assert(lost.cause instanceof TypeError)
  assert.equal(sent, 1, 'a request without a key was sent again')
}

async function listsTellOfEachChange() {
  const stop = new AbortController()
  const states: string[] = []
  const cursors: (string | null)[] = []
  const watches = createWeir({ url, token: () => token, fetch: breaking(cursors, /^event: runs\n(.+\n)*\n/m) })
  const kept = new Map<string, string>()
  let ids: string[] = []
  let begun = ''
  for await (const change of watches.runChanges({ flow: 'ask', status: ['paused'], limit: 5 }, { signal: stop.signal, onConnection: (s) => states.push(s) })) {
    for (const r of change.runs) kept.set(r.run, r.status)
    ids = change.ids
    if (!begun) begun = (await start(newKey())).run
    else if (ids.includes(begun)) break
  }
  assert.equal(ids[0], begun)
  assert.equal(kept.get(begun), 'paused')
  assert(ids.length > 1 && ids.every((id) => kept.get(id) === 'paused'), 'a run of the list was never sent')
  assert.deepEqual(states.slice(0, 3), ['live', 'lost', 'live'])
  const refusing = read(createWeir({ url, token: 'weir_wrong' }).runChanges())
  assert.equal((await refused(refusing)).status, 401)
  const none = createWeir({ url, token, repeat: 0, fetch: () => Promise.reject(new TypeError('refused')) })
  assert.equal((await refused(none.GET('/v1/flows'))).offline, true)
  setTimeout(() => stop.abort(), 300)
  assert.deepEqual(await read(none.runChanges({}, { signal: stop.signal })), [])
}

async function sessionsAreReadUntilTheReaderStops() {
  const { session } = await take(weir.POST('/v1/sessions', { body: { flow: 'talk' } }))
  const stop = new AbortController()
  const reading = (async () => {
    for await (const e of weir.sessionEvents(session, { signal: stop.signal })) {
      if (e.item.type === 'run.completed') return e.item.run
    }
    return ''
  })()
  const sent = await take(weir.POST('/v1/sessions/{session}/messages', {
    params: { path: { session }, header: { 'Idempotency-Key': newKey() }, query: { wait: 60 } },
    body: { message: 'Is there a berth?' },
  }))
  assert.equal(await reading, sent.run)
  assert.equal(sent.status, 'completed')
  const waiting = read(weir.sessionEvents(session, { signal: stop.signal }))
  stop.abort()
  assert((await waiting).length >= 0) // the reader ends without an error
}

/** What the description does not have does not compile. */
export function mistakesAreFoundByTheCompiler() {
  // @ts-expect-error: no such path
  void weir.GET('/v1/berths')
  // @ts-expect-error: flow is missing
  void weir.POST('/v1/runs', { body: { inputs: {} } })
  // @ts-expect-error: the path has a parameter
  void weir.GET('/v1/runs/{run}')
  // @ts-expect-error: no such member of an answer
  void take(weir.GET('/v1/runs/{run}', { params: { path: { run: '' } } })).then((r) => r.berth)
}

const run = await runsAreStartedOnceAndAnswered()
await refusalsHaveCodes(run)
await streamsContinueWhereTheConnectionBroke(run)
await lostAnswersAreAskedForAgain()
await listsTellOfEachChange()
await sessionsAreReadUntilTheReaderStops()
console.log('ok')
