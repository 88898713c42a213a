package codegen_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/weirtest"
)

// school runs flows one after another in one Weir, so that what one learns
// another may use.
type school struct {
	t     *testing.T
	w     *weir.Weir
	model *turns
	user  string
	n     int
}

// turns is a model whose turns are set before each run.
type turns struct{ weir.Provider }

func (s *school) says(texts ...string) {
	s.model.Provider = recorded.NewTurns(weirtest.Says(texts...), nil)
}

func newSchool(t *testing.T, executors ...sandbox.Executor) *school {
	t.Helper()
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Skipf("code cannot be isolated here: %v", err)
	}
	if executors == nil {
		executors = []sandbox.Executor{x}
	}
	s := &school{t: t, model: &turns{}}
	var err error
	if s.w, err = weir.Open(weir.Options{Replay: s.model, Executors: executors}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if err := s.w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run runs a flow to its end and returns its result and steps.
func (s *school) run(flow string, inputs map[string]any) (weir.Result, []engine.Step) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	f, err := s.w.Parse("flow.yaml", []byte(flow))
	if err != nil {
		s.t.Fatal(err)
	}
	s.n++
	run, err := s.w.Start(ctx, f, weir.Start{ID: fmt.Sprintf("r%d", s.n), Inputs: inputs, User: s.user})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := run.Wait(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := s.w.Inspect(ctx, r.Run, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	var all weirtest.Result
	for _, c := range v.Commits {
		all.Events = append(all.Events, c.Events...)
	}
	return r, stepsOf(all)
}

func (s *school) passes(flow string, inputs map[string]any, want ...string) {
	s.t.Helper()
	r, all := s.run(flow, inputs)
	if r.Status != engine.Completed {
		s.t.Fatalf("the run %s: %v", r.Status, r.Error)
	}
	var got []string
	for _, st := range all {
		got = append(got, fmt.Sprintf("%d.%d %s", st.Number, st.Attempt, st.Status))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		s.t.Errorf("steps %q, expected %q", got, want)
	}
}

// learns has the same code written for several inputs.
func (s *school) learns(flow, code string, inputs ...map[string]any) {
	s.t.Helper()
	for _, in := range inputs {
		s.says(noAnalysis, code, good)
		s.passes(flow, in, "1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success")
	}
}

func TestCodeThatDidWhatWasAskedIsUsedAgain(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, ", learn: false", "", 1)
	first := []string{"1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success"}
	again := []string{"1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success"}
	s.says(noAnalysis, readAmount, good)
	s.passes(learning, invoice(), first...)
	s.says(noAnalysis, readAmount, good) // the same values show nothing new
	s.passes(learning, invoice(), first...)
	s.says(noAnalysis, readAmount, good) // other values, for which it is confirmed
	s.passes(learning, map[string]any{"invoice": "7 EUR"}, first...)
	s.says(good) // one call alone
	s.passes(learning, map[string]any{"invoice": "3 EUR"}, again...)
	s.says(good)
	s.passes(strings.Replace(learning, `"Read the amount of the invoice into amount."`, `"  READ the amount of the invoice into amount.\n"`, 1), invoice(), again...)

	// Another flow, another task, and values of other types are something else.
	s.says(noAnalysis, readAmount, good)
	s.passes(strings.Replace(learning, "name: reading", "name: other", 1), invoice(), first...)
	s.says(noAnalysis, readAmount, good)
	s.passes(strings.Replace(learning, "Read the amount", "Find the amount", 1), invoice(), first...)
	s.says(noAnalysis, readAmount, good)
	s.passes(strings.Replace(learning, "nodes:", "state: {more: {initial: 1}}\nnodes:", 1), invoice(), first...)
	s.says(noAnalysis, readAmount, good)
	s.passes(reading, invoice(), first...) // learn: false
}

func TestLearnedCodeThatFailsIsWrittenAnew(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, ", learn: false", "", 1)
	s.learns(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	const other = "```python\ncontext['amount'] = float(inputs['invoice'].split('$')[0])\n```"
	s.says(noAnalysis, other, good)
	dollars := map[string]any{"invoice": "7$"}
	s.passes(learning, dollars, "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 failed",
		"1.2 success", "2.2 skipped", "3.2 success", "4.2 success", "5.2 success", "6.2 success")
	if text := sent(s.model.Provider.(*recorded.Turns).Asked()[1]); !strings.Contains(text, "could not convert string to float") {
		t.Errorf("the generation is not told how learned code failed: %s", text)
	}
	s.learns(learning, other, map[string]any{"invoice": "8$"})
	s.says(good) // the new code is what is known now
	s.passes(learning, dollars, "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success")
}

func TestCodeThatFailsTooOftenIsNotUsed(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, "learn: false", "attempts: 1", 1)
	s.learns(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	bad := map[string]any{"invoice": "none"}
	s.says(noAnalysis, readAmount)
	if r, _ := s.run(learning, bad); r.Error == nil {
		t.Fatal("an invoice without an amount is read")
	}
	// It failed the only time that it was used: it is not tried any more.
	s.says(noAnalysis, readAmount, good)
	s.passes(learning, invoice(), "1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success")
}

// TestCodeWithValuesOfARunInItIsNeverLearned: each program is right for the first
// document, and says what is in it instead of reading it.
func TestCodeWithValuesOfARunInItIsNeverLearned(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, ", learn: false", "", 1)
	document := map[string]any{"invoice": "1250 EUR, ACME of ada"}
	for name, code := range map[string]string{
		"a number":               "context['amount'] = 1250",
		"a number as a float":    "context['amount'] = 1250.00",
		"a text":                 "context['vendor'] = 'ACME of ada'",
		"a text in two":          "context['vendor'] = 'ACME ' 'of ada'",
		"a text that is added":   "context['vendor'] = 'ACME ' + \"of ada\"",
		"a text in upper case":   "context['vendor'] = 'acme OF ADA'.title()",
		"an escaped text":        "context['vendor'] = '\\x41CME of ada'",
		"a text in a longer one": "context['said'] = 'It is of ada, ACME of ada'",
		"a number in a text":     "context['amount'] = float('1,250'.replace(',', ''))",
		"a test for the value":   "context['amount'] = len(inputs['invoice']) if 'ACME of' in inputs['invoice'] else 0",
		"a formatted text":       "context['vendor'] = f'ACME of ada {1}'",
		"a long text":            "context['vendor'] = \"\"\"\nACME\nof ada\"\"\"",
	} {
		for _, in := range []map[string]any{document, {"invoice": "980 EUR, Other of bob, not of ACME of ada"}, document} {
			s.says(noAnalysis, "```python\n"+code+"\n```", good)
			if r, steps := s.run(learning, in); r.Status != engine.Completed || steps[0].Status != engine.StepSuccess {
				t.Errorf("%s: the run %s: %v; learned code was used: %v", name, r.Status, r.Error, steps[0].Status)
			}
		}
	}
}

// TestAProgramThatMakesItsConstantsIsNotLearnedForOtherValues: nothing in its literals
// tells that it answers for one document alone.
func TestAProgramThatMakesItsConstantsIsNotLearnedForOtherValues(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, ", learn: false", "", 1)
	const constant = "```python\ncontext['amount'] = float(50 * 25)\n```"
	s.learns(learning, constant, invoice())
	s.learns(learning, readAmount, map[string]any{"invoice": "7 EUR"}, map[string]any{"invoice": "8 EUR"})
	s.says(good)
	s.passes(learning, map[string]any{"invoice": "3 EUR"}, "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success")
	r, steps := s.run(learning, map[string]any{"invoice": "4 EUR"})
	if code := steps[2].Code; !strings.Contains(code, "split") {
		t.Errorf("the learned code is %q; the run %s", code, r.Status)
	}
}

func TestLearnedCodeHasNoComments(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, ", learn: false", "", 1)
	s.learns(learning, strings.Replace(readAmount, "amount =", "# for ACME\namount =", 1), invoice(), map[string]any{"invoice": "7 EUR"})
	s.says(good)
	if _, steps := s.run(learning, invoice()); strings.Contains(steps[2].Code, "ACME") || !strings.Contains(steps[2].Code, "split(' EUR')") {
		t.Errorf("the learned code is %q", steps[2].Code)
	}
}

func TestLearnedCodeIsOfOneUser(t *testing.T) {
	s := newSchool(t)
	learning := strings.Replace(reading, ", learn: false", "", 1)
	s.user = "ada"
	s.learns(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	s.user = "bob"
	s.learns(learning, readAmount, invoice())
	s.user = "ada"
	s.says(good)
	s.passes(learning, invoice(), "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success")
}

func TestTheJudgeIsToldWhatComesFromNoValue(t *testing.T) {
	s := newSchool(t)
	s.says(noAnalysis, "```python\ncontext['vendor'] = 'ACME of ada'\ncontext['amount'] = 980\ncontext['total'] = 1250\n```", good)
	s.run(reading, map[string]any{"invoice": "980 EUR, Other"})
	text := sent(s.model.Provider.(*recorded.Turns).Asked()[2])
	for _, want := range []string{`"vendor": "ACME of ada" (this text is in none`, `"total": 1250 (this number is in none`, `input "invoice": "980 EUR, Other"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the judge is not told %s: %s", want, text)
		}
	}
	if strings.Contains(text, `980 (this number`) {
		t.Errorf("a number of the input is said to come from nowhere: %s", text)
	}
}

// broken is an executor that is out of order as long as it says so.
type broken struct {
	sandbox.Executor
	fail error
	runs int
}

func (b *broken) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	b.runs++
	if b.fail != nil {
		return nil, b.fail
	}
	return b.Executor.Run(ctx, job)
}

const simple = `
weir: 1
name: simple
nodes:
  a: {type: action, with: {code: "context['a'] = 1"}}
outputs: {value: "{{ a.value }}"}
`

func TestAnExecutorThatIsOutOfOrderIsLeftAloneForAWhile(t *testing.T) {
	x := &broken{Executor: python.New(python.Options{}), fail: &sandbox.Error{Code: engine.CodeSandboxFailed, Message: "the cloud is gone", Retry: true}}
	s := newSchool(t, x)
	for i := range 5 {
		if r, _ := s.run(simple, nil); r.Error == nil || r.Error.Code != engine.CodeSandboxFailed {
			t.Fatalf("run %d: %v", i, r.Error)
		}
	}
	r, _ := s.run(simple, nil)
	if r.Error == nil || r.Error.Code != engine.CodeBreakerOpen || x.runs != 5 {
		t.Fatalf("after %d failures: %v", x.runs, r.Error)
	}
	if !strings.Contains(r.Error.Message, "the cloud is gone") || !strings.Contains(r.Error.Hint, time.Now().UTC().Format("2006-01-02T15:")) {
		t.Errorf("the error is %v, %q", r.Error, r.Error.Hint)
	}
}

func TestErrorsOfTheCodeItselfLeaveTheExecutorInOrder(t *testing.T) {
	s := newSchool(t)
	for range 7 {
		if r, _ := s.run(strings.Replace(simple, "context['a'] = 1", "1/0", 1), nil); r.Error == nil || r.Error.Code != engine.CodeCodeFailed {
			t.Fatalf("%v", r.Error)
		}
	}
	if r, _ := s.run(simple, nil); r.Status != engine.Completed {
		t.Errorf("%v", r.Error)
	}
}

func TestAModelThatIsOutOfOrderIsLeftAloneForAWhile(t *testing.T) {
	s := newSchool(t)
	for range 5 {
		s.model.Provider = recorded.NewTurns([]weirtest.Turn{weirtest.Fails(engine.CodeModelUnavailable)}, nil)
		if r, _ := s.run(reading, invoice()); r.Error == nil || r.Error.Code != engine.CodeModelUnavailable {
			t.Fatalf("%v", r.Error)
		}
	}
	s.says(noAnalysis, readAmount, good)
	r, _ := s.run(reading, invoice())
	if r.Error == nil || r.Error.Code != engine.CodeBreakerOpen || !strings.Contains(r.Error.Message, "script/demo") {
		t.Fatalf("%v", r.Error)
	}
	other := strings.Replace(reading, "script/demo", "script/other", 1)
	if r, _ := s.run(other, invoice()); r.Status != engine.Completed {
		t.Errorf("another model is left alone too: %v", r.Error)
	}
}
