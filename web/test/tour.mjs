import { asMessages, conversations, customer, graphFlows } from './data.mjs'

/** Places of the page with what is to be seen there. Names of pictures that the documentation has are in docs/page.md. */
function places({ run, failed, waiting, graph, deep, talk, session, forked }) {
  return [
    ['runs', '#/runs', 'a.trow'], ['search', '#/runs?find=reservation&inside=1', 'mark'], ['start', '#/runs?start=transcript', '[role=dialog]'],
    ['run', `#/runs/${run}`, '[role=treeitem], .facts'], ['waiting', `#/runs/${waiting}`, '.ask'], ['failed', `#/runs/${failed}`, '.error-box'],
    ['dag', `#/runs/${graph}`, '[role=treeitem], .facts'], ['dag-graph', `#/runs/${deep}?view=graph`, '.gnode'], ['split', `#/runs/${deep}?view=split`, '.gnode'],
    ['state', `#/runs/${run}?view=state`, '.value'], ['journal', `#/runs/${run}?view=journal&event=8`, '.event'],
    ['node', `#/runs/${run}?node=opinion`, '.value'], ['call', `#/runs/${run}?node=opinion&tab=calls`, '.message'], ['attempts', `#/runs/${failed}?node=stuck&tab=attempts`, '[id^=attempt]'], ['node-state', `#/runs/${run}?node=read&tab=state`, '.cm-line'],
    ['messages', `#/runs/${talk}?view=messages`, '.message'], ['view', `#/runs/${talk}?view=messages&beside=view`, '.message'],
    ['playground', `#/runs/${run}?node=opinion&tab=calls&play=${encodeURIComponent('opinion/model#1')}`, '[role=dialog]'],
    ['fork', `#/runs/${run}?fork=read`, '[role=dialog] dl'], ['compare', `#/runs/${forked}?view=compare&with=${run}`, '.card'], ['sides', `#/runs/${forked}?view=compare&with=${run}&sides=1&pair=opinion`, '.sides [role=treeitem]'],
    ['inbox', '#/inbox', 'article'], ['answered', '#/inbox?tab=answered', 'article'],
    ['chat', '#/chat', 'article'], ['conversation', `#/chat/${session}`, '.bubble'],
    ['sessions', '#/sessions', 'a.trow'], ['session', `#/sessions/${session}`, 'a.trow'], ['trajectory', `#/sessions/${session}?tab=trajectory`, '.picture img'], ['memory', '#/memory', 'article'],
    ['files', '#/files', 'a.trow'], ['flows', '#/flows', '.card'], ['flow', '#/flows/transcript', '.cm-line'], ['flow-tests', '#/flows/harbour?tab=tests', 'article'],
    ['usage', '#/usage', '[role=row]'], ['codes', '#/codes', 'article'],
  ]
}

/** Makes runs, conversations and a fork from the data. */
async function record({ server, start, ended }) {
  const list = conversations(12)
  const talk = await start('transcript', { messages: asMessages(list[5]) })
  await server.api('POST', `v1/runs/${talk}/answer`, { interrupt: 'verdict:ask#1', value: 'yes' })
  await ended(talk)
  const waiting = await start('transcript', { messages: asMessages(list[0]) })
  const [graph, deep] = [await start(graphFlows[0]), await start(graphFlows[1])]
  const wide = await start(graphFlows[2])
  await start('welcome', { names: ['Ada', 'Grace', 'Edsger'] })
  const failed = await start('stranded')
  const run = await start('invoice-review', { invoice: '1250 EUR, ACME, 40 chairs' })
  await server.api('POST', `v1/runs/${run}/answer`, { interrupt: 'ask:ask#1', value: 'approve' })
  await ended(run)
  const { body: forked } = await server.api('POST', `v1/runs/${run}/fork`, { from: 'read', inputs: { invoice: '9000 EUR, ACME, 40 chairs' } })
  const sessions = []
  for (const c of list.slice(1, 5)) {
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'airline' })
    for (const message of customer(c).slice(0, 4)) await server.api('POST', `v1/sessions/${body.session}/messages?wait=30`, { message })
    sessions.push(body.session)
  }
  const form = new FormData()
  form.set('file', new Blob([customer(list[0]).join('\n')], { type: 'text/plain' }), 'customer.txt')
  await fetch(`${server.url}v1/files`, { method: 'POST', body: form })
  const { body: noted } = await server.api('POST', 'v1/sessions', { flow: 'noted' })
  await server.api('POST', `v1/sessions/${noted.session}/messages?wait=10`, { message: customer(list[3])[1] })
  return { run, failed, waiting, graph, deep, wide, talk, session: sessions[0], forked: forked.run, list }
}

/** Every place of the page with runs made from the data, in both colours and on both widths. */
export function tourTests({ test, open, inspect, start, ended, server }) {
  test('every page shows real runs in both colours, wide and on a phone', async () => {
    const made = await record({ server, start, ended })
    for (const colorScheme of ['light', 'dark']) {
      const page = await open('#/runs', { width: 1280, height: 800, colorScheme })
      for (const [width, height] of [[1280, 800], [360, 740]]) {
        await page.setViewportSize({ width, height })
        for (const [name, hash, seen] of places(made)) {
          if (process.env.PLACE && !name.match(process.env.PLACE)) continue
          await page.goto(server.url + hash)
          await page.locator(seen).first().waitFor()
          await inspect(page, `tour-${name}-${width}-${colorScheme}`)
        }
      }
      await page.context().close()
    }
  })
}
