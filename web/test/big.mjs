// Measures the page on what is large: node test/big.mjs WEIR. It asserts that everything is shown, and prints times.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { chromium } from 'playwright-core'
import { writeBigFlows, writeConfig } from './flows.mjs'
import { Server } from './server.mjs'

const dir = mkdtempSync(`${tmpdir()}/weir-big-`)
writeConfig(dir, 'http://127.0.0.1:9/v1')
const server = new Server(process.argv[2], dir, writeBigFlows(`${dir}/flows`))
await server.start()
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--enable-precise-memory-info'] })

async function start(flow, inputs) {
  const { body } = await server.api('POST', 'v1/runs?wait=60', { flow, inputs })
  for (let run = body; ; run = (await server.api('GET', `v1/runs/${body.run}`)).body) {
    if (run.status === 'completed') return body.run
    if (run.status === 'failed' || !body.run) throw new Error(JSON.stringify(run).slice(0, 400))
    await new Promise((done) => setTimeout(done, 500))
  }
}

/** The most processor time that a task of the thread of the page took, in milliseconds. On a busy machine a task lasts longer than that. */
function mostTime(trace) {
  const { traceEvents } = JSON.parse(trace.toString())
  const thread = traceEvents.find((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain' && traceEvents.some((x) => x.pid === e.pid && x.tid === e.tid && x.name === 'FunctionCall'))
  const tasks = traceEvents.filter((e) => e.pid === thread?.pid && e.tid === thread.tid && e.name.endsWith('RunTask') && e.tdur)
  if (tasks.length === 0) throw new Error('the trace has no tasks')
  return Math.round(Math.max(...tasks.map((e) => e.tdur)) / 1000)
}

/** Opens a place in a new tab, waits for what is to be seen there, and does something. Prints how long both take, the long tasks and the memory. */
async function measure(what, hash, seen, act) {
  const page = await (await browser.newContext({ viewport: { width: 1360, height: 840 }, reducedMotion: 'reduce' })).newPage()
  page.setDefaultTimeout(120000)
  await page.addInitScript(() => {
    window.long = []
    new PerformanceObserver((l) => window.long.push(...l.getEntries().map((e) => Math.round(e.duration)))).observe({ entryTypes: ['longtask'] })
  })
  await browser.startTracing(page, { categories: ['devtools.timeline', 'toplevel'] })
  const began = Date.now()
  await page.goto(server.url + hash)
  await seen(page)
  const shown = Date.now() - began
  await act?.(page)
  const acted = Date.now() - began - shown
  const [long, heap] = await page.evaluate(() => [window.long, Math.round(performance.memory.usedJSHeapSize / 1e6)])
  const most = mostTime(await browser.stopTracing())
  console.log(`${what}: shown after ${shown} ms${act ? `, then ${acted} ms` : ''}; tasks over 50 ms: ${long.join(', ') || 'none'}; most processor time of a task ${most} ms; heap ${heap} MB`)
  await page.context().close()
}

await measure('an empty list of runs', '#/runs', (p) => p.getByText('No runs yet').waitFor())
const messages = Array.from({ length: 10000 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', text: `Message ${i + 1}: ${'ship '.repeat(i % 40)}` }))
const talk = await start('talked', { messages })
await measure('a context of 10,000 messages, its last page, then its first', `#/runs/${talk}?view=messages`, (p) => p.getByText('Message 9801:').waitFor(), async (p) => {
  await p.goto(`${server.url}#/runs/${talk}?view=messages&page=0`)
  await p.getByText('Message 1:').waitFor()
})
const huge = await start('huge', { text: 'x'.repeat(7_000_000) })
await measure('a node with a value of 21 MB, its beginning, then the run', `#/runs/${huge}?node=triple`, (p) => p.getByText('20.0 MB').first().waitFor(), (p) => p.goto(`${server.url}#/runs/${huge}`).then(() => p.getByRole('treeitem', { name: /triple/ }).waitFor()))
const many = await start('many', { items: Array.from({ length: 8000 }, (_, i) => i) })
const events = (await server.api('GET', `v1/runs/${many}/timeline?limit=1`)).body.events
await measure(`a run of ${events} events, its tree, then its graph`, `#/runs/${many}`, (p) => p.getByRole('treeitem', { name: /each/ }).waitFor(), async (p) => {
  await p.getByRole('tab', { name: 'Graph' }).click()
  await p.locator('.gnode', { hasText: 'each' }).waitFor()
})
await browser.close()
await server.stop()
rmSync(dir, { recursive: true, force: true })
