import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder with conversations and graphs of others. It is beside the checkout. */
const folder = process.env.WEIR_DATA ?? `${dirname(dirname(dirname(fileURLToPath(import.meta.url))))}/../shared/data`

/** Graphs of scientific workflows that become flows: a small, a deep and a wide one. */
const graphs = ['1000genome-chameleon-2ch-100k-001', 'epigenomics-chameleon-hep-1seq-50k-001', 'seismology-chameleon-1000p-001']

/** Whether the data is there. A machine that sets CI must have it. */
export function hasData() {
  const there = existsSync(`${folder}/airline/conversations.jsonl`) && graphs.every((x) => existsSync(`${folder}/dags/${x}.json`))
  if (!there && process.env.CI) throw new Error(`${folder} is missing: the tests that read it fail`)
  return there
}

/** The first n conversations of customers with an airline, in the form of chat completions. */
export function conversations(n) {
  return readFileSync(`${folder}/airline/conversations.jsonl`, 'utf8').split('\n', n).map((line) => JSON.parse(line))
}

/** What an assistant said to each text of a customer. */
export function replies(list) {
  const out = new Map()
  for (const { messages } of list) {
    messages.forEach((m, i) => {
      const answer = m.role === 'user' && messages.slice(i + 1).find((x) => x.role === 'assistant' && x.content)
      if (answer) out.set(m.content, answer.content)
    })
  }
  return out
}

/** The texts of the customer of a conversation. */
export const customer = (c) => c.messages.filter((m) => m.role === 'user').map((m) => m.content)

/** What was said in a conversation, as messages of a context. Results of tools cannot be added to one. */
export function asMessages(c) {
  return c.messages.filter((m) => ['user', 'assistant'].includes(m.role) && m.content).map((m) => ({ role: m.role, text: m.content }))
}

/** Writes flows made from the data and returns their files: a chat under the airline's policy, a transcript that is read, and a flow for each graph. */
export function writeDataFlows(dir) {
  const policy = conversations(1)[0].messages[0].content
  const files = {
    airline: {
      weir: 1, name: 'airline', description: 'Answers customers of an airline under its policy.', context: { model: 'local/harbour-1', system: policy },
      inputs: { message: { type: 'text', required: true } }, nodes: { reply: { type: 'llmRequest', in: { message: '{{ run.inputs.message }}' } } }, outputs: { answer: '{{ reply.text }}' },
    },
    transcript: {
      weir: 1, name: 'transcript', description: 'Reads a conversation and asks a person about it.', context: { model: 'local/harbour-1', system: 'You check conversations.' },
      inputs: { messages: { type: 'list', required: true } }, outputs: { verdict: '{{ verdict.text }}' },
      nodes: {
        read: { type: 'injectMessages', in: { messages: '{{ run.inputs.messages }}' } },
        check: { type: 'llmRequest', after: 'read', in: { message: 'Did the assistant keep to the policy? Give one reason.' } },
        verdict: { type: 'userInput', after: 'check', with: { prompt: 'Did the assistant keep to the policy?', schema: { type: 'string', enum: ['yes', 'no'] } } },
      },
    },
  }
  for (const name of graphs) files[nameOf(name)] = flowOf(name)
  for (const [name, flow] of Object.entries(files)) writeFileSync(`${dir}/${name}.json`, JSON.stringify(flow, null, 2))
  return Object.keys(files).map((x) => `${dir}/${x}.json`)
}

/** The name of the flow of a graph. */
const nameOf = (graph) => `g-${graph.split('-')[0]}`

export const graphFlows = graphs.map(nameOf)

/** The graph of a workflow as a flow: a task becomes a node that gives its seconds. */
function flowOf(name) {
  const { tasks } = JSON.parse(readFileSync(`${folder}/dags/${name}.json`, 'utf8'))
  const id = (x) => `${x.split('_')[0].replace(/\W/g, '')}_${/\d+$/.exec(x)[0].replace(/^0+/, '')}`
  const nodes = Object.fromEntries(tasks.map((x) => [id(x.id), { type: 'transform', with: { expr: String(x.seconds) }, ...(x.parents.length ? { after: x.parents.map(id) } : {}) }]))
  return { weir: 1, name: nameOf(name), description: `${tasks.length} tasks of a scientific workflow.`, nodes }
}
