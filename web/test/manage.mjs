import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { canary } from './flows.mjs'

/** A second of silence as a sound file. */
function wav() {
  const samples = 8000
  const b = Buffer.alloc(44 + samples, 128)
  b.write('RIFF', 0)
  b.writeUInt32LE(36 + samples, 4)
  b.write('WAVEfmt ', 8)
  b.writeUInt32LE(16, 16)
  b.writeUInt16LE(1, 20)
  b.writeUInt16LE(1, 22)
  b.writeUInt32LE(8000, 24)
  b.writeUInt32LE(8000, 28)
  b.writeUInt16LE(1, 32)
  b.writeUInt16LE(8, 34)
  b.write('data', 36)
  b.writeUInt32LE(samples, 40)
  return b
}

const dot = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64')

/** Tests of what people keep and change on the server: files, titles of sessions, who may use a flow. */
export function manageTests({ test, check, open, inspect, start, ended, server, binary, dir }) {
  test('files are uploaded, shown by their kind, saved and deleted', async () => {
    const page = await open('#/files')
    const field = page.getByLabel('Upload a file', { exact: true }).first()
    await field.setInputFiles({ name: 'tides.txt', mimeType: 'text/plain', buffer: Buffer.from('High at noon.\n<b>Low</b> at six.') })
    const panel = page.getByRole('complementary', { name: 'tides.txt' })
    await panel.getByText('<b>Low</b> at six.').waitFor()
    check(/file=file-/.test(page.url()), `the address lacks the file: ${page.url()}`)
    await page.reload()
    await panel.getByText('High at noon.').waitFor()
    const [saved] = await Promise.all([page.waitForEvent('download'), panel.getByRole('link', { name: /tides.txt/ }).click()])
    check(saved.suggestedFilename() === 'tides.txt', saved.suggestedFilename())
    await field.setInputFiles({ name: 'horn.wav', mimeType: 'audio/wav', buffer: wav() })
    await page.getByRole('alert').getByText('the content is not text').waitFor()
    await field.setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: dot })
    await page.waitForFunction(() => document.querySelector('img[alt="dot.png"]')?.naturalWidth === 1)
    await inspect(page, 'files')
    await page.keyboard.press('Escape')
    await page.getByRole('complementary').waitFor({ state: 'detached' })
    await page.getByRole('row', { name: /tides.txt/ }).click()
    page.once('dialog', (d) => d.dismiss())
    await panel.getByRole('button', { name: 'Delete' }).click()
    await panel.getByText('High at noon.').waitFor()
    page.once('dialog', (d) => d.accept())
    await panel.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('row', { name: /tides.txt/ }).waitFor({ state: 'detached' })
    await page.getByRole('row', { name: /dot.png/ }).waitFor()
    check(!(await server.api('GET', 'v1/files')).body.data.some((f) => f.filename === 'tides.txt'), 'the file is still there')
    await page.goto(`${server.url}#/files?file=file-none`)
    await page.getByRole('alert').waitFor()
    await page.context().close()
  })

  test('more files than a page are listed to the oldest one, and few of them are mounted', async () => {
    for (let i = 0; i < 120; i++) {
      const form = new FormData()
      form.set('file', new Blob([`Ship ${i}`], { type: 'text/plain' }), `ship-${String(i).padStart(3, '0')}.txt`)
      const r = await fetch(`${server.url}v1/files`, { method: 'POST', body: form })
      check(r.status === 200, `upload: ${r.status}`)
    }
    const page = await open('#/files')
    await page.getByRole('row', { name: /ship-119/ }).waitFor()
    check((await page.locator('a.trow').count()) < 60, 'the list mounts what is not in view')
    const toEnd = () => page.waitForFunction(() => {
      const box = document.querySelector('[role=table]').closest('.body')
      box.scrollTop = box.scrollHeight
      return [...box.querySelectorAll('button')].some((b) => b.textContent === 'Load more') || [...box.querySelectorAll('a.trow')].some((r) => r.textContent.includes('ship-000'))
    })
    await toEnd()
    await page.getByRole('button', { name: 'Load more' }).click()
    await page.waitForFunction(() => {
      const box = document.querySelector('[role=table]').closest('.body')
      box.scrollTop += 1000
      return [...box.querySelectorAll('a.trow')].some((r) => r.textContent.includes('ship-000'))
    })
    await page.context().close()
  })

  test('a session is renamed, and its title is where it is listed', async () => {
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'harbour' })
    await server.api('POST', `v1/sessions/${body.session}/messages?wait=30`, { message: 'Is there a berth?' })
    const page = await open(`#/sessions/${body.session}`)
    await page.getByRole('heading', { name: 'harbour', level: 1 }).waitFor()
    await page.getByRole('row', { name: /Completed/ }).waitFor()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.keyboard.type('Berth of the Ada')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Berth of the Ada', level: 1 }).waitFor()
    check((await server.api('GET', `v1/sessions/${body.session}`)).body.title === 'Berth of the Ada', 'the server has no title')
    await inspect(page, 'renamed')
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByLabel('Title of the session').fill('Another')
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Berth of the Ada', level: 1 }).waitFor()
    await page.goto(`${server.url}#/sessions`)
    await page.getByRole('row', { name: /Berth of the Ada/ }).waitFor()
    await page.goto(`${server.url}#/chat`)
    await page.getByRole('link', { name: /Berth of the Ada/ }).click()
    await page.getByRole('heading', { name: 'Berth of the Ada', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByLabel('Title of the session').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'harbour', level: 1 }).waitFor()
    await page.context().close()
  })

  test('who may use a flow that was put, and what it may use, is shown and changed', async () => {
    const text = "{weir: 1, name: lent, nodes: {say: {type: manualInput, with: {text: Hello}}}, outputs: {line: '{{ say.text }}'}}"
    check((await server.api('PUT', 'v1/flows/lent', { flow: text, promote: true })).status === 200, 'the flow is put')
    const of = async () => (await server.api('GET', 'v1/flows/lent')).body.deployed
    const page = await open('#/flows/lent?tab=access')
    const users = page.getByRole('group', { name: 'Who may use the flow' })
    await users.getByText('Nobody but the owner').waitFor()
    for (const name of ['bob', '*']) {
      await users.getByRole('textbox').fill(name)
      await users.getByRole('button', { name: 'Add' }).click()
      await users.getByRole('button', { name: `Remove ${name}` }).waitFor()
    }
    check(JSON.stringify((await of()).access) === '["bob","*"]', JSON.stringify(await of()))
    await users.getByRole('button', { name: 'Remove bob' }).click()
    await users.getByRole('button', { name: 'Remove bob' }).waitFor({ state: 'detached' })
    await users.getByText('everyone', { exact: true }).waitFor()
    const kinds = { 'Model providers': ['providers', 'local'], Hosts: ['hosts', 'api.example.org'], Secrets: ['secrets', 'CANARY'], Tools: ['tools', 'remember'], 'MCP servers': ['servers', 'files'], 'Executors of code': ['executors', 'python'], 'Other flows': ['flows', 'harbour'] }
    for (const [label, [kind, name]] of Object.entries(kinds)) {
      const group = page.getByRole('group', { name: label, exact: true })
      await group.getByText('Nothing').waitFor()
      await group.getByRole('textbox').fill(name)
      await group.getByRole('button', { name: 'Grant' }).click()
      await group.getByRole('button', { name: `Remove ${name}` }).waitFor()
      check(JSON.stringify((await of()).grants[kind]) === JSON.stringify([name]), `${kind}: ${JSON.stringify((await of()).grants)}`)
    }
    await inspect(page, 'access')
    await page.getByRole('button', { name: 'Remove CANARY' }).click()
    await page.getByRole('button', { name: 'Remove CANARY' }).waitFor({ state: 'detached' })
    const grants = (await of()).grants
    check(grants.secrets.length === 0 && grants.hosts[0] === 'api.example.org', JSON.stringify(grants))
    await page.goto(`${server.url}#/flows/harbour?tab=access`)
    await page.getByText('This flow is read from a file').waitFor()
    await page.context().close()
  })

  test('a fork marks the nodes that it did not run, and says what was spent before it', async () => {
    const id = await start('invoice-review', { invoice: '1250 EUR, ACME, 40 chairs' })
    await server.api('POST', `v1/runs/${id}/answer`, { interrupt: 'ask:ask#1', value: 'approve' })
    await ended(id)
    const { body } = await server.api('POST', `v1/runs/${id}/fork`, { from: 'confirm' })
    await ended(body.run)
    const page = await open(`#/runs/${body.run}`)
    const row = (name) => page.getByRole('treeitem', { name: new RegExp(`^${name}`) })
    await row('opinion').getByText('shared', { exact: true }).waitFor()
    await row('confirm').waitFor()
    check((await row('confirm').getByText('shared', { exact: true }).count()) === 0, 'a node that ran in the fork is marked as shared')
    await page.getByText('Spent before the fork').waitFor()
    await row('opinion').click()
    const panel = page.getByRole('complementary', { name: 'opinion' })
    await inspect(page, 'shared')
    await panel.getByRole('link', { name: id }).click()
    await page.waitForFunction((x) => location.hash.includes(x), id)
    await page.getByRole('complementary', { name: 'opinion' }).waitFor()
    check((await page.getByText('shared', { exact: true }).count()) === 0, 'the original shares nothing')
    await page.context().close()
  })

  test('sound is played where a value or a message has it', async () => {
    const id = await start('seen', { picture: { kind: 'audio', mime: 'audio/wav', name: 'horn.wav', data: wav().toString('base64') } })
    const page = await open(`#/runs/${id}`)
    await page.waitForFunction(() => document.querySelector('audio[aria-label="horn.wav"]')?.duration === 1)
    await inspect(page, 'audio')
    await page.context().close()
  })

  test('many contexts are listed, and those in view are mounted', async () => {
    const id = await start('shelves', {}, 60)
    await ended(id)
    const { contexts } = (await server.api('GET', `v1/runs/${id}/timeline?limit=1`)).body
    check(contexts.length > 60, `the run has ${contexts.length} contexts`)
    const page = await open(`#/runs/${id}?view=messages`)
    const tree = page.getByRole('navigation', { name: 'Contexts' })
    await tree.getByRole('button').nth(5).waitFor()
    check((await tree.getByRole('button').count()) < 60, 'the tree mounts what is not in view')
    const last = contexts.at(-1)
    await tree.evaluate((x) => (x.scrollTop = x.scrollHeight))
    await tree.getByRole('button', { name: last.label || last.id }).last().click()
    await page.waitForFunction((x) => new URLSearchParams(location.hash.split('?')[1]).get('context') === x, last.id)
    await page.getByText('This context has no messages').waitFor()
    await page.context().close()
  })
  test('a fork is copied as a command that makes it, and a start as a request that makes it', async () => {
    const id = await start('invoice-review', { invoice: '80 EUR, Rope & Co' })
    await ended(id)
    const page = await open(`#/runs/${id}?fork=read`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const dialog = page.getByRole('dialog')
    const copied = async (menu, item) => {
      await dialog.getByRole('button', { name: menu }).click()
      await page.getByRole('menuitem', { name: item }).click()
      return page.evaluate(() => navigator.clipboard.readText())
    }
    await dialog.getByLabel('invoice').fill("95 EUR, O'Hara & Co")
    await dialog.getByText('is where the fork begins').waitFor()
    const command = await copied('More: Fork', 'Copy as command')
    // The model is a server of this process: the command must not stop it.
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', command.replace(/^weir/, binary)], { cwd: dir, env: { ...process.env, WEIR_DB: server.db, OPENAI_API_KEY: canary } })
    const said = stdout + stderr
    const made = (await server.api('GET', 'v1/runs?flow=invoice-review&limit=1')).body.runs[0].run
    const { body } = await server.api('GET', `v1/runs/${made}/value?part=inputs&name=invoice`)
    check(body === "95 EUR, O'Hara & Co", `${command} gave ${JSON.stringify(body)}: ${said}`)
    await page.goto(`${server.url}#/runs?start=harbour`)
    await dialog.getByLabel('message').fill("Is there a berth for O'Hara?")
    const request = await copied('More: Start a run', 'Copy as curl')
    const [, sent, address] = /-d '(.*)' (\S+)$/.exec(request)
    const r = await fetch(address, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: sent.replaceAll("'\\''", "'") })
    check(r.status === 201, `${request}: ${r.status}`)
    await page.context().close()
  })

  test('answers in a conversation have their emphasis, lists and code, and HTML stays text', async () => {
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'harbour' })
    await server.api('POST', `v1/sessions/${body.session}/messages?wait=30`, { message: 'Show a format' })
    const page = await open(`#/chat/${body.session}`)
    const answer = page.locator('.bubble[data-role=assistant]')
    await answer.locator('b', { hasText: 'Berth 4' }).waitFor()
    check((await answer.locator('.item').count()) === 3, 'the list has three items')
    check((await answer.locator('pre').innerText()) === 'moor --berth 4\n  --stern', await answer.locator('pre').innerText())
    await answer.locator('code', { hasText: '16 A' }).waitFor()
    await answer.getByText('<img src=x onerror=document.title=1>').waitFor()
    check((await answer.locator('img').count()) === 0 && (await page.title()) !== '1', 'a text became HTML')
    await answer.getByText('2 * 3 * 4 = 24', { exact: false }).waitFor()
    await inspect(page, 'formatted')
    await page.goto(`${server.url}#/runs/${(await server.api('GET', `v1/sessions/${body.session}/messages`)).body.messages[0].run}?view=messages`)
    await page.getByRole('log').getByText('**Berth 4**').waitFor() // the record shows what was sent
    await page.context().close()
  })

  test('earlier messages of a long conversation are loaded', async () => {
    const { body } = await server.api('POST', 'v1/sessions', { flow: 'chorus' })
    for (let i = 0; i < 8; i++) await server.api('POST', `v1/sessions/${body.session}/messages?wait=60`, { message: `Round ${i}` }) // of 62 messages each
    const page = await open(`#/chat/${body.session}`)
    const log = page.getByRole('log')
    await log.getByText('Round 7', { exact: true }).waitFor()
    check((await log.getByText('Verse 1', { exact: true }).count()) === 3, 'the first messages are shown at once')
    await log.getByRole('button', { name: 'Load earlier messages (296)' }).click()
    await log.getByRole('button', { name: 'Load earlier messages (96)' }).click()
    await log.getByText('Round 0', { exact: true }).waitFor()
    check((await log.getByRole('button', { name: /^Load earlier/ }).count()) === 0, 'nothing is before the first message')
    // A new message keeps what was loaded, once and in order.
    await server.api('POST', `v1/sessions/${body.session}/messages?wait=60`, { message: 'Round 8' })
    await log.getByText('Round 8', { exact: true }).waitFor()
    const rounds = (await log.getByText(/^Round \d$/).allTextContents()).join()
    check(rounds === [0, 1, 2, 3, 4, 5, 6, 7, 8].map((n) => `Round ${n}`).join(), `the rounds that are shown: ${rounds}`)
    await page.context().close()
  })
}
