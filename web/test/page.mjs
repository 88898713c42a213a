// Drives the page in Chromium: node test/page.mjs WEIR [FOLDER for screenshots] [FOLDER of a documentation, whose screenshots are replaced]
import { copyFileSync, existsSync, readdirSync, readFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { chromium } from 'playwright-core'
import { canary, writeConfig, writeFlows } from './flows.mjs'
import { conversations, hasData, replies, writeDataFlows } from './data.mjs'
import { fileTests } from './files.mjs'
import { listTests } from './lists.mjs'
import { manageTests } from './manage.mjs'
import { moreTests } from './more.mjs'
import { tourTests } from './tour.mjs'
import { startModel } from './model.mjs'
import { Server } from './server.mjs'
import { shownTests } from './shown.mjs'

const [binary, shots, documented] = process.argv.slice(2)
const dir = mkdtempSync(`${tmpdir()}/weir-page-`)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
let failed = 0
const measured = []

function check(ok, what) {
  if (ok) return
  failed++
  console.log(`  FAILED: ${what}\n${new Error().stack.split('\n')[2]}`)
}

const data = hasData()
const model = await startModel(data ? replies(conversations(12)) : undefined)
writeConfig(dir, model.url)
const flows = writeFlows(`${dir}/flows`)
const server = new Server(binary, dir, data ? [...flows, ...writeDataFlows(`${dir}/flows`)] : flows)
server.env = { OPENAI_API_KEY: canary, WEIR_SECRET_CANARY: canary }
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })

async function open(hash, { width = 1360, height = 840, colorScheme = 'light', to = server, before } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.setDefaultTimeout(60000)
  if (before) await page.addInitScript(before)
  page.problems = []
  page.on('pageerror', (e) => page.problems.push(e.message))
  page.on('console', (m) => m.type() === 'error' && !/Failed to load resource|ERR_/.test(m.text()) && page.problems.push(m.text()))
  await page.goto(to.url + hash)
  return page
}

/** Checks a page that is shown: faults of accessibility, errors, the secret, and its width. Keeps a picture of it. */
async function inspect(page, name) {
  await page.waitForFunction(() => !document.querySelector('.mantine-Loader-root'))
  if (shots) await page.screenshot({ path: `${shots}/page-${name}.png` })
  const html = await page.content()
  check(!html.includes(canary), `${name}: the secret is in the document`)
  // The policy of the page allows no inline script, so axe is evaluated by the browser.
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }))
  for (const v of violations.filter((x) => ['serious', 'critical'].includes(x.impact))) {
    check(false, `${name}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any[0]?.message ?? ''}`).join(' | ')}`)
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
  check(!wide, `${name}: the page scrolls sideways`)
  check(page.problems.length === 0, `${name}: ${page.problems.join('; ')}`)
}

async function start(flow, inputs = {}, wait = 10) {
  const r = await server.api('POST', `v1/runs?wait=${wait}`, { flow, inputs })
  check(r.status === 201, `start ${flow}: ${JSON.stringify(r.body)}`)
  return r.body.run
}

/** The run when it has ended. */
async function ended(id) {
  for (let i = 0; ; i++) {
    const run = await server.api('GET', `v1/runs/${id}`)
    if (['completed', 'failed', 'cancelled'].includes(run.body.status) || i > 100) return run
    await new Promise((done) => setTimeout(done, 100))
  }
}

const only = process.env.ONLY
const list = []
const test = (name, f) => list.push([name, f])

test('the runs are listed, filtered by the address, and appear as they start', async () => {
  await start('invoice-review', { invoice: '1250 EUR, ACME, 40 chairs' })
  await start('stranded')
  await start('welcome', { names: ['Ada', 'Grace', 'Edsger'] })
  await start('invoice-review', { invoice: '80 EUR, Rope & Co' })
  await start('harbour', { message: 'Is there a berth?' })
  await start('invoice-review', { invoice: '7200 EUR, Quay Ltd, a crane' })
  await server.api('POST', `v1/runs/${await start('tide', {}, 0)}/cancel`, {})
  await start('welcome', { names: ['Barbara', 'Donald', 'Tony', 'Leslie', 'Alan'] })
  await start('stranded')
  const page = await open('#/runs')
  await page.getByRole('row', { name: /stranded/ }).first().waitFor()
  await inspect(page, 'runs')
  await page.getByRole('tab', { name: 'Failed' }).click()
  await page.waitForFunction(() => location.hash.includes('status=failed'))
  await page.getByRole('row', { name: /invoice-review/ }).first().waitFor({ state: 'detached' })
  await page.reload()
  await page.getByRole('row', { name: /stranded/ }).first().waitFor()
  check((await page.getByRole('row', { name: /invoice-review/ }).count()) === 0, 'the filter is lost by reloading')
  page.once('dialog', (d) => d.accept('What failed'))
  await page.getByRole('button', { name: 'Saved views' }).click()
  await page.getByRole('menuitem', { name: 'Save this view' }).click()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByRole('row', { name: /invoice-review/ }).first().waitFor()
  await page.getByRole('button', { name: 'Saved views' }).click()
  await page.getByRole('menuitem', { name: 'What failed', exact: true }).click()
  await page.getByRole('row', { name: /invoice-review/ }).first().waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByLabel('Find in this list').fill('approve 1250')
  await page.getByRole('row', { name: /stranded/ }).first().waitFor({ state: 'detached' })
  check((await page.getByRole('row', { name: /invoice-review/ }).count()) === 1, 'a text finds the question of a run')
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByLabel('Find in this list').fill('harbour master expects')
  await page.getByLabel('Search in the records').check()
  await page.getByRole('article').first().getByText('welcome', { exact: true }).waitFor()
  await page.locator('mark', { hasText: 'harbour master expects' }).first().waitFor()
  await inspect(page, 'search')
  await page.getByRole('button', { name: 'Clear filters' }).click()
  const id = await start('harbour', { message: 'Is there a berth?' })
  await page.getByRole('row', { name: new RegExp(id) }).waitFor()
  await page.context().close()
})

test('a run is started with a form, its question answered, and a node read', async () => {
  const page = await open('#/runs?start=1')
  await page.getByRole('dialog').getByLabel('Flow', { exact: true }).selectOption('invoice-review')
  await page.getByLabel('invoice').fill('1250 EUR, ACME, 40 chairs')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.locator('.ask').getByText('Approve 1250 EUR?').waitFor() // the list behind the form has such a question too
  await inspect(page, 'run-waiting')
  await page.getByRole('button', { name: 'approve' }).click()
  await page.getByRole('treeitem', { name: /confirm.*Completed/ }).waitFor()
  await page.getByRole('treeitem', { name: /decline.*Skipped/ }).waitFor()
  await page.getByRole('treeitem', { name: /opinion/ }).click()
  await page.getByText('computed').first().waitFor()
  await page.getByText(/^Is anything unusual about this invoice\? 1250 EUR/).first().waitFor()
  await page.getByRole('tab', { name: /Model calls/ }).click()
  await page.getByText('The digest in the journal proves this request').waitFor()
  await page.getByText('You review invoices for a small company. You are brief.').waitFor()
  await page.getByText('none with this model in the run').waitFor()
  await inspect(page, 'call')
  await page.getByText('local/harbour-1').first().waitFor()
  await page.getByText(/\$0\.000/).first().waitFor()
  check(/node=opinion/.test(page.url()) && /tab=calls/.test(page.url()), `the address lacks the node: ${page.url()}`)
  await page.reload()
  await page.getByText('The digest in the journal proves this request').waitFor()
  await page.getByRole('tab', { name: 'Graph' }).click()
  await page.locator('.gnode[data-s=skipped]', { hasText: 'decline' }).waitFor()
  await page.locator('.gnode', { hasText: 'confirm' }).click()
  await page.getByText('none: this call continues it').waitFor()
  await inspect(page, 'graph')
  await page.locator('.gnode', { hasText: 'reply' }).click()
  await page.getByRole('complementary', { name: 'reply' }).waitFor()
  await page.getByRole('tab', { name: 'Messages' }).click()
  await page.getByText('Is anything unusual about this invoice?').waitFor()
  await inspect(page, 'messages')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'What the model saw' }).click()
  const view = page.getByRole('region', { name: 'What the model saw' }).last()
  await view.getByText('You review invoices for a small company. You are brief.').waitFor()
  await view.getByText('Write one line that confirms the payment of 1250 EUR.').waitFor()
  await inspect(page, 'view')
  await page.context().close()
})

test('a run has labels, and it and its answers are rated', async () => {
  await start('harbour', { message: 'How long?' })
  const id = await start('harbour', { message: 'Is there a berth?' })
  const page = await open(`#/runs/${id}`)
  const panel = page.getByRole('complementary', { name: 'Run', exact: true })
  for (const label of ['berths', 'spring']) {
    await panel.getByLabel('Add a label').fill(label)
    await panel.getByRole('button', { name: 'Add', exact: true }).click()
    await panel.getByRole('link', { name: label }).waitFor()
  }
  await panel.getByLabel('Add a label').fill('Not A Label!')
  await panel.getByRole('button', { name: 'Add', exact: true }).click()
  await panel.getByRole('alert').waitFor()
  await panel.getByRole('button', { name: 'Remove the label spring' }).click()
  await panel.getByRole('link', { name: 'spring' }).waitFor({ state: 'detached' })
  await panel.getByRole('button', { name: 'Good' }).click()
  await panel.getByRole('button', { name: 'Good', pressed: true }).waitFor()
  await page.getByRole('treeitem', { name: /answer/ }).click()
  const answer = page.getByRole('complementary', { name: 'answer' })
  await answer.getByRole('button', { name: 'Bad' }).click()
  await answer.getByRole('button', { name: 'Bad', pressed: true }).waitFor()
  await answer.getByLabel('Note').fill('It does not say which berth is closest.')
  await answer.getByRole('button', { name: 'Save the note' }).click()
  await answer.getByRole('button', { name: 'Save the note', disabled: true }).waitFor()
  await page.keyboard.press('Escape')
  await panel.getByText('It does not say which berth is closest.').waitFor()
  await inspect(page, 'rated')
  const { body } = await server.api('GET', `v1/runs/${id}/ratings`)
  check(JSON.stringify(body.ratings.map((r) => [r.node, r.rating, r.note]).sort()) === JSON.stringify([['', 'up', ''], ['answer', 'down', 'It does not say which berth is closest.']]), JSON.stringify(body))
  await panel.getByRole('link', { name: 'berths' }).click()
  await page.getByRole('row', { name: new RegExp(id) }).waitFor()
  check((await page.locator('a.trow').count()) === 1, 'the list has runs without the label')
  await page.getByLabel('Label', { exact: true }).selectOption('')
  await page.locator('a.trow').nth(1).waitFor()
  await page.goto(`${server.url}#/runs/${id}`)
  await panel.getByRole('button', { name: 'Good' }).click() // again: the rating is withdrawn
  await panel.getByRole('button', { name: 'Good', pressed: false }).waitFor()
  check((await server.api('GET', `v1/runs/${id}/ratings`)).body.ratings.every((r) => r.node === 'answer'), 'the rating was not withdrawn')
  await page.context().close()
})

moreTests({ test, check, open, inspect, start, ended, server })
listTests({ test, check, open, inspect, server })
manageTests({ test, check, open, inspect, start, ended, server, binary, dir })
fileTests({ test, check, open, inspect, server, model })
shownTests({ test, check, open, inspect, start, ended, server, binary, dir })
if (data) tourTests({ test, check, open, inspect, start, ended, server })
else console.log('the data of others is not beside the checkout: no page is tested with it')

test('a failure names its cause, and texts are never HTML', async () => {
  const id = await start('stranded')
  const page = await open(`#/runs/${id}`)
  await page.route('**/export', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify({ title: 'busy', status: 503, code: 'overloaded', detail: 'The record cannot be read.', hint: 'Ask for it again.' }) }))
  await page.getByRole('button', { name: 'More', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Export' }).click()
  const alert = page.getByRole('alert').filter({ hasText: 'The record cannot be read. Ask for it again.' })
  await alert.waitFor()
  await inspect(page, 'failed-action')
  await alert.getByRole('button', { name: 'Close' }).click()
  await alert.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'First failure' }).click()
  await page.getByRole('complementary', { name: 'stuck' }).getByText('There is no berth for a ship of this size.').first().waitFor()
  await inspect(page, 'failure')
  await page.getByRole('button', { name: 'Try this node again' }).click()
  await page.getByText('Attempt 2').first().waitFor()
  await page.goto(`${server.url}#/runs/${id}?node=stuck&tab=attempts&attempt=2`)
  await page.getByRole('region', { name: 'Attempt 2' }).getByText(/Runs/).waitFor()
  await inspect(page, 'attempts')
  await page.goto(`${server.url}#/runs/${id}?node=stuck`)
  await page.getByRole('link', { name: 'failed' }).first().click()
  await page.getByText('A fail node without a code ended the flow').waitFor()
  await inspect(page, 'codes')
  await page.goto(`${server.url}#/runs/${id}`)
  await page.getByRole('treeitem', { name: /first/ }).click()
  await page.getByText('<b>bold</b>').first().waitFor()
  check((await page.locator('img[src=x]').count()) === 0 && (await page.title()) !== '1', 'a text became HTML')
  await page.context().close()
})

test('a live run is followed over a reload and a restart of the server', async () => {
  const id = await start('tide', {}, 0)
  const page = await open(`#/runs/${id}`)
  await page.getByRole('treeitem', { name: /one.*Completed/ }).waitFor()
  await page.reload()
  await page.getByRole('treeitem', { name: /two.*(Waiting|Completed)/ }).waitFor()
  const list = await open('#/runs')
  await list.getByRole('row', { name: /tide/ }).first().waitFor()
  await server.stop()
  await page.getByText('Connection lost; connecting again').waitFor()
  await list.getByText('The server does not answer').first().waitFor({ timeout: 60000 })
  check((await list.getByRole('row', { name: /tide/ }).count()) > 0, 'the list is lost while the server is away')
  await inspect(list, 'offline')
  await list.goto(`${server.url}#/usage`) // its script was not loaded before
  await list.getByRole('button', { name: 'Try again' }).waitFor()
  list.problems.length = 0
  await inspect(list, 'offline-empty')
  await list.goto(`${server.url}#/runs`)
  await server.start()
  await page.getByText('How many ships?').waitFor({ timeout: 90000 })
  await page.getByText('Connection lost; connecting again').waitFor({ state: 'detached', timeout: 90000 })
  await list.getByText('The server does not answer').first().waitFor({ state: 'detached', timeout: 90000 })
  await list.context().close()
  await page.getByRole('textbox', { name: 'Answer' }).fill('3')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('treeitem', { name: /four.*Completed/ }).waitFor()
  await page.context().close()
})

test('a question is answered on a phone', async () => {
  const id = await start('invoice-review', { invoice: '4200 EUR, Quay Ltd, 3 anchors' })
  const page = await open('#/inbox', { width: 390, height: 844 })
  const card = page.getByRole('article', { name: 'Approve 4200 EUR?' })
  await card.waitFor()
  check(/^\(\d+\)/.test(await page.title()), `the title lacks the number of questions: ${await page.title()}`)
  await inspect(page, 'phone-inbox')
  await card.getByRole('button', { name: 'approve', exact: true }).click()
  await card.waitFor({ state: 'detached' })
  const run = await ended(id)
  check(run.body.outputs.decision === 'approve', `the answer: ${JSON.stringify(run.body.outputs)}`)
  await page.setViewportSize({ width: 360, height: 740 })
  const { body: talk } = await server.api('POST', 'v1/sessions', { flow: 'harbour' })
  await server.api('POST', `v1/sessions/${talk.session}/messages?wait=10`, { message: 'Is there a berth?' })
  for (const [name, hash] of [
    ['runs', '#/runs'], ['run', `#/runs/${id}`], ['tree', `#/runs/${id}?view=timeline`], ['node', `#/runs/${id}?node=opinion`], ['call', `#/runs/${id}?node=opinion&tab=calls`], ['graph', `#/runs/${id}?view=graph`],
    ['messages', `#/runs/${id}?view=messages`], ['view', `#/runs/${id}?view=messages&beside=view`], ['compare', `#/runs/${id}?view=compare`], ['fork', `#/runs/${id}?fork=read`], ['usage', '#/usage'], ['answered', '#/inbox?tab=answered'], ['flows', '#/flows'], ['flow', '#/flows/invoice-review'],
    ['chat', '#/chat'], ['conversation', `#/chat/${talk.session}`], ['sessions', '#/sessions'], ['session', `#/sessions/${talk.session}?tab=trajectory`], ['memory', '#/memory'], ['codes', '#/codes'], ['start', '#/runs?start=invoice-review'],
  ]) {
    await page.goto(server.url + hash)
    await page.getByRole('main').waitFor()
    await inspect(page, `phone-${name}`)
  }
  await page.goto(`${server.url}#/runs`)
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'More', exact: true }).last().click()
  await page.getByRole('menuitem', { name: 'Memory' }).waitFor()
  await inspect(page, 'phone-menu')
  await page.getByRole('menuitem', { name: 'Dark colours' }).click()
  check((await page.locator('html').getAttribute('data-mantine-color-scheme')) === 'dark', 'the colours of a phone cannot be changed')
  await page.getByRole('button', { name: 'More', exact: true }).last().click()
  await page.getByRole('menuitem', { name: 'Memory' }).click()
  await page.getByRole('heading', { name: 'Memory' }).waitFor()
  await page.context().close()
})

test('the slider moves the whole page through the journal', async () => {
  const id = await start('invoice-review', { invoice: '10 EUR, Rope & Co' })
  const page = await open(`#/runs/${id}`)
  await page.getByRole('treeitem', { name: /reply.*Completed/ }).waitFor()
  await page.getByLabel('Position in the journal').fill('3')
  await page.getByRole('treeitem', { name: /reply.*Pending/ }).waitFor()
  check(/at=3/.test(page.url()), page.url())
  await inspect(page, 'past')
  await page.getByRole('button', { name: 'Show the latest' }).click()
  await page.getByRole('treeitem', { name: /reply.*Completed/ }).waitFor()
  await page.context().close()
})

test('a run is forked from a node with another input, and compared', async () => {
  const id = await start('invoice-review', { invoice: '10 EUR, Rope & Co' })
  const page = await open(`#/runs/${id}?node=read`)
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByRole('dialog').getByLabel('invoice').fill('9000 EUR, Rope & Co')
  await page.getByText('runs again').waitFor()
  await inspect(page, 'fork')
  await page.getByRole('button', { name: 'Fork and run' }).click()
  await page.waitForFunction((old) => !location.hash.includes(old), id)
  await page.getByText('Approve 9000 EUR?').waitFor()
  await page.getByRole('link', { name: 'Compare' }).click()
  await page.getByText('9000 EUR, Rope & Co').first().waitFor()
  await inspect(page, 'compare')
  await page.context().close()
})

test('the state before and after a node is shown as a difference', async () => {
  const id = await start('invoice-review', { invoice: '10 EUR, Rope & Co' })
  const page = await open(`#/runs/${id}?node=read&tab=state`)
  const panel = page.getByRole('complementary', { name: 'read' })
  await panel.locator('.cm-merge-b', { hasText: '10' }).waitFor()
  check((await panel.locator('.cm-merge-a .cm-line').allInnerTexts()).join('').trim() === '', 'the state was empty before')
  await inspect(page, 'state')
  await page.goto(`${server.url}#/runs/${id}?node=reply&tab=state`)
  await page.getByText('The node did not change the state').waitFor()
  await page.context().close()
})

test('composites are folded in the graph until they are opened', async () => {
  const id = await start('welcome', { names: ['Ada', 'Grace', 'Edsger'] })
  const page = await open(`#/runs/${id}?view=graph`)
  await page.locator('.gnode', { hasText: /welcome.*×3/ }).waitFor()
  check((await page.locator('.gnode').count()) === 1, 'the body is drawn before it is opened')
  await page.getByRole('button', { name: 'Expand welcome' }).click()
  await page.locator('.gnode', { hasText: 'card' }).waitFor()
  check(/open=welcome/.test(page.url()), 'the address lacks what is open')
  await page.goto(`${server.url}#/runs/${id}?view=split&node=${encodeURIComponent('welcome#2/line')}`)
  await page.getByRole('complementary', { name: 'welcome#2/line' }).waitFor()
  await page.locator('.gnode[data-chosen=true]').waitFor()
  await inspect(page, 'split')
  await page.context().close()
})

test('an image is shown', async () => {
  const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
  const id = await start('seen', { picture: { kind: 'image', mime: 'image/png', name: 'dot.png', data: dot } })
  const page = await open(`#/runs/${id}`)
  const image = page.getByRole('img', { name: 'dot.png' })
  await image.waitFor()
  check(await image.evaluate((x) => x.decode().then(() => x.naturalWidth === 1)), 'the image is not shown')
  check(page.problems.length === 0, page.problems.join('; '))
  await page.context().close()
})

test('what is remembered is found and forgotten', async () => {
  const { body } = await server.api('POST', 'v1/sessions', { flow: 'noted' }) // memory belongs to a user or a session
  const sent = await server.api('POST', `v1/sessions/${body.session}/messages?wait=10`, { message: 'Ada sails a ketch.' })
  check(sent.body.status === 'completed', JSON.stringify(sent.body))
  const page = await open('#/memory')
  await page.getByText('Ada sails a ketch.').waitFor()
  await inspect(page, 'memory')
  await page.getByLabel('Find in memory').fill('sails a ketch')
  await page.getByRole('article').nth(1).waitFor({ state: 'detached' })
  page.once('dialog', (d) => d.accept())
  await page.getByRole('article').getByRole('button', { name: 'Forget' }).click()
  await page.getByText('Ada sails a ketch.').waitFor({ state: 'detached' })
  await page.context().close()
})

test('a flow that was put has versions, which are compared, promoted and rolled back', async () => {
  const put = (text, note, tag, more = '') => fetch(`${server.url}v1/flows/greeting`, { method: 'PUT', headers: { 'Content-Type': 'application/json', ...(tag ? { 'If-Match': tag } : {}) }, body: JSON.stringify({ flow: `{weir: 1, name: greeting, nodes: {say: {type: manualInput, with: {text: ${text}}}${more}}, outputs: {line: '{{ say.text }}'}}`, promote: !tag, note }) })
  const first = await put('Hello', 'short')
  await put('Good morning', 'longer', first.headers.get('ETag'), ', more: {type: manualInput, with: {text: and welcome}}')
  const page = await open('#/flows/greeting?tab=versions')
  const change = page.getByRole('article', { name: 'say' })
  await change.getByText('- Hello').waitFor()
  await change.getByText('+ Good morning').waitFor()
  await page.getByRole('article', { name: 'more' }).getByText('Added').waitFor()
  await inspect(page, 'versions')
  await page.getByRole('button', { name: 'Show the lines' }).click()
  await page.locator('.cm-merge-b', { hasText: 'Good morning' }).waitFor()
  await page.getByRole('button', { name: 'Promote' }).click()
  await page.getByRole('button', { name: 'Roll back to this' }).waitFor()
  const now = await server.api('GET', 'v1/flows/greeting')
  check(JSON.stringify(now.body.flow).includes('Good morning'), 'the version was not promoted')
  await page.getByRole('button', { name: 'Roll back to this' }).click()
  await page.getByRole('button', { name: 'Promote' }).waitFor()
  await page.context().close()
})

test('a conversation streams, and its rounds lead to their runs', async () => {
  const page = await open('#/chat')
  await page.getByRole('article').filter({ hasText: 'harbour' }).getByRole('button', { name: 'New conversation' }).click()
  await page.getByLabel('Message').fill('Is there a berth?')
  await page.keyboard.press('Enter')
  await page.getByText('Berth 4 is free.').waitFor()
  await page.getByLabel('Message').fill('How long?')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Until noon.').waitFor()
  await page.getByRole('button', { name: 'Show the run' }).click()
  await page.getByRole('complementary', { name: 'Run' }).getByRole('treeitem', { name: /answer/ }).waitFor()
  await inspect(page, 'chat')
  const before = page.url()
  await page.getByRole('button', { name: 'Edit', exact: true }).first().click()
  await page.getByRole('textbox', { name: 'Edit' }).fill('How long may I stay?')
  await page.locator('form.card').getByRole('button', { name: 'Send' }).click()
  await page.waitForFunction((old) => location.href !== old, before)
  await page.getByText('Until noon.').waitFor()
  check((await page.getByText('Is there a berth?').count()) === 0, 'the edited message replaces the old one in the copy')
  await page.goto(before)
  await page.getByText('Is there a berth?').waitFor()
  await page.getByRole('button', { name: 'Regenerate' }).first().click()
  await page.waitForFunction((old) => location.href !== old, before)
  await page.getByText('Is there a berth?').waitFor()
  await page.getByText('Berth 4 is free.').waitFor()
  check((await page.getByText('Until noon.').count()) === 0, 'the copy ends with the message that is answered again')
  await page.getByRole('link', { name: 'Original conversation' }).click()
  await page.getByText('Until noon.').waitFor()
  await page.getByRole('link', { name: 'Sessions' }).last().click()
  await page.getByRole('tab', { name: 'Trajectory' }).click()
  await page.getByRole('img', { name: 'Trajectory' }).waitFor()
  await inspect(page, 'session')
  await page.context().close()
})

test('a flow is edited with its problems beside it', async () => {
  const page = await open('#/flows/invoice-review')
  await page.locator('.gnode', { hasText: 'opinion' }).waitFor()
  await page.getByText('Valid', { exact: true }).waitFor()
  await inspect(page, 'flow')
  await page.getByLabel('Source').click()
  await page.keyboard.press('Control+End')
  await page.keyboard.type('oops')
  await page.getByText(/\d+ problems/).waitFor()
  await page.locator('.problems').waitFor()
  await page.keyboard.press('Control+a')
  await page.keyboard.type('weir: 1\nname: x\nnodes:\n  a:\ntype: llm')
  await page.keyboard.press('Control+Space')
  await page.locator('.cm-tooltip-autocomplete').getByText('llmRequest', { exact: true }).waitFor()
  await page.context().close()
})

test('a recorded call is made again with another message, and compared', async () => {
  const id = await start('harbour', { message: 'Is there a berth?' })
  const page = await open(`#/runs/${id}?node=answer&tab=calls`)
  await page.getByRole('button', { name: 'Playground' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Last message of the user').fill('How long may I stay?')
  await dialog.getByRole('button', { name: 'Make the call' }).click()
  await dialog.locator('.cm-merge-b', { hasText: 'Until noon.' }).waitFor()
  await dialog.locator('.cm-merge-a', { hasText: 'Berth 4 is free.' }).waitFor()
  await inspect(page, 'playground')
  await page.context().close()
})

test('a model is offered tools in the playground, whose outputs the person gives', async () => {
  const id = await start('harbour', { message: 'Is there a berth?' })
  const page = await open(`#/runs/${id}?node=answer&tab=calls`)
  await page.getByRole('button', { name: 'Playground' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Tools', { exact: false }).first().click()
  const tools = dialog.getByRole('textbox', { name: 'Tools' })
  await tools.fill('[{"name": ')
  check(await dialog.getByRole('button', { name: 'Make the call' }).isDisabled(), 'a list of tools that is no JSON can be sent')
  await tools.fill(JSON.stringify(['depth', 'tide'].map((name) => ({ name, description: `The ${name} at a berth.`, parameters: { type: 'object', properties: { berth: { type: 'integer' } } } })), null, 2))
  await dialog.getByRole('button', { name: 'Make the call' }).click()
  await dialog.getByRole('textbox', { name: 'Output of depth' }).fill('three metres')
  await dialog.getByRole('textbox', { name: 'Output of tide' }).fill('rising')
  await inspect(page, 'playground-tools')
  await dialog.getByRole('button', { name: 'Give the outputs' }).click()
  await dialog.locator('.cm-merge-b', { hasText: 'It is rising.' }).waitFor()
  await dialog.getByText('Completed').waitFor()
  // What is closed while it waits is cancelled, and leaves nothing in the inbox.
  await dialog.getByRole('button', { name: 'Make the call' }).click()
  await dialog.getByRole('textbox', { name: 'Output of tide' }).waitFor()
  const played = await dialog.getByRole('link', { name: 'Open the run' }).getAttribute('href')
  await dialog.getByRole('button', { name: 'Close' }).first().click()
  await page.goto(`${server.url}${played}`)
  await page.getByText('Cancelled').first().waitFor()
  await page.context().close()
})

test('what was spent is added up, and bounded', async () => {
  const page = await open('#/usage')
  await page.getByRole('row', { name: /Total/ }).waitFor()
  const form = page.getByRole('form', { name: 'Set a quota' })
  await form.getByLabel('User, or * for everyone').fill('ada')
  await form.getByLabel('Calls').fill('500')
  await form.getByRole('button', { name: 'Set' }).click()
  await page.getByRole('article', { name: 'ada' }).getByText('of 500').waitFor()
  await inspect(page, 'usage')
  await page.getByRole('tab', { name: 'Model' }).click()
  await page.getByRole('row', { name: /harbour-1/ }).waitFor()
  await inspect(page, 'usage-models')
  await page.context().close()
})

test('everything is there in the dark', async () => {
  const id = await start('invoice-review', { invoice: '1250 EUR, ACME, 40 chairs' })
  for (const [name, hash, wanted] of [
    ['runs', '#/runs', 'a.trow'], ['run', `#/runs/${id}?node=opinion&tab=calls`, '.message'], ['graph', `#/runs/${id}?view=graph`, '.gnode'],
    ['inbox', '#/inbox', 'article'], ['flow', '#/flows/invoice-review', '.cm-line'],
  ]) {
    const page = await open(hash, { colorScheme: 'dark' })
    await page.getByRole('main').waitFor()
    await page.locator(wanted).first().waitFor()
    await inspect(page, `dark-${name}`)
    await page.context().close()
  }
})

test('the page is used with the keyboard alone', async () => {
  await start('stranded')
  const id = await start('invoice-review', { invoice: '10 EUR, Rope & Co' })
  const page = await open(`#/runs/${id}`)
  await page.getByRole('treeitem', { name: /read/ }).waitFor()
  await page.keyboard.press('Tab')
  check((await page.evaluate(() => document.activeElement.className)) === 'skip', 'the first stop is not the link to the content')
  await page.keyboard.press('Enter')
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab')
    if ((await page.evaluate(() => document.activeElement.getAttribute('role'))) === 'tree') break
  }
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.getByRole('complementary', { name: 'opinion' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Run' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog').getByRole('combobox').fill('invoice 10,000 EUR')
  await page.getByText('Nothing matches').waitFor()
  await page.getByRole('dialog').getByRole('combobox').fill('stranded berth')
  await page.getByRole('option', { name: /no berth for a ship/ }).first().waitFor()
  await inspect(page, 'go')
  await page.keyboard.press('Enter')
  await page.getByRole('treeitem', { name: /stuck/ }).waitFor()
  await page.context().close()
})

test('a run of 2,000 nodes', async () => {
  const id = await start('lattice', {}, 60)
  const page = await open('#/runs')
  await page.evaluate(() => {
    window.long = []
    new PerformanceObserver((l) => window.long.push(...l.getEntries().map((e) => Math.round(e.duration)))).observe({ entryTypes: ['longtask'] })
  })
  const began = Date.now()
  await page.evaluate((run) => (location.hash = `#/runs/${run}`), id)
  await page.getByRole('treeitem', { name: /n0 / }).waitFor()
  const tree = Date.now() - began
  await page.getByRole('tab', { name: 'Graph' }).click()
  await page.locator('.graph-far').waitFor()
  const graph = Date.now() - began - tree
  let most = 0
  for (let i = 0; i < 24 && most === 0; i++) {
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
    most = Math.max(most, await page.locator('.gnode').count())
  }
  check(most <= 300 && most > 0, `${most} nodes are mounted`)
  const tasks = await page.evaluate(() => window.long)
  measured.push(`2,000 nodes: tree ${tree} ms, graph ${graph} ms, at most ${most} nodes mounted, tasks over 50 ms: ${tasks.join(', ') || 'none'}`)
  await inspect(page, 'large')
  await page.context().close()
})

test('a server with tokens asks for one, and each user sees their own', async () => {
  const guarded = new Server(binary, `${dir}`, server.flows, { tokens: true, base: '/tools/weir' })
  guarded.port = 0
  Object.defineProperty(guarded, 'db', { value: `${dir}/guarded.db` })
  const made = await guarded.command('tokens', 'create', '--user', 'ada', '--scope', 'read')
  const token = /weir_[a-z0-9]+/.exec(made.out + made.err)[0]
  await guarded.start()
  const page = await open('#/runs', { to: guarded })
  await page.getByLabel('Token').waitFor()
  await inspect(page, 'login')
  await page.getByLabel('Token').fill('weir_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('The server does not accept this token.').waitFor()
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('No runs yet').waitFor()
  check((await page.getByRole('button', { name: 'Start a run' }).count()) === 0, 'a token that may not start shows the button')
  check(!(await page.content()).includes(token), 'the token is in the document')
  await inspect(page, 'empty')
  for (const [name, text] of [['memory', 'Nothing is remembered'], ['sessions', 'No sessions yet'], ['inbox', 'No questions are waiting'], ['usage', 'Nothing was spent in this time']]) {
    await page.goto(`${guarded.url}#/${name}`)
    await page.getByText(text).waitFor()
    await inspect(page, `empty-${name}`)
  }
  await page.context().close()
  await guarded.stop()
})

if (shots) mkdirSync(shots, { recursive: true })
const everything = Date.now()
try {
  await server.start()
  for (const [name, f] of list) {
    if (only && !name.match(only)) continue
    const began = Date.now()
    try {
      await f()
    } catch (e) {
      check(false, `${name}: ${e.message}`)
    }
    console.log(`${name}: ${Date.now() - began} ms`)
  }
} finally {
  await browser.close()
  await server.stop()
  model.stop()
  rmSync(dir, { recursive: true, force: true })
}
for (const name of documented ? readdirSync(documented).filter((x) => existsSync(`${shots}/${x}`)) : []) copyFileSync(`${shots}/${name}`, `${documented}/${name}`)
for (const m of measured) console.log(m)
console.log(`${list.length} tests, ${failed} failures, ${Math.round((Date.now() - everything) / 1000)} s`)
process.exit(failed ? 1 : 0)
