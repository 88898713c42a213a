package flowtest_test

import (
	"testing"

	"github.com/weir-run/weir/flowtest"
)

const harbour = `
context: {model: openai/gpt-5-mini}
inputs: {message: {type: text, required: true}}
state: {visits: {scope: session, initial: 0, reducer: sum}}
nodes:
  count: {type: transform, with: {state: {visits: "1"}}}
  kind: {type: decision, after: count, with: {expr: "run.inputs.message == 'book' ? 'book' : 'talk'", branches: [book, talk]}}
  ask: {type: userInput, after: kind.book, with: {prompt: "Which berth?", schema: {type: integer}}}
  booked: {type: template, in: {n: "{{ ask.value }}"}, with: {text: "Berth {{ inputs.n }} is yours."}}
  reply: {type: llmRequest, after: kind.talk, in: {message: "{{ run.inputs.message }}"}}
  end: {type: merge, in: {value: ["{{ booked.text }}", "{{ reply.text }}"]}}
outputs: {answer: "{{ end.value }}", visits: "{{ state.visits }}"}
`

func TestConversationIsTestedTurnByTurn(t *testing.T) {
	t.Parallel()
	passes(t, harbour, `
tests:
  - name: rounds, a question, a fork, an edit and another user
    user: ada
    script: [Hello., Good day., Hello Bert., In the fork., Edited.]
    turns:
      - say: Hi
        expect:
          outputs: {answer: Hello., visits: 1}
          messages: [{user: Hi}, {assistant: Hello.}]
          requests: [{last: Hi}]
      - say: book
        expect: {status: paused, questions: [Which berth?]}
      - answer: 4
        expect: {outputs: {answer: Berth 4 is yours., visits: 2}, path: {ran: [booked], notRun: [reply]}}
      - say: And now?
        expect:
          outputs: {answer: Good day., visits: 3}
          messages: [Hi, Hello., And now?, Good day.]
          usage: {calls: 1}
      - as: bert
        say: Hi
        expect: {outputs: {answer: Hello Bert., visits: 1}, requests: [{last: Hi, messages: [{role: user, text: Hi}]}]}
      - fork: 2
        say: Again
        expect: {outputs: {answer: In the fork., visits: 3}, messages: [Hi, Hello., Again, In the fork.]}
      - edit: 0
        say: Hi there
        expect: {outputs: {answer: Edited., visits: 1}, messages: [Hi there, Edited.], state: {visits: 1}}
  - name: a paused round takes the next message as its answer, and answers are given
    turns:
      - say: book
        expect: {status: paused}
      - say: "7"
        expect: {outputs: {answer: Berth 7 is yours., visits: 1}}
  - name: answers and mocks of the test apply to every turn
    answers: {ask: [3, 5]}
    mocks: {reply: mocked}
    turns:
      - say: book
        expect: {outputs: {answer: Berth 3 is yours., visits: 1}}
      - say: hello
        expect: {outputs: {answer: mocked, visits: 2}}
      - fork: true
      - say: book
        expect: {outputs: {answer: Berth 5 is yours., visits: 3}}
  - name: a message that is refused
    turns:
      - say: ""
        expect: {error: input_invalid}
`)
}

func TestFailingTurnIsNamedAndEndsTheConversation(t *testing.T) {
	t.Parallel()
	fails(t, flowtest.Failed, harbour, `
tests:
  - name: another answer
    script: [Hello., never]
    turns:
      - say: Hi
        expect: {outputs: {answer: Bye., visits: 1}}
      - say: Hi
  - name: nothing to answer
    script: [Hello.]
    turns:
      - say: Hi
      - answer: 4
  - name: an answer that does not fit
    turns:
      - say: book
        expect: {status: paused}
      - answer: many
  - name: unused parts
    script: [Hello., never]
    answers: {ask: 3}
    mocks: {booked: x}
    turns: [{say: Hi}]
  - name: nothing to fork
    turns: [{fork: 2}]
  - name: too many messages
    script: [Hello.]
    turns: [{say: Hi}, {fork: 9, say: Hi}]
`,
		"turn 1: outputs.answer: expected \"Bye.\", got \"Hello.\"",
		"turn 2: answer: the session waits for no answer",
		"answer: ",
		"script: the script has 2 turns and the model was called once",
		"answers.ask: no question used the answer",
		"mocks.booked: the node is mocked and never ran",
		"turn 1: there is no session yet to fork",
		"cannot be forked at 9",
	)
	fails(t, flowtest.Invalid, harbour, `
tests:
  - name: a
    expect: {status: completed}
    state: {visits: 1}
    target: reply
    turns:
      - {say: a, answer: b}
      - {fork: 1, edit: 1, say: a}
      - {expect: {status: paused}}
      - {edit: 1}
      - {fork: 1, answer: b}
      - {fork: 1, expect: {status: paused}}
      - {says: a}
      - {say: a, fork: -1}
      - {say: a, expect: {golden: x.json}}
  - {name: b, turns: []}
  - {name: c, turns: x}
`,
		`a test with turns has no key "expect"`, `a test with turns has no key "state"`, `a test with turns has no key "target"`,
		"a turn has say or answer, not both", "a turn has fork or edit, not both", "a turn has say, answer, fork or pass",
		"edit needs say", "a fork of a session waits for no answer", "nothing is expected of a fork alone",
		`a turn has no key "says"; expected one of say, answer, fork, edit, pass, as, expect`,
		"fork must be a whole number from 0; got -1", "a turn has no golden file",
		"turns must be a list with at least one turn; got a list", `turns must be a list with at least one turn; got "x"`,
	)
}

// After the lifetime of a session the next message of its user starts another one; sessions of
// others go on.
func TestSessionsExpireInTheTimeThatPasses(t *testing.T) {
	t.Parallel()
	passes(t, "session: {ttl: 2d}\n"+harbour, `
tests:
  - name: the session of a user expires
    script: [Yes., Yes., Yes., Yes.]
    turns:
      - {say: Hi, expect: {state: {visits: 1}}}
      - {pass: 1d, say: Still there?, expect: {state: {visits: 2}, messages: [Hi, Yes., Still there?, Yes.]}}
      - {pass: 30h, say: And now?, expect: {state: {visits: 3}}}
      - {pass: 1d}
      - {pass: 25h, say: Hello again, expect: {state: {visits: 1}, messages: [Hello again, Yes.]}}
  - name: only the session that is old
    script: [Yes., Yes., Yes., Yes.]
    turns:
      - {as: ada, say: Hi, expect: {state: {visits: 1}}}
      - {pass: 40h}
      - {as: bert, say: Hi, expect: {state: {visits: 1}}}
      - {pass: 40h}
      - {as: bert, say: Hi, expect: {state: {visits: 2}}}
      - {as: ada, say: Hi, expect: {state: {visits: 1}}}
  - name: a fork has a lifetime of its own, and the session that it shares stays as it is
    script: [Yes., Yes., Yes.]
    turns:
      - {say: Hi, expect: {state: {visits: 1}}}
      - {pass: 40h, fork: true}
      - {say: Again, expect: {state: {visits: 2}}}
      - {pass: 40h, say: More, expect: {state: {visits: 3}}}
`)
	passes(t, harbour, `
tests:
  - name: without a lifetime a session does not expire
    script: [Yes., Yes.]
    turns:
      - {say: Hi, expect: {state: {visits: 1}}}
      - {pass: 3000d, say: Hi, expect: {state: {visits: 2}}}
`)
}

func TestATimeThatCannotPassIsRefused(t *testing.T) {
	t.Parallel()
	fails(t, flowtest.Invalid, harbour, `
tests:
  - name: bad times
    turns:
      - {pass: 0s}
      - {pass: soon, say: Hi}
      - {pass: -1h}
      - {pass: 99999d}
`,
		"f.test.yaml:5:16: pass must be a time above 0, such as 12h or 30d; got \"0s\"",
		"f.test.yaml:6:16: pass must be a duration; got \"soon\"",
		"f.test.yaml:7:16: pass must be a duration; got \"-1h\"",
		"f.test.yaml:8:16: pass must be a duration; got \"99999d\"",
	)
}
