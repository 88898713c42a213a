// Writes the types of the API from what a server says of itself: node test/client.mjs WEIR
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeConfig, writeFlows } from './flows.mjs'
import { Server } from './server.mjs'

const dir = mkdtempSync(`${tmpdir()}/weir-client-`)
const web = dirname(dirname(fileURLToPath(import.meta.url)))
writeConfig(dir, 'http://127.0.0.1:9/v1')
const server = new Server(process.argv[2], dir, writeFlows(`${dir}/flows`))
await server.start()
const description = await (await fetch(server.url + 'openapi.json')).text()
await server.stop()
writeFileSync(`${web}/openapi.json`, description)
execFileSync('npx', ['openapi-typescript', 'openapi.json', '--output', 'src/api/schema.ts'], { cwd: web, stdio: 'pipe' })
rmSync(dir, { recursive: true, force: true })
