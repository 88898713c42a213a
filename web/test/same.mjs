// Compares two builds of the page: node test/same.mjs A B. Compressed files are compared by
// what they contain, which does not depend on the version of the compressor.
import { readdirSync, readFileSync } from 'node:fs'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

const [a, b] = process.argv.slice(2)

function contents(dir) {
  const out = new Map()
  for (const name of readdirSync(dir, { recursive: true, withFileTypes: true }).filter((f) => f.isFile()).map((f) => `${f.parentPath ?? f.path}/${f.name}`)) {
    const data = readFileSync(name)
    out.set(name.slice(dir.length), name.endsWith('.br') ? brotliDecompressSync(data) : name.endsWith('.gz') ? gunzipSync(data) : data)
  }
  return out
}

const [x, y] = [contents(a), contents(b)]
const differ = [...new Set([...x.keys(), ...y.keys()])].filter((name) => !x.has(name) || !y.has(name) || !x.get(name).equals(y.get(name)))
if (differ.length > 0) {
  console.log(`the built page is not that of its sources: ${differ.join(', ')}; run \`npm ci && npm run build\` in the folder web`)
  process.exit(1)
}
