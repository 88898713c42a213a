package builtin

import "github.com/weir-run/weir/flow"

func flowExamples() []flow.Example {
	return append(plainFlows(), oddFlows()...)
}

func plainFlows() []flow.Example {
	return []flow.Example{chosenFlowExample(), {
		Name: "a flow in a file beside this one",
		Flow: `
weir: 1
name: greetings
nodes:
  ada: {type: flow, in: {name: Ada}, with: {flow: ./greet.yaml}}
  bob: {type: flow, in: {name: Bob, word: Bye}, with: {flow: ./greet.yaml}}
outputs: {lines: "{{ ada.line }} {{ bob.line }}", all: "{{ bob.outputs }}"}
`,
		Files: map[string]string{"greet.yaml": `
weir: 1
name: greet
inputs:
  name: {type: text, required: true}
  word: {type: text, default: Hello}
nodes:
  say: {type: template, in: {n: "{{ run.inputs.name }}", w: "{{ run.inputs.word }}"}, with: {text: "{{ inputs.w }} {{ inputs.n }}."}}
outputs: {line: "{{ say.text }}"}
`},
		Outputs: map[string]any{"lines": "Hello Ada. Bye Bob.", "all": map[string]any{"line": "Bye Bob."}},
	}, {
		Name: "a specialist that sees the last message only, and replies in the conversation",
		Flow: `
weir: 1
name: desk
context: {model: script/demo, system: You are the front desk.}
nodes:
  ask: {type: userInput, with: {prompt: "You:", history: true}}
  law:
    type: flow
    context: ask
    with: {flow: ./law.yaml, lastMessage: question, reply: true}
  close: {type: llmRequest, in: {message: "Say goodbye."}, after: law}
outputs: {answer: "{{ law.text }}", last: "{{ close.text }}"}
`,
		Files: map[string]string{"law.yaml": `
weir: 1
name: law
context: {model: script/demo, system: You are a lawyer.}
inputs:
  question: {type: text, required: true}
nodes:
  think: {type: llmRequest, in: {message: "{{ run.inputs.question }}"}}
  shorten: {type: llmRequest, in: {message: "In one word?"}, after: think}
outputs: {text: "{{ think.text }}", summary: "{{ shorten.text }}"}
`},
		Answers: map[string]any{"ask": "May I keep the bike I found?"},
		Script:  []string{"Report it first.", "No.", "Goodbye."},
		Outputs: map[string]any{"answer": "Report it first.", "last": "Goodbye."},
	}, {
		Name: "children in parallel",
		Flow: `
weir: 1
name: many
nodes:
  each:
    type: forEach
    in: {items: [Ada, Bob, Eve]}
    with:
      concurrency: 3
      body:
        nodes:
          greet: {type: flow, in: {name: "{{ inputs.item }}"}, with: {flow: greet.yaml}}
        outputs: {result: "{{ greet.text }}"}
outputs: {lines: "{{ each.results }}"}
`,
		Files: map[string]string{"greet.yaml": `
weir: 1
name: greet
inputs:
  name: {type: text, required: true}
nodes:
  say: {type: template, in: {n: "{{ run.inputs.name }}"}, with: {text: "Hello {{ inputs.n }}."}}
outputs: {line: "{{ say.text }}"}
`},
		Outputs: map[string]any{"lines": []any{"Hello Ada.", "Hello Bob.", "Hello Eve."}},
	}}
}

func oddFlows() []flow.Example {
	return []flow.Example{{
		Name: "a flow that uses itself",
		Flow: `
weir: 1
name: factorial
inputs:
  n: {type: number, default: 4}
nodes:
  more: {type: decision, with: {expr: run.inputs.n > 1}}
  rest: {type: flow, in: {n: "{{ run.inputs.n - 1 }}"}, after: more.true, with: {flow: self}}
  one: {type: transform, after: more.false, with: {expr: "1"}}
  below: {type: merge, in: {value: ["{{ rest.product }}", "{{ one.value }}"]}}
  times: {type: transform, in: {p: "{{ below.value }}"}, with: {expr: inputs.p * run.inputs.n}}
outputs: {product: "{{ times.value }}"}
`,
		Outputs: map[string]any{"product": 24},
	}, {
		Name: "a child that fails, handled",
		Flow: `
weir: 1
name: careful
nodes:
  try: {type: flow, with: {flow: ./never.yaml}}
  note: {type: template, in: {e: "{{ try.error.code }}"}, with: {text: "It failed: {{ inputs.e }}"}}
outputs: {note: "{{ note.text }}"}
`,
		Files: map[string]string{"never.yaml": `
weir: 1
name: never
nodes:
  stop: {type: fail, with: {message: It was not to be., code: refused}}
`},
		Outputs: map[string]any{"note": "It failed: refused"},
	}}
}

func chosenFlowExample() flow.Example {
	return flow.Example{
		Name: "one of several flows, chosen in the run",
		Flow: `
weir: 1
name: desk
inputs: {topic: {type: text, required: true}}
nodes:
  answer:
    type: flow
    in: {topic: "{{ run.inputs.topic }}", question: How long?}
    with: {flow: {from: [./law.yaml, ./travel.yaml], name: "{{ inputs.topic }}"}}
outputs: {text: "{{ answer.text }}"}
`,
		Files: map[string]string{"law.yaml": `
weir: 1
name: law
inputs: {question: {type: text, required: true}}
nodes: {say: {type: template, in: {q: "{{ run.inputs.question }}"}, with: {text: "Ask a judge: {{ inputs.q }}"}}}
outputs: {text: "{{ say.text }}"}
`, "travel.yaml": `
weir: 1
name: travel
inputs: {question: {type: text, required: true}}
nodes: {say: {type: template, in: {q: "{{ run.inputs.question }}"}, with: {text: "Ask a driver: {{ inputs.q }}"}}}
outputs: {text: "{{ say.text }}"}
`},
		Inputs:  map[string]any{"topic": "travel"},
		Outputs: map[string]any{"text": "Ask a driver: How long?"},
	}
}
