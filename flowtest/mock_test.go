package flowtest_test

import (
	"testing"

	"github.com/weir-run/weir/flowtest"
)

const loop = `
context: {model: openai/gpt-5-mini}
nodes:
  refine:
    type: loop
    with:
      until: outputs.n == 3
      max: 5
      body:
        nodes:
          draft: {type: llmRequest, in: {message: "Draft {{ inputs.index }}"}}
          count: {type: transform, in: {i: "{{ inputs.index }}"}, with: {expr: inputs.i + 1}}
        outputs: {n: "{{ count.value }}", text: "{{ draft.text }}"}
outputs: {text: "{{ refine.text }}", turns: "{{ refine.iterations }}"}
`

func TestBodyNodesAreMocked(t *testing.T) {
	t.Parallel()
	passes(t, loop, `
tests:
  - name: in every iteration
    mocks: {refine/draft: a draft}
    expect: {outputs: {text: a draft, turns: 3}, path: {order: ["refine#1/draft", "refine#3/draft"]}}
  - name: in one
    mocks: {"refine#2/draft": a draft}
    script: [one, three]
    expect: {outputs: {text: three, turns: 3}, requests: ["Draft 0", "Draft 2"]}
  - name: one in another way than the others
    mocks: {refine/draft: a draft, "refine#3/draft": the last}
    expect: {outputs: {text: the last, turns: 3}}
  - name: the loop itself
    mocks: {refine: {outputs: {text: done, iterations: 1}}}
    expect: {outputs: {text: done, turns: 1}, path: [refine]}
`)
	fails(t, flowtest.Failed, loop, `
tests:
  - name: an iteration that never is
    mocks: {refine/draft: a draft, "refine#4/draft": never}
  - name: none of them
    mocks: {refine: {outputs: {text: done, iterations: 1}}, refine/draft: x}
`,
		"f.test.yaml:4:36: mocks.refine#4/draft: the node is mocked and never ran",
		"f.test.yaml:6:61: mocks.refine/draft: the node is mocked and never ran",
	)
}

const request = `
nodes:
  get:
    type: httpRequest
    timeout: 20s
    retry: {attempts: 3, backoff: 5m}
    with: {url: "https://example.com/"}
  found: {type: template, in: {s: "{{ get.status }}"}, with: {text: "{{ inputs.s }}"}}
  failed: {type: template, in: {e: "{{ get.error }}"}, with: {text: "{{ inputs.e.code }}: {{ inputs.e.message }}"}}
  end: {type: merge, in: {value: ["{{ found.text }}", "{{ failed.text }}"]}}
outputs: {end: "{{ end.value }}"}
`

func TestMockErrorsAndDelaysActLikeTheNode(t *testing.T) {
	t.Parallel()
	passes(t, request, `
tests:
  - name: each attempt is another, and the last stays
    mocks: {get: [{error: http_failed}, {error: http_failed, delay: 5s}, {outputs: {status: 201}}]}
    expect: {outputs: {end: "201"}}
  - name: it fails for good
    mocks: {get: {error: {code: http_status, message: is 500, permanent: true}}}
    expect: {outputs: {end: "http_status: is 500"}, path: {failed: get, skipped: found}}
  - name: it takes as long as it may
    mocks: {get: {delay: 20s, outputs: {status: 200}}}
    expect: {outputs: {end: "200"}}
  - name: it takes longer, three times
    mocks: {get: {delay: 21s, outputs: {status: 200}}}
    expect: {outputs: {end: {$startsWith: "node_timeout: the node took longer than 20s in total"}}}
  - name: it gives nothing
    mocks: {get: {outputs: {}}}
    expect: {outputs: {}, path: {skipped: [found, failed, end]}}
`)
	fails(t, flowtest.Failed, request, `
tests:
  - name: it is not mocked
    expect: {outputs: {end: {$any: text}}}
`, "f.test.yaml:3:5: a node made the request GET https://example.com/\n    tests make no requests: mock the node, or set network: true")
}

func TestMockChangesStateAndMessages(t *testing.T) {
	t.Parallel()
	passes(t, `
context: {model: openai/gpt-5-mini}
state: {seen: {reducer: append}}
nodes:
  aside: {type: newContext, with: {label: notes}}
  note: {type: llmRequest, in: {context: "{{ aside.context }}", message: Note}}
  more: {type: llmRequest, in: {context: "{{ note.context }}", message: More}}
  main: {type: llmRequest, after: more, in: {message: Main}}
outputs: {more: "{{ more.text }}"}
`, `
tests:
  - name: what is mocked says nothing, unless the test does
    mocks:
      note: {value: noted, messages: [{user: Q}, {assistant: A}], state: {seen: [1]}}
      main: {value: x}
    script: {more: That is all.}
    expect:
      outputs: {more: That is all.}
      state: {seen: [1]}
      messages: {notes: [{user: Q}, {assistant: A}, {user: More}, {assistant: That is all.}], main: []}
      requests: [{node: more, messages: {$length: 3}}]
  - name: a context that is mocked is there
    mocks: {aside: {outputs: {}, messages: [{role: user, text: Before}]}, main: x}
    script: {note: n, more: m}
    expect:
      messages: {aside: [Before, Note, n, More, m]}
  - name: a node is itself at the second attempt
    mocks: {note: {real: true}, main: x}
    script: {note: n, more: m}
    expect: {usage: {calls: 2}}
`)
}
