import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

/** A page of PDF with a line of text. */
const pdf = Buffer.from(`%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 80]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F 18 Tf 20 30 Td (Berth 4 is free.) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>`).toString('base64')

/** Tests of what is shown beside runs: files, events, copies, notifications, lists that are live. */
export function shownTests({ test, check, open, inspect, start, ended, server, binary, dir }) {
  test('a PDF is shown where the browser can, and saved everywhere', async () => {
    const id = await start('seen', { picture: { kind: 'file', mime: 'application/pdf', name: 'berths.pdf', data: pdf } })
    const page = await open(`#/runs/${id}`)
    const link = page.getByRole('link', { name: /berths.pdf/ })
    await link.waitFor()
    const shown = await page.evaluate(() => navigator.pdfViewerEnabled)
    check((await page.locator('iframe[title="berths.pdf"]').count()) === (shown ? 1 : 0), 'a PDF is shown where the browser has a viewer')
    await inspect(page, 'pdf')
    const [saved] = await Promise.all([page.waitForEvent('download'), link.click()])
    check(saved.suggestedFilename() === 'berths.pdf', saved.suggestedFilename())
    check(page.problems.length === 0, page.problems.join('; '))
    await page.context().close()
  })

  test('the journal of a run lists its events, and an event has an address', async () => {
    const id = await start('welcome', { names: Array.from({ length: 60 }, (_, i) => `Ship ${i}`) }, 30)
    await ended(id)
    const page = await open(`#/runs/${id}?view=journal`)
    await page.getByRole('row', { name: /run.started/ }).click()
    await page.getByRole('region', { name: 'Event 1', exact: true }).or(page.locator('section[aria-label="Event 1"]')).waitFor()
    check(/event=1(&|$)/.test(page.url()), page.url())
    const { events } = (await server.api('GET', `v1/runs/${id}/timeline?limit=1`)).body
    check(events > 400, `only ${events} events`)
    await page.goto(`${server.url}#/runs/${id}?view=journal&event=${events}`)
    const last = page.locator(`section[aria-label="Event ${events}"]`)
    await last.getByText('run.completed').first().waitFor()
    await inspect(page, 'journal')
    await last.getByRole('button', { name: 'Show the run as of this event' }).click()
    await page.waitForFunction((n) => location.hash.includes(`at=${n}`), events)
    await page.goto(`${server.url}#/runs/${id}?view=journal&event=200`)
    await page.locator('section[aria-label="Event 200"]').waitFor()
    await page.locator('section[aria-label="Event 200"]').getByRole('button', { name: 'Show the run as of this event' }).click()
    await page.getByText('You see the run as it was after this event.').waitFor()
    await page.context().close()
  })

  test('what is shown is copied as link, JSON, command and request', async () => {
    const id = await start('invoice-review', { invoice: '1250 EUR, ACME, 40 chairs' })
    const page = await open(`#/runs/${id}?node=opinion`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const copied = async (menu, item) => {
      await menu.click()
      await page.getByRole('menuitem', { name: item }).click()
      return page.evaluate(() => navigator.clipboard.readText())
    }
    const node = page.getByRole('complementary', { name: 'opinion' }).getByRole('button', { name: 'More' })
    check(JSON.parse(await copied(node, 'Copy as JSON')).node === 'opinion', 'the JSON of the node')
    check((await copied(node, 'Copy link')) === page.url(), 'the link to the node')
    const [program, ...args] = (await copied(node, 'Copy as command')).split(' ')
    const said = await server.command(...args)
    check(program === 'weir' && said.code === 0 && said.out.includes('opinion'), `the command: ${args} ${said.err}`)
    const curl = await copied(node, 'Copy as curl')
    const address = /(http\S+?)'?$/.exec(curl)[1]
    check((await (await fetch(address)).json()).node === 'opinion', curl)
    await page.goto(`${server.url}#/inbox`)
    const card = page.getByRole('article', { name: 'Approve 1250 EUR?' }).first()
    const answer = await copied(card.getByRole('button', { name: /^More/ }), 'Copy as command')
    check(/^weir answer \S+ ask:ask#1$|^weir answer \S+ 'ask:ask#1'$/.test(answer), answer)
    await page.context().close()
  })

  test('a question that appears while the tab is hidden is notified, and counted in its title', async () => {
    await start('invoice-review', { invoice: '2300 EUR, Rope & Co' })
    const hidden = await open('#/runs', { before: () => {
      window.notified = []
      window.Notification = class {
        static permission = 'granted'
        constructor(title, { body }) {
          window.notified.push(`${title}: ${body}`)
        }
      }
    } })
    const count = async () => Number(/^\((\d+)\)/.exec(await hidden.title())?.[1] ?? 0)
    await hidden.waitForFunction(() => /^\(\d+\)/.test(document.title))
    const before = await count()
    await hidden.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    })
    await start('invoice-review', { invoice: '5400 EUR, Rope & Co' })
    await hidden.waitForFunction(() => window.notified.includes('invoice-review: Approve 5400 EUR?'))
    await hidden.waitForFunction((n) => document.title.startsWith(`(${n}) `), before + 1)
    check((await hidden.evaluate(() => window.notified.length)) === 1, 'only the new question is notified')
    await hidden.context().close()
  })

  test('sessions, memory and answers appear as runs write them', async () => {
    const lists = await Promise.all(['#/sessions', '#/memory', '#/inbox?tab=answered'].map((x) => open(x)))
    const [sessions, memory, answers] = lists
    await Promise.all(lists.map((x) => x.getByRole('heading', { level: 1 }).waitFor()))
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'noted' })
    await server.api('POST', `v1/sessions/${body.session}/messages?wait=10`, { message: 'The ketch of Grace is blue.' })
    await sessions.getByRole('row', { name: new RegExp(body.session) }).waitFor()
    await memory.getByText('The ketch of Grace is blue.').waitFor()
    const id = await start('invoice-review', { invoice: '6600 EUR, ACME' })
    await server.api('POST', `v1/runs/${id}/answer`, { interrupt: 'ask:ask#1', value: 'approve' })
    await answers.getByRole('article', { name: 'Approve 6600 EUR?' }).waitFor()
    for (const x of lists) await x.context().close()
  })

  test('two runs are seen side by side, with a node of both', async () => {
    const id = await start('invoice-review', { invoice: '10 EUR, Rope & Co' })
    await ended(id)
    const { body } = await server.api('POST', `v1/runs/${id}/fork`, { from: 'read', inputs: { invoice: '9000 EUR, Rope & Co' } })
    const page = await open(`#/runs/${body.run}`)
    await page.getByRole('button', { name: 'Compare with the original' }).click()
    const [a, b] = [page.getByRole('region', { name: `A ${id}` }), page.getByRole('region', { name: `B ${body.run}` })]
    await a.getByRole('treeitem', { name: /confirm.*Completed/ }).waitFor()
    await b.getByRole('treeitem', { name: /ask.*Waiting/ }).waitFor()
    await a.getByRole('treeitem', { name: /read/ }).click()
    await page.getByText('9000', { exact: true }).waitFor()
    await page.getByText('10', { exact: true }).first().waitFor()
    await inspect(page, 'sides')
    await server.api('POST', `v1/runs/${body.run}/answer`, { interrupt: 'ask:ask#1', value: 'reject' })
    await b.getByRole('treeitem', { name: /decline.*Completed/ }).waitFor()
    await page.context().close()
  })

  test('the timeline shows what nodes waited for before they started, and the tree of contexts how full each is', async () => {
    const page = await open(`#/runs/${await start('welcome', { names: ['Ada', 'Grace', 'Edsger', 'Tony', 'Leslie', 'Alan'] }, 30)}`)
    await page.getByRole('group', { name: 'Colours of the bars' }).getByText('Waits for its turn').waitFor()
    const id = await start('pair', {}, 30)
    await page.goto(`${server.url}#/runs/${id}`)
    await page.getByRole('group', { name: 'Colours of the bars' }).getByText('Waits for its context').waitFor()
    check((await page.locator('.lane i[data-k=grant]').count()) === 1, 'one of the two nodes waited for the other')
    await inspect(page, 'waits')
    await page.goto(`${server.url}#/runs/${id}?view=messages`)
    const tree = page.getByRole('navigation', { name: 'Contexts' })
    await tree.getByRole('button', { name: /of a window of 32.0k/ }).nth(1).waitFor()
    check((await tree.getByRole('button', { name: /of a window of 32.0k/ }).count()) === 2 && (await tree.locator('.meter').count()) === 2, 'each context has a bar')
    await inspect(page, 'contexts')
    await page.context().close()
  })

  test('a message that is too large for a list is loaded whole, and saved', async () => {
    const long = `Begin ${'ship '.repeat(20000)}the end of it.`
    const id = await start('said', { messages: [{ role: 'user', text: long }] }, 30)
    const page = await open(`#/runs/${id}?view=messages`)
    const message = page.locator('.message').first()
    await message.getByText('Begin ship').waitFor()
    check(!(await message.innerText()).includes('the end of it.'), 'the list has the beginning')
    await message.getByRole('button', { name: /^Load all/ }).first().click()
    await message.getByText(/the end of it\./).waitFor()
    const [saved] = await Promise.all([page.waitForEvent('download'), message.getByRole('button', { name: /^Download text/ }).click()])
    check(readFileSync(await saved.path(), 'utf8') === long, 'the file has another text')
    check(page.problems.length === 0, page.problems.join('; '))
    await page.context().close()
  })

  test('a call that was played becomes a test that weir runs', async () => {
    const id = await start('invoice-review', { invoice: '1250 EUR, ACME, 40 chairs' })
    await server.api('POST', `v1/runs/${id}/answer`, { interrupt: 'ask:ask#1', value: 'approve' })
    await ended(id)
    const page = await open(`#/runs/${id}?node=opinion&tab=calls`)
    await page.getByRole('button', { name: 'Playground' }).click()
    const dialog = page.getByRole('dialog')
    const keep = async (name) => {
      await dialog.getByRole('button', { name: 'Make the call' }).click()
      const [saved] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name: 'Save as a test' }).click()])
      check(saved.suggestedFilename() === 'invoice-review.test.yaml', saved.suggestedFilename())
      const text = readFileSync(await saved.path(), 'utf8').replace('"invoice-review.yaml"', 'invoice.yaml')
      writeFileSync(`${dir}/flows/${name}.test.yaml`, text)
      try {
        return [0, execFileSync(binary, ['test', `${dir}/flows/${name}.test.yaml`], { cwd: dir, encoding: 'utf8' })]
      } catch (e) {
        return [e.status, e.stdout + e.stderr]
      }
    }
    const [passed, said] = await keep('played')
    check(passed === 0 && /1 passed/.test(said), `the test of an unchanged call: ${said}`)
    await dialog.getByLabel('System').fill('You are an auditor.')
    const [failed, why] = await keep('changed-call')
    check(failed === 1 && why.includes('requests[0]: expected'), `the test of changed instructions: ${why}`)
    await page.context().close()
  })
}
