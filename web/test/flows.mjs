import { mkdirSync, writeFileSync } from 'node:fs'

/** A secret that must never reach the page. */
export const canary = 'canary-7f3a91c2e4d85b60'

/** The flows of the test. Their model is the provider local of writeConfig. */
export function writeFlows(dir) {
  mkdirSync(dir, { recursive: true })
  const files = {
    'invoice.yaml': `weir: 1
name: invoice-review
description: Reads an invoice, asks a model and, above 1,000 EUR, a person.
context: {model: local/harbour-1, system: You review invoices for a small company. You are brief.}
inputs: {invoice: {type: text, required: true}}
nodes:
  read:
    type: transform
    with: {expr: "double(run.inputs.invoice.split(' EUR')[0])", state: {amount: "double(run.inputs.invoice.split(' EUR')[0])"}}
  opinion: {type: llmRequest, after: read, in: {message: "Is anything unusual about this invoice? {{ run.inputs.invoice }}"}}
  size: {type: decision, after: opinion, with: {expr: "state.amount > 1000.0 ? 'high' : 'low'", branches: [high, low]}}
  ask: {type: userInput, after: size.high, with: {prompt: "Approve {{ state.amount }} EUR?", schema: {type: string, enum: [approve, reject]}}}
  verdict: {type: decision, in: {answer: "{{ ask.text }}"}, with: {expr: inputs.answer, branches: [approve, reject]}}
  confirm: {type: llmRequest, after: [size.low, verdict.approve], in: {message: "Write one line that confirms the payment of {{ state.amount }} EUR."}}
  decline: {type: llmRequest, after: verdict.reject, in: {message: "Write one line that politely declines to pay {{ state.amount }} EUR."}}
  reply: {type: merge, in: {value: ["{{ confirm.text }}", "{{ decline.text }}"]}}
outputs: {decision: "{{ ask.text }}", reply: "{{ reply.value }}"}
`,
    'talk.yaml': `weir: 1
name: harbour
description: Answers questions about berths.
context: {model: local/harbour-1, system: You help sailors.}
inputs: {message: {type: text, required: true}}
nodes: {answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}}
outputs: {answer: "{{ answer.text }}"}
`,
    'each.yaml': `weir: 1
name: welcome
description: A line of welcome for everybody on a list.
context: {model: local/harbour-1, system: You welcome people in one short line.}
inputs: {names: {type: list, required: true, schema: {items: {type: string}}}}
nodes:
  welcome:
    type: forEach
    in: {items: "{{ run.inputs.names }}"}
    with:
      concurrency: 3
      body:
        nodes:
          line: {type: llmRequest, in: {message: "Welcome {{ inputs.item }}."}}
          card: {type: template, in: {name: "{{ inputs.item }}", line: "{{ line.text }}"}, with: {text: "{{ inputs.name }}: {{ inputs.line }}"}}
        outputs: {result: "{{ card.text }}"}
outputs: {cards: "{{ welcome.results }}"}
`,
    'fails.yaml': `weir: 1
name: stranded
description: Fails at its second node.
nodes:
  first: {type: manualInput, with: {text: "<img src=x onerror=document.title=1><b>bold</b>"}}
  stuck: {type: fail, after: first, with: {message: There is no berth for a ship of this size.}}
  after: {type: manualInput, after: stuck, with: {text: done}}
outputs: {line: "{{ after.text }}"}
`,
    'slow.yaml': `weir: 1
name: tide
description: Waits for the tide, several times.
nodes:
  one: {type: wait, with: {for: 1s}}
  two: {type: wait, after: one, with: {for: 1s}}
  three: {type: wait, after: two, with: {for: 1s}}
  four: {type: userInput, after: three, with: {prompt: "How many ships?", schema: {type: integer, minimum: 0}}}
outputs: {ships: "{{ four.value }}"}
`,
    'noted.yaml': `weir: 1
name: noted
description: Remembers a fact.
inputs: {message: {type: text, required: true}}
nodes:
  note: {type: remember, with: {text: "{{ run.inputs.message }}", key: ship}}
outputs: {id: "{{ note.id }}"}
`,
    'seen.yaml': `weir: 1
name: seen
description: Looks at a picture.
inputs: {picture: {type: object, required: true}}
nodes: {kind: {type: transform, with: {expr: run.inputs.picture.mime}}}
outputs: {kind: "{{ kind.value }}"}
`,
    'talk.test.yaml': `flow: talk.yaml
tests:
  - name: a ship asks for a berth
    inputs: {message: Is there a berth?}
    script: [Berth 4 is free.]
    expect: {outputs: {answer: Berth 4 is free.}}
  - name: the answer names the tide
    inputs: {message: How long?}
    script: [Until noon.]
    expect: {outputs: {answer: Until the tide falls.}}
  - name: in winter
    skip: The harbour is closed.
    inputs: {message: Is there ice?}
`,
    'frugal.yaml': `weir: 1
name: frugal
description: May make one model call.
context: {model: local/harbour-1}
budget: {maxCalls: 1}
nodes:
  one: {type: llmRequest, in: {message: Is there a berth?}}
  two: {type: llmRequest, after: one, in: {message: How long?}}
outputs: {answer: "{{ two.text }}"}
`,
    'fleet.yaml': `weir: 1
name: fleet
description: Runs a flow that may make one model call.
nodes: {ship: {type: flow, with: {flow: frugal.yaml}}}
`,
    'changed.yaml': `weir: 1
name: changed
description: Makes two calls with other instructions.
context: {model: local/harbour-1, system: You help sailors. You know each berth and the tides of the year.}
nodes:
  one: {type: llmRequest, in: {message: Is there a berth?}}
  two: {type: llmRequest, after: one, in: {message: How long?}, with: {system: You help captains.}}
`,
    'pair.yaml': `weir: 1
name: pair
description: Two nodes that write the same context.
context: {model: local/harbour-1}
nodes:
  one: {type: llmRequest, in: {message: Is there a berth?}}
  two: {type: llmRequest, in: {message: How long?}}
  aside: {type: newContext, after: [one, two]}
  three: {type: llmRequest, in: {context: "{{ aside.context }}", message: How long?}}
`,
    'said.yaml': `weir: 1
name: said
description: Puts messages into its context.
inputs: {messages: {type: list, required: true}}
nodes: {put: {type: injectMessages, in: {messages: "{{ run.inputs.messages }}"}}}
`,
    'ledger.yaml': `weir: 1
name: ledger
description: Remembers each part of a text.
inputs: {message: {type: text, required: true}}
nodes:
  parts: {type: transform, with: {expr: "run.inputs.message.split(',')"}}
  each: {type: forEach, in: {items: "{{ parts.value }}"}, with: {body: {nodes: {note: {type: remember, in: {part: "{{ inputs.item }}"}, with: {text: "{{ inputs.part }}"}}}}}}
`,
    'plan.yaml': `weir: 1
name: plan
description: Says what an uploaded plan is.
inputs: {plan: {type: file, required: true, description: The plan of the quay}, about: {type: message}}
nodes:
  name: {type: transform, in: {plan: "{{ run.inputs.plan }}"}, with: {expr: "inputs.plan.name + ' has ' + string(inputs.plan.size) + ' bytes of ' + inputs.plan.mime"}}
outputs: {name: "{{ name.value }}"}
`,
    'pictured.yaml': `weir: 1
name: pictured
description: Looks at pictures in a conversation.
context: {model: local/harbour-1, system: You help sailors.}
inputs: {message: {type: message, required: true}}
nodes: {answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}}
outputs: {answer: "{{ answer.text }}"}
`,
    'crew.yaml': `weir: 1
name: crew
description: Two members of a crew answer at once.
context: {model: local/harbour-1, system: You help sailors.}
inputs: {message: {type: text, required: true}}
nodes:
  bridge: {type: newContext}
  mate: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  pilot: {type: llmRequest, in: {context: "{{ bridge.context }}", message: "{{ run.inputs.message }}"}}
outputs: {mate: "{{ mate.text }}", pilot: "{{ pilot.text }}"}
`,
    'thrifty.yaml': `weir: 1
name: thrifty
description: Answers one question in a conversation.
context: {model: local/harbour-1, system: You help sailors.}
session: {budget: {maxCalls: 1}}
inputs: {message: {type: text, required: true}}
nodes: {answer: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}}
outputs: {answer: "{{ answer.text }}"}
`,
    'log.yaml': `weir: 1
name: logbook
description: Has more messages than its window takes.
context: {model: local/harbour-1, system: You keep the log., budget: {window: 900, reserve: 200}}
nodes:
  put: {type: injectMessages, with: {messages: ${JSON.stringify(Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', text: `Entry ${i}: the wind is from the west, the sea is calm, and two ships wait in front of the harbour.` })))}}}
  say: {type: llmRequest, after: put, in: {message: Is there a berth?}}
outputs: {answer: "{{ say.text }}"}
`,
    'chorus.yaml': `weir: 1
name: chorus
description: Sings 60 verses before it answers.
context: {model: local/harbour-1}
inputs: {message: {type: text, required: true}}
nodes:
  put: {type: injectMessages, with: {messages: ${JSON.stringify(Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', text: `Verse ${i + 1}` })))}}}
  say: {type: llmRequest, after: put, in: {message: "{{ run.inputs.message }}"}}
`,
    'shelves.yaml': `weir: 1
name: shelves
description: Opens 90 contexts.
context: {model: local/harbour-1}
nodes:\n${Array.from({ length: 90 }, (_, i) => `  shelf${i}: {type: newContext}\n`).join('')}`,
    'large.yaml': large(2000),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(`${dir}/${name}`, text)
  return ['invoice', 'talk', 'each', 'fails', 'slow', 'noted', 'seen', 'frugal', 'fleet', 'changed', 'pair', 'said', 'log', 'ledger', 'plan', 'pictured', 'crew', 'thrifty', 'chorus', 'shelves', 'large'].map((x) => `${dir}/${x}.yaml`)
}

/** A flow of n nodes in a lattice of 50 columns. */
function large(n) {
  let out = 'weir: 1\nname: lattice\nnodes:\n'
  for (let i = 0; i < n; i++) {
    const above = i - 50
    out += `  n${i}: {type: transform, with: {expr: "${i}"}${above >= 0 ? `, after: [n${above}${i % 50 ? `, n${above - 1}` : ''}]` : ''}}\n`
  }
  return out
}

/** The configuration of a folder in which weir runs: the model server and the prices of its model. */
export function writeConfig(dir, url) {
  mkdirSync(`${dir}/.weir`, { recursive: true })
  writeFileSync(`${dir}/.weir/config.yaml`, `providers:\n  local: {baseURL: "${url}"}\nmodels:\n  - {name: local/harbour-1, window: 32000, price: {input: 2.5, cached: 0.5, output: 10}}\ntools: {memory: true}\n`)
}

/** Flows of what is large: a long conversation, a value of three times a text, and many iterations. */
export function writeBigFlows(dir) {
  mkdirSync(dir, { recursive: true })
  const files = {
    talked: '{weir: 1, name: talked, inputs: {messages: {type: list, required: true}}, nodes: {put: {type: injectMessages, in: {messages: "{{ run.inputs.messages }}"}}}}',
    huge: '{weir: 1, name: huge, inputs: {text: {type: text, required: true}}, nodes: {triple: {type: action, in: {text: "{{ run.inputs.text }}"}, with: {language: starlark, code: "context.update({\\"big\\": inputs[\\"text\\"] * 3})"}}}}',
    many: '{weir: 1, name: many, inputs: {items: {type: list, required: true}}, nodes: {each: {type: forEach, in: {items: "{{ run.inputs.items }}"}, with: {concurrency: 50, body: {nodes: {one: {type: transform, in: {n: "{{ inputs.item }}"}, with: {expr: "inputs.n + 1.0"}}, two: {type: transform, in: {n: "{{ one.value }}"}, with: {expr: "inputs.n"}}}, outputs: {result: "{{ two.value }}"}}}}}}',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(`${dir}/${name}.yaml`, text)
  return Object.keys(files).map((x) => `${dir}/${x}.yaml`)
}
