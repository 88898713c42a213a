package flowtest_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

// ferry asks for a day, with a time limit.
const ferry = `
inputs: {message: {type: text, required: true}}
state: {asked: {scope: session, initial: 0, reducer: sum}}
nodes:
  before: {type: wait, with: {for: 30h}}
  count: {type: transform, after: before, with: {state: {asked: "1"}}}
  ask: {type: userInput, after: count, with: {prompt: "Which day?", timeout: 2h}}
  booked: {type: template, in: {day: "{{ ask.text }}"}, with: {text: "Booked for {{ inputs.day }}."}}
outputs: {answer: "{{ booked.text }}", asked: "{{ state.asked }}"}
`

func TestATimeLimitOfAQuestionEndsWithTheTimeThatPasses(t *testing.T) {
	t.Parallel()
	passes(t, ferry, `
tests:
  - name: answered in time
    turns:
      - say: A ferry, please
        expect: {status: running, questions: [Which day?], path: [before, count, ask], state: {asked: 1}}
      - {pass: 1h}
      - {pass: 30m, expect: {status: running, questions: [{node: ask}]}}
      - {pass: 20m, answer: Friday, expect: {outputs: {answer: Booked for Friday., asked: 1}}}
      - {say: Another one, expect: {status: running, state: {asked: 2}}}
      - {answer: Sunday, expect: {outputs: {answer: Booked for Sunday., asked: 2}}}
  - name: not answered in time
    turns:
      - {say: A ferry, expect: {status: running}}
      - {pass: 119m, expect: {status: running}}
      - {pass: 1m, expect: {error: {code: answer_timeout, node: ask}, path: {failed: ask, notRun: booked}}}
      - {say: Again, expect: {status: running}}
      - {answer: Monday, expect: {outputs: {answer: Booked for Monday., asked: 1}}}
  - name: nothing is expected of time without expect
    turns:
      - {say: A ferry, expect: {status: running}}
      - {pass: 30d}
      - {say: A ferry, expect: {status: running}}
  - name: answers of the test are given before any time passes
    answers: {ask: [Tuesday]}
    turns:
      - {say: A ferry, expect: {outputs: {answer: Booked for Tuesday., asked: 1}}}
      - {say: Another, expect: {status: running}}
`)
	fails(t, flowtest.Failed, ferry, `
tests:
  - name: late
    turns:
      - {say: A ferry, expect: {status: running}}
      - {pass: 3h}
      - {answer: Friday}
  - name: late in the same turn
    turns:
      - {say: A ferry, expect: {status: running}}
      - {pass: 3h, answer: Friday}
  - name: a message is no answer to it
    turns:
      - {say: A ferry, expect: {status: running}}
      - {say: Friday}
  - name: the status is not expected
    turns:
      - {say: A ferry}
  - name: no round is open
    turns:
      - {pass: 1h, expect: {status: running}}
`,
		"turn 3: answer: ask:ask#1 asks: Which day? is not open: its time limit has passed, and its round is failed: ask: no answer arrived within 2h0m0s (answer_timeout)",
		"turn 2: answer: ask:ask#1 asks: Which day? is not open: its time limit has passed",
		"say: the round waits for a person and for a timer",
		"the question has no answer, and the test expects the run to be completed",
		"or expect status: running",
		"turn 1: pass: the user has no open round",
	)
	fails(t, flowtest.Invalid, ferry, `
tests:
  - {name: a, inputs: {message: x}, expect: {status: running}}
`, "status must be one of completed, failed, paused; got")
}

func TestTimersOfARoundFireInTheirOrderWhileTimePasses(t *testing.T) {
	t.Parallel()
	const timers = `
inputs: {message: {type: text, required: true}}
nodes:
  reminder: {type: wait, with: {for: 5h}}
  remind: {type: template, after: reminder, with: {text: "Still there?"}}
  late: {type: userInput, with: {prompt: "Second?", timeout: 3h}, onError: {value: none}}
  soon: {type: userInput, with: {prompt: "First?", timeout: 1h}, onError: {value: none}}
  then: {type: userInput, after: soon, with: {prompt: "Third?", timeout: 90m}, onError: {value: none}}
  slow: {type: userInput, timeout: 7h, with: {prompt: "Last?"}, onError: {value: none}}
  a: {type: template, in: {v: "{{ soon.text }}"}, with: {text: "a {{ inputs.v }}"}}
  b: {type: template, in: {v: "{{ then.text }}"}, with: {text: "b {{ inputs.v }}"}}
  c: {type: template, in: {v: "{{ late.text }}"}, with: {text: "c {{ inputs.v }}"}}
  d: {type: template, in: {v: "{{ slow.text }}"}, with: {text: "d {{ inputs.v }}"}}
outputs: {a: "{{ a.text }}", b: "{{ b.text }}", c: "{{ c.text }}", d: "{{ d.text }}"}
`
	passes(t, timers, `
tests:
  - name: one after another
    turns:
      - {say: Hi, expect: {status: running, path: {notRun: [remind, then, a, b, c, d]}}}
      - {pass: 61m, expect: {status: running, path: {ran: [then, a], notRun: [b, c, d, remind]}}}
      - {pass: 90m, expect: {status: running, path: {ran: [b], notRun: [c, d, remind]}}}
      - {pass: 1h, expect: {status: running, path: {ran: [c], notRun: [d, remind]}}}
      - {pass: 90m, expect: {status: running, path: {ran: [remind], notRun: d}}}
      - {answer: here, expect: {outputs: {a: a none, b: b none, c: c none, d: d here}}}
  - name: all in one pass
    turns:
      - {say: Hi, expect: {status: running}}
      - pass: 8h
        expect:
          outputs: {a: a none, b: b none, c: c none, d: d none}
          path: {order: [a, then, b, c, remind, d]}
  - name: some in one pass, and an answer of the test to a question that is asked meanwhile
    answers: {then: [yes]}
    turns:
      - {say: Hi, expect: {status: running}}
      - {pass: 4h, expect: {status: running, path: {order: [a, then, b, c], notRun: [remind, d]}}}
      - {answer: later, expect: {outputs: {a: a none, b: b yes, c: c none, d: d later}, path: {ran: remind}}}
`)
}

func TestTheTimeLimitOfARunEndsWithTheTimeThatPasses(t *testing.T) {
	t.Parallel()
	const limited = `
timeout: 10h
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Which day?"}}
  again: {type: userInput, after: ask, with: {prompt: "Sure?", timeout: 4h}}
  booked: {type: template, after: again, in: {day: "{{ ask.text }}"}, with: {text: "Booked for {{ inputs.day }}."}}
outputs: {answer: "{{ booked.text }}"}
`
	passes(t, limited, `
tests:
  - name: a run whose only timer is its own is paused
    turns:
      - {say: A ferry, expect: {status: paused, questions: [Which day?]}}
      - {pass: 9h, expect: {status: paused}}
      - {say: Friday, expect: {status: running, questions: [Which day?, Sure?]}}
      - {pass: 59m, expect: {status: running}}
      - {pass: 1m, expect: {error: run_timeout, path: {notRun: booked}}}
      - {say: A ferry, expect: {status: paused}}
      - {answer: Sunday, expect: {status: running}}
      - {answer: yes, expect: {outputs: {answer: Booked for Sunday.}}}
  - name: it ends while nobody executes it
    turns:
      - {say: A ferry, expect: {status: paused}}
      - {pass: 10h, expect: {error: run_timeout}}
  - name: the time limit of the question is first
    turns:
      - {say: A ferry, expect: {status: paused}}
      - {answer: Friday, expect: {status: running}}
      - {pass: 9h, expect: {error: {code: answer_timeout, node: again}}}
`)
	fails(t, flowtest.Failed, limited, `
tests:
  - name: late
    turns:
      - {say: A ferry, expect: {status: paused}}
      - {pass: 10h}
      - {answer: Friday}
`, "turn 3: answer: ask:ask#1 asks: Which day? is not open: its round is failed: the run took longer than 10h0m0s (run_timeout)")
}

// quay asks at once, with a time limit.
const quay = `
session: {ttl: 3d}
inputs: {message: {type: text, required: true}}
state: {hours: {scope: session, initial: 0}}
nodes:
  kind: {type: decision, with: {expr: "run.inputs.message == 'wait' ? 'wait' : 'ask'", branches: [wait, ask]}}
  pause: {type: wait, after: kind.wait, with: {for: 5h}}
  ask: {type: userInput, after: kind.ask, with: {prompt: "Which berth?", timeout: 4h}}
  end: {type: merge, in: {value: ["{{ ask.text }}", "{{ pause.value }}"]}}
outputs: {berth: "{{ end.value }}"}
`

// Each user and each fork has a session with a round of its own; there is one clock for all of them.
func TestTimePassesForEveryOpenRound(t *testing.T) {
	t.Parallel()
	passes(t, quay, `
tests:
  - name: two users
    turns:
      - {as: ada, say: Hi, expect: {status: running}}
      - {pass: 2h}
      - {as: bert, say: Hi, expect: {status: running}}
      - {as: ada, pass: 2h, expect: {error: answer_timeout}}
      - {as: bert, pass: 1h, expect: {status: running}}
      - {as: ada, say: Hi, expect: {status: running}}
      - {as: bert, answer: "4", expect: {outputs: {berth: "4"}}}
      - {as: ada, answer: "5", expect: {outputs: {berth: "5"}}}
  - name: a fork, while the round of its session is open
    turns:
      - {say: Hi, expect: {status: running}}
      - {pass: 3h, fork: true}
      - {say: Hi, expect: {status: running}}
      - {pass: 3h, expect: {status: running}}
      - {answer: "6", expect: {outputs: {berth: "6"}}}
  - name: a wait of another round passes the time of all
    turns:
      - {as: ada, say: Hi, expect: {status: running}}
      - {as: bert, say: wait, expect: {path: {ran: pause}}}
      - {as: ada, pass: 1s}
      - {as: ada, say: Hi, expect: {status: running}}
  - name: sessions expire, unless a round of them is open
    turns:
      - {say: Hi, expect: {status: running}}
      - {answer: "1", expect: {outputs: {berth: "1"}}}
      - {pass: 4d, say: Hi, expect: {status: running}}
      - {pass: 1h, answer: "2", expect: {outputs: {berth: "2"}}}
`)
}

func TestNowMovesWithTheTimeThatPasses(t *testing.T) {
	t.Parallel()
	passes(t, `
inputs: {message: {type: text, required: true}}
state: {first: {scope: session, initial: ""}}
nodes:
  start: {type: transform, with: {state: {first: "state.first == '' ? string(now) : state.first"}}}
  hours: {type: transform, after: start, with: {expr: "(now - timestamp(state.first)).getHours()"}}
outputs: {hours: "{{ hours.value }}"}
`, `
tests:
  - name: hours
    turns:
      - {say: Hi, expect: {outputs: {hours: 0}}}
      - {pass: 2d, say: Hi, expect: {outputs: {hours: 48}}}
      - {pass: 5h}
      - {say: Hi, expect: {outputs: {hours: 53}}}
`)
}

func TestTimePassesInChildRuns(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"outer.yaml": `
weir: 1
name: outer
inputs: {message: {type: text, required: true}}
nodes:
  inner: {type: flow, in: {n: 3}, with: {flow: inner.yaml}}
  other: {type: flow, after: inner, in: {n: 4}, with: {flow: limited.yaml}}
outputs: {text: "{{ inner.text }} {{ other.text }}"}
`,
		"inner.yaml": `
weir: 1
name: inner
inputs: {n: {type: number, required: true}}
nodes:
  rest: {type: wait, with: {for: 100h}}
  ask: {type: userInput, after: rest, with: {prompt: "How many of {{ run.inputs.n }}?", timeout: 10h}}
outputs: {text: "{{ ask.text }}"}
`,
		"limited.yaml": `
weir: 1
name: limited
timeout: 6h
inputs: {n: {type: number, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "How many of {{ run.inputs.n }}?"}}
outputs: {text: "{{ ask.text }}"}
`,
		"outer.test.yaml": `
tests:
  - name: answered in time
    turns:
      - {say: Hi, expect: {status: running, questions: [{node: inner>ask, prompt: How many of 3?}]}}
      - {pass: 9h, expect: {status: running}}
      - {answer: two, expect: {status: paused, questions: [How many of 3?, How many of 4?]}}
      - {pass: 5h, expect: {status: paused}}
      - {answer: five, expect: {outputs: {text: two five}}}
  - name: the question of the child has a time limit
    turns:
      - {say: Hi, expect: {status: running}}
      - {pass: 10h, expect: {error: {code: answer_timeout, node: inner}, path: {failed: inner>ask, notRun: other}}}
  - name: the child has a time limit
    answers: {inner>ask: two}
    turns:
      - {say: Hi, expect: {status: paused, questions: [How many of 3?, How many of 4?]}}
      - {pass: 6h, expect: {error: {code: run_timeout, node: other}}}
  - name: an answer of the test while time passes
    answers: {inner>ask: [two], other>ask: [five]}
    turns:
      - {say: Hi, expect: {outputs: {text: two five}}}
      - {say: Hi, expect: {status: running}}
      - {pass: 9h, answer: six, expect: {status: paused}}
`,
	})
	r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "outer.test.yaml")}, flowtest.Options{})
	if f := &r.Files[0]; f.Status != flowtest.Passed || len(f.Tests) != 4 {
		t.Error(reportText(f))
	}
}

func TestApprovalsAndBudgetsWaitBesideTimers(t *testing.T) {
	t.Parallel()
	passes(t, `
context: {model: openai/gpt-5-mini}
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: agent, timeout: 3h, in: {message: "{{ run.inputs.message }}", tools: [refund]}}
outputs: {answer: "{{ ask.text }}"}
`, `
defaults:
  script: [{calls: refund}, Done.]
  tools: {refund: {approve: always, result: paid}}
tests:
  - name: approved in time
    turns:
      - {say: Refund me, expect: {status: running, questions: [{kind: approval}], toolCalls: []}}
      - {pass: 2h}
      - {answer: approve, expect: {outputs: {answer: Done.}, toolCalls: [refund]}}
  - name: not approved in time
    script: [{calls: refund}]
    turns:
      - {say: Refund me, expect: {status: running}}
      - {pass: 3h, expect: {error: node_timeout, toolCalls: []}}
`)
	passes(t, `
context: {model: openai/gpt-5-mini}
budget: {maxCalls: 1, onLimit: pause}
inputs: {message: {type: text, required: true}}
nodes:
  one: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
  two: {type: llmRequest, after: one, in: {message: More}}
  pause: {type: wait, after: one, with: {for: 5h}}
  later: {type: template, after: pause, with: {text: later}}
outputs: {answer: "{{ two.text }} {{ later.text }}"}
`, `
tests:
  - name: the budget is increased
    script: [One., Two.]
    turns:
      - {say: Hi, expect: {status: running, questions: [{kind: budget}], path: {notRun: later}}}
      - {pass: 4h, expect: {status: running, path: {notRun: later}}}
      - {pass: 1h, expect: {status: paused, path: {ran: later}}}
      - {answer: {maxCalls: 5}, expect: {outputs: {answer: Two. later}}}
`)
}

// A round that only waits after a timer has fired continues until it asks somebody, beyond the time that passes.
func TestWaitsInWhichNobodyIsAskedAreSkippedWhileTimePasses(t *testing.T) {
	t.Parallel()
	const flow = `
inputs: {message: {type: text, required: true}}
nodes:
  ask: {type: userInput, with: {prompt: "Now?", timeout: 1h}, onError: {value: none}}
  pause: {type: wait, after: ask, with: {for: 50h}}
  fetch: {type: httpRequest, after: pause, retry: {attempts: 3, backoff: 5m}, with: {url: "https://example.com/"}}
  again: {type: userInput, after: fetch, with: {prompt: "And now?", timeout: 1h}}
outputs: {answer: "{{ again.text }}"}
`
	passes(t, flow, `
defaults:
  mocks: {fetch: [{error: http_failed}, {delay: 5h, outputs: {status: 200, body: x}}]}
tests:
  - name: the next question
    turns:
      - {say: Hi, expect: {status: running, questions: [Now?], path: {notRun: pause}}}
      - {pass: 2h, expect: {status: running, questions: [Now?, And now?], path: {ran: [pause, fetch]}}}
      - {pass: 50m, answer: yes, expect: {outputs: {answer: yes}}}
`)
	fails(t, flowtest.Failed, flow, `
defaults:
  mocks: {fetch: {outputs: {status: 200, body: x}}}
tests:
  - name: the question that was open is not the one that is
    turns:
      - {say: Hi, expect: {status: running}}
      - {pass: 2h, answer: yes}
`, `turn 2: answer: ask:ask#1 asks: Now? is not open: its time limit has passed, and its round is running; the open question is again:ask#1 asks: And now?, which a turn of its own answers`)
}
