// Drives the public clients against the server at E2B_API_URL and E2B_SANDBOX_URL.
// Each line of output is a check that held; the first that does not ends it.
import assert from 'node:assert/strict'
import * as base from 'e2b'
import { Sandbox } from '@e2b/code-interpreter'

const held = (what) => console.log('ok ' + what)

const sandbox = await Sandbox.create({ timeoutMs: 60_000, allowInternetAccess: false, metadata: { by: 'check' } })
assert.ok(sandbox.sandboxId)
held('create, after a refusal that says when to ask again')

assert.equal(await sandbox.isRunning(), true)
const info = await sandbox.getInfo()
assert.equal(info.sandboxId, sandbox.sandboxId)
assert.equal(info.templateId, 'code-interpreter-v1')
assert.deepEqual(info.metadata, { by: 'check' })
assert.equal(info.allowInternetAccess, false)
const page = await Sandbox.list().nextItems()
assert.deepEqual(page.map((s) => s.sandboxId), [sandbox.sandboxId])
held('isRunning, getInfo, list')

let run = await sandbox.runCode('x = 40\nprint("Grüße")\nprint("b" * 9000)\nx + 2')
assert.equal(run.error, undefined)
assert.equal(run.text, '42')
assert.equal(run.logs.stdout.join(''), 'Grüße\n' + 'b'.repeat(9000) + '\n')
assert.ok(run.logs.stdout.length > 2, 'text comes in pieces')
assert.equal(run.executionCount, 1)
held('runCode: value, output in pieces, count')

run = await sandbox.runCode('import sys\nprint("careful", file=sys.stderr)\nx')
assert.equal(run.text, '40')
assert.equal(run.logs.stderr.join(''), 'careful\n')
held('names stay from one execution to the next; standard error is apart')

const pieces = []
run = await sandbox.runCode('print(1)\nprint(2)', { onStdout: (m) => pieces.push(m.line) })
assert.equal(pieces.join(''), '1\n2\n')
held('output is handed on as it comes')

run = await sandbox.runCode('def f():\n    return 1 / 0\nf()')
assert.equal(run.error.name, 'ZeroDivisionError')
assert.equal(run.error.value, 'division by zero')
assert.match(run.error.traceback, /ZeroDivisionError/)
run = await sandbox.runCode('x = (')
assert.equal(run.error.name, 'SyntaxError')
held('errors have a name, a value and a traceback')

await assert.rejects(sandbox.runCode('while True: pass', { language: 'python', timeoutMs: 300 }), base.TimeoutError)
held('an execution that takes too long')

const other = await Sandbox.create()
await other.files.write('notes/a.txt', 'Grüße')
assert.equal(await other.files.read('notes/a.txt'), 'Grüße')
await other.files.write([{ path: 'b.txt', data: 'b' }, { path: 'c.bin', data: new Uint8Array([0, 255]).buffer }])
assert.deepEqual(await other.files.read('c.bin', { format: 'bytes' }), new Uint8Array([0, 255]))
await other.files.write('d.txt', 'd', { useOctetStream: true })
run = await other.runCode('open("notes/a.txt", encoding="utf-8").read() + open("b.txt").read() + open("d.txt").read()')
assert.equal(run.text, 'Grüßebd')
await assert.rejects(other.files.read('gone.txt'), base.FileNotFoundError)
held('files: one, many, bytes, as a stream, and one that is not there')

run = await other.runCode('import os, signal\nos.kill(os.getpid(), signal.SIGKILL)')
assert.equal(run.error.name, 'UnexpectedEndOfExecution')
held('a kernel that dies')

await other.setTimeout(30_000)
const again = await Sandbox.connect(other.sandboxId)
assert.equal(again.sandboxId, other.sandboxId)
assert.equal(await other.kill(), true)
assert.equal(await other.kill(), false)
assert.equal(await other.isRunning(), false)
await assert.rejects(other.runCode('1'), base.TimeoutError)
await assert.rejects(other.setTimeout(1000), base.SandboxNotFoundError)
held('setTimeout, connect, kill, and what is gone')

await assert.rejects(Sandbox.create({ apiKey: 'e2b_wrong' }), base.AuthenticationError)
await assert.rejects(Sandbox.create('no-such-template'), base.SandboxError)
const plain = await base.Sandbox.create()
assert.equal(await plain.kill(), true)
held('a wrong key, an unknown template, and the client without the interpreter')

await assert.rejects(Sandbox.create({ retries: 0 }), base.RateLimitError)
held('a refusal with no more tries')

assert.equal(await sandbox.kill(), true)
held('all are deleted')
