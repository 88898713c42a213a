package flowtest_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flowtest"
)

const waitingFlow = `
nodes:
  long: {type: wait, with: {for: 2000h}}
  ask: {type: userInput, with: {prompt: "Now?", timeout: 500h}}
  event: {type: waitEvent, with: {name: paid, timeout: 1000h}}
  late: {type: template, in: {e: "{{ event.error }}"}, with: {text: "{{ inputs.e.code }}"}}
  paid: {type: template, in: {v: "{{ event.value }}"}, with: {text: "paid {{ inputs.v.cents }}"}}
  silent: {type: template, in: {e: "{{ ask.error }}"}, with: {text: "{{ inputs.e.code }}"}}
outputs:
  said: "{{ ask.text }}"
  silent: "{{ silent.text }}"
  late: "{{ late.text }}"
  paid: "{{ paid.text }}"
`

func TestWaitsPassAtOnceAfterAnswers(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	passes(t, waitingFlow, `
tests:
  - name: everybody answers in time
    answers: {ask: now, event: {cents: 12}}
    expect: {outputs: {said: now, paid: paid 12}, path: {order: [ask, paid], ran: long}}
  - name: no answer in time
    expect: {outputs: {silent: answer_timeout, late: event_timeout}, path: {order: [silent, late]}}
  - name: one does
    answers: {"event:event#1": {cents: 1}}
    expect: {outputs: {silent: answer_timeout, paid: paid 1}}
`)
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("84 days took %v", took)
	}
}

func TestTimeoutAndStopAreReported(t *testing.T) {
	t.Parallel()
	hang := weir.Func("hang", func(ctx weir.Ctx, _ struct{}) (struct{}, error) {
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	})
	slow := files(t, map[string]string{
		"f.yaml":      "weir: 1\nname: f\nnodes: {e: {type: wait, with: {for: 1h}}, f: {type: hang, after: e}}",
		"f.test.yaml": "tests:\n  - {name: quick, mocks: {f: {outputs: {}}}}\n  - {name: slow, timeout: 3s}",
	})
	s := flowtest.Run(t.Context(), []string{filepath.Join(slow, "f.test.yaml")}, flowtest.Options{Types: []weir.Type{hang}})
	const says = "passed quick\nfailed slow\nf.test.yaml:3:5: the run did not end within 3s; `timeout` sets another bound\n    f is running\n"
	if got := reportText(&s.Files[0]); got != says {
		t.Errorf("it is said:\n%s\nexpected:\n%s", got, says)
	}

	dir := files(t, map[string]string{
		"f.yaml":      "weir: 1\nname: f\nnodes: {a: {type: template, with: {text: x}}}",
		"f.test.yaml": "tests: [{name: a}, {name: b}]",
		"g.test.yaml": "flow: f.yaml\ntests: [{name: c}]",
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := flowtest.Run(ctx, []string{filepath.Join(dir, "f.test.yaml"), filepath.Join(dir, "g.test.yaml")}, flowtest.Options{})
	if r.OK() || r.Passed > 0 || r.Files[0].Status != flowtest.Stopped || r.Files[1].Status != flowtest.Stopped {
		t.Errorf("%+v", r)
	}
}
