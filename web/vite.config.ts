import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { constants, brotliCompressSync, gzipSync } from 'node:zlib'

/** Compresses what the server sends and removes the plain files, which it does not need. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    writeBundle(options) {
      const dir = join(options.dir!, 'assets')
      for (const name of readdirSync(dir)) {
        const source = readFileSync(join(dir, name))
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: source.length }
        writeFileSync(join(dir, name + '.br'), brotliCompressSync(source, { params }))
        writeFileSync(join(dir, name + '.gz'), gzipSync(source, { level: 9 }))
        unlinkSync(join(dir, name))
      }
    },
  }
}

export default defineConfig({
  base: './',
  plugins: [react(), compressed()],
  // The client is built in from its sources; what it imports is installed here, in the versions that it names.
  resolve: { alias: { 'weir-client': resolve('../clients/typescript/src/index.ts') }, dedupe: ['openapi-fetch', 'eventsource-parser'] },
  build: {
    outDir: process.env.WEIR_UI_OUT ?? '../server/ui/dist',
    emptyOutDir: true,
    target: 'es2022',
    license: { fileName: 'licenses.json' }, // of the bundled packages; internal/licenses reads it
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/[name].js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
      },
    },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8420' } },
})
