/** Tests of what lists have behind their first page, and of the budgets of sessions. */
export function listTests({ test, check, open, inspect, server }) {
  const remember = async (flow, message) => {
    const { body } = await server.api('POST', 'v1/sessions', { flow })
    const sent = await server.api('POST', `v1/sessions/${body.session}/messages?wait=60`, { message })
    check(sent.body.status === 'completed', `${flow}: ${JSON.stringify(sent.body).slice(0, 300)}`)
    return body.session
  }
  const quay = (n) => `Quay-${String(n).padStart(3, '0')}`
  const articles = (page) => page.getByRole('region', { name: 'Memory' }).getByRole('article')

  /** Scrolls the list from its beginning to its end and returns the texts of its items in order. */
  const readAll = (page) => page.getByRole('region', { name: 'Memory' }).evaluate(async (box) => {
    const seen = new Map()
    const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    box.scrollTop = 0
    for (let last = -1; box.scrollTop !== last; ) {
      await frame()
      for (const x of box.querySelectorAll('[data-index]')) seen.set(Number(x.dataset.index), x.querySelector('.text').textContent)
      last = box.scrollTop
      box.scrollTop += box.clientHeight / 2
    }
    return [...seen].sort((a, b) => a[0] - b[0]).map(([, text]) => text)
  })

  test('memory is listed to its oldest item, searched whole, and stays complete while items are added', async () => {
    await remember('ledger', Array.from({ length: 240 }, (_, i) => quay(i + 1)).join(','))
    const page = await open('#/memory')
    await page.getByText(quay(240), { exact: true }).waitFor()
    check((await articles(page).count()) <= 60, 'the list mounts what is not in view')
    await page.getByLabel('Find in memory').fill('QUAY-003')
    await page.getByText(quay(3), { exact: true }).waitFor()
    await page.getByText(quay(240), { exact: true }).waitFor({ state: 'detached' })
    await page.getByLabel('Find in memory').fill('Quay-')
    await page.getByText(quay(240), { exact: true }).waitFor()
    const box = page.getByRole('region', { name: 'Memory' })
    for (const last of [41, 1]) { // pages of 100
      await box.evaluate((x) => (x.scrollTop = x.scrollHeight))
      await page.getByRole('button', { name: 'Load more' }).click()
      await page.waitForFunction((text) => {
        const list = document.querySelector('[role=region][aria-label=Memory]')
        list.scrollTop = list.scrollHeight
        return [...list.querySelectorAll('.text')].some((x) => x.textContent === text)
      }, quay(last))
    }
    check((await page.getByRole('button', { name: 'Load more' }).count()) === 0, 'nothing is behind the last page')
    await inspect(page, 'memory-pages')
    await box.evaluate((x) => (x.scrollTop = 0))
    await remember('noted', 'Quay-241 is new.')
    await page.getByText('Quay-241 is new.', { exact: true }).waitFor()
    const texts = await readAll(page)
    const want = ['Quay-241 is new.', ...Array.from({ length: 240 }, (_, i) => quay(240 - i))]
    check(JSON.stringify(texts) === JSON.stringify(want), `the list has ${texts.length} items, and not ${want.filter((x) => !texts.includes(x))}`)
    await box.evaluate((x) => (x.scrollTop = 0))
    page.once('dialog', (d) => d.accept())
    await articles(page).filter({ hasText: quay(240) }).getByRole('button', { name: 'Forget' }).click()
    await page.getByText(quay(240), { exact: true }).waitFor({ state: 'detached' })
    check((await readAll(page)).length === 240, 'one item is forgotten')
    await page.context().close()
  })

  test('the budget of a session is shown and increased, and the next round has it', async () => {
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'thrifty' })
    const send = (message) => server.api('POST', `v1/sessions/${body.session}/messages?wait=30`, { message })
    check((await send('Is there a berth?')).body.status === 'completed', 'the first round has a budget')
    check((await send('How long?')).body.status === 'failed', 'the second round has none left')
    const page = await open(`#/chat/${body.session}`)
    await page.getByRole('link', { name: 'Budget of the session' }).click()
    const budget = page.getByRole('article', { name: 'Budget' })
    await budget.getByText('1 of 1', { exact: true }).waitFor()
    check((await page.getByRole('textbox', { name: 'Tokens' }).count()) === 0, 'tokens are not limited, and cannot be added')
    await page.getByRole('textbox', { name: 'Calls' }).fill('2')
    await inspect(page, 'session-budget')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await budget.getByText('1 of 3', { exact: true }).waitFor()
    await budget.getByText('of which were added: 2').waitFor()
    check((await send('How long?')).body.status === 'completed', 'the next round has what was added')
    await budget.getByText('2 of 3', { exact: true }).waitFor()
    await page.goto(`${server.url}#/sessions/${(await server.api('POST', 'v1/sessions', { flow: 'harbour' })).body.session}?tab=budget`)
    await page.getByText('The flow sets no budget for its sessions').waitFor()
    await inspect(page, 'session-no-budget')
    await page.context().close()
  })

  test('any two versions of a flow are compared, and what moved between nodes is shown as moved', async () => {
    const name = 'moored'
    const versions = []
    const node = (state) => ({ type: 'transform', with: { expr: '1', ...(state && { state }) } })
    for (const nodes of [
      { first: node({ berth: "'four'" }), second: node() },
      { first: node(), second: node({ berth: "'four'" }) },
      { first: node(), second: node({ berth: "'five'" }), third: { type: 'manualInput', with: { text: 'Moor here.' } } },
      { first: node(), second: node({ berth: "'five'" }), last: { type: 'manualInput', with: { text: 'Moor here.' } } },
    ]) {
      const tag = (await fetch(`${server.url}v1/flows/${name}`)).headers.get('ETag')
      const r = await fetch(`${server.url}v1/flows/${name}`, { method: 'PUT', headers: { 'Content-Type': 'application/json', ...(versions.length ? { 'If-Match': tag } : {}) }, body: JSON.stringify({ flow: JSON.stringify({ weir: 1, name, nodes }), promote: versions.length === 0, note: `version ${versions.length + 1}` }) })
      const body = await r.json()
      check(r.ok, JSON.stringify(body))
      versions.push(body.deployed?.versions?.[0]?.fingerprint ?? body.fingerprint)
    }
    const page = await open(`#/flows/${name}?tab=versions&version=${encodeURIComponent(versions[1])}`)
    const moved = page.getByRole('article', { name: 'Moved' })
    await moved.getByText('with.state.berth').waitFor()
    await moved.getByText("'four'", { exact: true }).waitFor()
    check(/first.*second/s.test(await moved.innerText()), await moved.innerText())
    check((await page.getByRole('article').count()) === 1, 'what moved is not shown as removed and added as well')
    await page.getByRole('button', { name: /version 4/ }).click()
    await page.getByLabel('Compared with').selectOption(versions[2])
    await moved.getByText('other name').waitFor()
    check(/third.*last/s.test(await moved.innerText()), await moved.innerText())
    check(page.url().includes(`with=${encodeURIComponent(versions[2])}`), page.url())
    await inspect(page, 'moved')
    await page.reload()
    await moved.getByText('other name').waitFor()
    await page.getByLabel('Compared with').selectOption(versions[1])
    await page.getByRole('article', { name: 'second' }).getByText("+ 'five'").waitFor()
    await page.getByRole('article', { name: 'last' }).getByText('Added').waitFor()
    check((await moved.count()) === 0, 'nothing moved between these versions')
    await page.context().close()
  })

  test('a round in which several nodes work is steered at the node that is chosen', async () => {
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'crew' })
    const { body: sent } = await server.api('POST', `v1/sessions/${body.session}/messages?wait=0`, { message: 'Describe the quay.' })
    const page = await open(`#/chat/${body.session}`)
    const choice = page.getByLabel('Node that takes the message')
    await choice.waitFor()
    check((await choice.locator('option').allInnerTexts()).sort().join() === 'mate,pilot', await choice.innerText())
    await choice.selectOption('mate')
    await page.getByRole('textbox', { name: 'Message' }).fill('How long?')
    await inspect(page, 'steer-node')
    await page.getByRole('button', { name: 'Interrupt' }).click()
    await page.getByText('Taken by mate').waitFor()
    const run = sent.run || (await server.api('GET', `v1/sessions/${body.session}`)).body.run
    const until = async (path, holds) => {
      for (;;) {
        const { body } = await server.api('GET', path)
        if (holds(body)) return body
        await new Promise((done) => setTimeout(done, 50))
      }
    }
    await until(`v1/runs/${run}/node?node=mate`, (x) => JSON.stringify(x).includes('Until noon. After that the tide is too low.'))
    await choice.waitFor({ state: 'detached' }) // the pilot alone works
    await page.getByRole('button', { name: 'Interrupt' }).click()
    await until(`v1/runs/${run}`, (x) => x.status === 'completed')
    await page.getByRole('button', { name: 'Interrupt' }).waitFor({ state: 'detached' })
    const { body: mate } = await server.api('GET', `v1/runs/${run}/node?node=mate`)
    const { body: pilot } = await server.api('GET', `v1/runs/${run}/node?node=pilot`)
    check(JSON.stringify(mate).includes('Until noon.') && !JSON.stringify(pilot).includes('Until noon.'), 'the mate alone took the message')
    await page.context().close()
  })

  test('the summary of a run is read once where nothing happens, and its tree mounts what is in view', async () => {
    const count = async (run, act) => {
      const page = await open('#/runs')
      await page.getByRole('link', { name: 'Memory' }).waitFor()
      const read = []
      page.on('request', (r) => r.url().includes(`/v1/runs/${run}/timeline`) && read.push(r.url()))
      await page.evaluate((id) => (location.hash = `#/runs/${id}`), run)
      await act(page)
      await page.context().close()
      return read.length
    }
    const done = (await server.api('POST', 'v1/runs?wait=60', { flow: 'lattice', inputs: {} })).body
    check(done.status === 'completed', JSON.stringify(done).slice(0, 300))
    check((await count(done.run, async (page) => {
      await page.getByRole('treeitem', { name: /n0 / }).waitFor()
      await page.getByRole('tab', { name: 'Journal' }).click()
      await page.getByRole('row', { name: /run.started/ }).waitFor()
      await page.getByRole('tab', { name: 'Timeline' }).click()
      const mounted = await page.getByRole('treeitem').count()
      check(mounted > 0 && mounted <= 80, `${mounted} of 2,000 nodes are mounted`)
    })) === 1, 'a run that has ended is read again')
    const waits = (await server.api('POST', 'v1/runs?wait=30', { flow: 'invoice-review', inputs: { invoice: '2000 EUR, ACME' } })).body
    check((await count(waits.run, async (page) => {
      await page.getByText('Approve 2000 EUR?').waitFor()
      await page.getByText('Live', { exact: true }).waitFor()
    })) === 1, 'a run that waits is read again')
    check((await count(waits.run, async (page) => {
      await page.getByText('Approve 2000 EUR?').waitFor()
      await page.getByText('Live', { exact: true }).waitFor()
      await server.api('POST', `v1/runs/${waits.run}/answer`, { interrupt: 'ask:ask#1', value: 'reject' })
      await page.getByText('We cannot approve the invoice').first().waitFor() // an output
    })) >= 2, 'a run that continues is not read again')
  })
}
