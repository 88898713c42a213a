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
	"github.com/weir-run/weir/node/codegen"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/weirtest"
)

// learningCase runs flows one after another in one Weir, so that what one learns
// another may use.
type learningCase struct {
	t     *testing.T
	w     *weir.Weir
	model *scriptedModel
	user  string
	n     int
}

// scriptedModel is a model whose turns are set before each run.
type scriptedModel struct{ weir.Provider }

func (s *learningCase) setTurns(texts ...string) {
	s.model.Provider = recorded.NewScriptedTurns(weirtest.Says(texts...), nil)
}

func newLearningCase(t *testing.T, executors ...sandbox.Executor) *learningCase {
	t.Helper()
	return openLearningCase(t, false, executors...)
}

// openLearningCase is newLearningCase. Live models are called like those of a vendor.
func openLearningCase(t *testing.T, live bool, executors ...sandbox.Executor) *learningCase {
	t.Helper()
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Skipf("code cannot be isolated here: %v", err)
	}
	if executors == nil {
		executors = []sandbox.Executor{x}
	}
	s := &learningCase{t: t, model: &scriptedModel{}}
	var err error
	o := weir.Options{Replay: s.model, Executors: executors}
	if live {
		o.Replay, o.Providers = nil, map[string]weir.Provider{"script": s.model}
	}
	if s.w, err = weir.Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := s.w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run runs a flow to its end and returns its result and steps.
func (s *learningCase) run(flow string, inputs map[string]any) (weir.Result, []engine.Step) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
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

func (s *learningCase) checkSteps(flow string, inputs map[string]any, want ...string) {
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

// learnCode has the same code written for several inputs.
func (s *learningCase) learnCode(flow, code string, inputs ...map[string]any) {
	s.t.Helper()
	for _, in := range inputs {
		s.setTurns(noAnalysis, code, goodVerdict)
		s.checkSteps(flow, in, "1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success")
	}
}

func TestLearnedCodeIsReused(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	first := []string{"1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success"}
	again := []string{"1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success"}
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(learning, invoice(), first...)
	s.setTurns(noAnalysis, readAmount, goodVerdict) // the same values show nothing new
	s.checkSteps(learning, invoice(), first...)
	s.setTurns(noAnalysis, readAmount, goodVerdict) // other values, for which it is confirmed
	s.checkSteps(learning, map[string]any{"invoice": "7 EUR"}, first...)
	s.setTurns(goodVerdict) // one call alone
	s.checkSteps(learning, map[string]any{"invoice": "3 EUR"}, again...)
	s.setTurns(goodVerdict)
	s.checkSteps(strings.Replace(learning, `"Read the amount of the invoice into amount."`, `"  READ the amount of the invoice into amount.\n"`, 1), invoice(), again...)

	// Another flow, another task, and values of other types are something else.
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(strings.Replace(learning, "name: reading", "name: other", 1), invoice(), first...)
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(strings.Replace(learning, "Read the amount", "Find the amount", 1), invoice(), first...)
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(strings.Replace(learning, "nodes:", "state: {more: {initial: 1}}\nnodes:", 1), invoice(), first...)
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(readingFlow, invoice(), first...) // learn: false
}

func TestFailedLearnedCodeIsRegenerated(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	s.learnCode(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	const other = "```python\ncontext['amount'] = float(inputs['invoice'].split('$')[0])\n```"
	s.setTurns(noAnalysis, other, goodVerdict)
	dollars := map[string]any{"invoice": "7$"}
	s.checkSteps(learning, dollars, "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 failed",
		"1.2 success", "2.2 skipped", "3.2 success", "4.2 success", "5.2 success", "6.2 success")
	if text := sent(s.model.Provider.(*recorded.ScriptedTurns).Requests()[1]); !strings.Contains(text, "could not convert string to float") {
		t.Errorf("the generation does not receive how learned code failed: %s", text)
	}
	s.learnCode(learning, other, map[string]any{"invoice": "8$"})
	s.setTurns(goodVerdict) // the new code is what is known now
	s.checkSteps(learning, dollars, "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success")
}

func TestUnreliableLearnedCodeIsNotUsed(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, "learn: false", "attempts: 1", 1)
	s.learnCode(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	bad := map[string]any{"invoice": "none"}
	s.setTurns(noAnalysis, readAmount)
	if r, _ := s.run(learning, bad); r.Error == nil {
		t.Fatal("an invoice without an amount is read")
	}
	// It failed the only time that it was used, so it is no longer tried.
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	s.checkSteps(learning, invoice(), "1.1 success", "2.1 skipped", "3.1 success", "4.1 success", "5.1 success", "6.1 success")
}

// TestCodeWithRunValuesIsNotLearned: each program is right for the first
// document, and says what is in it instead of reading it.
func TestCodeWithRunValuesIsNotLearned(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
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
			s.setTurns(noAnalysis, "```python\n"+code+"\n```", goodVerdict)
			if r, steps := s.run(learning, in); r.Status != engine.Completed || steps[0].Status != engine.StepSuccess {
				t.Errorf("%s: the run %s: %v; learned code was used: %v", name, r.Status, r.Error, steps[0].Status)
			}
		}
	}
}

// TestCodeWithDerivedConstantsIsNotLearned: nothing in its literals
// shows that it answers for one document alone.
func TestCodeWithDerivedConstantsIsNotLearned(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	const constant = "```python\ncontext['amount'] = float(50 * 25)\n```"
	s.learnCode(learning, constant, invoice())
	s.learnCode(learning, readAmount, map[string]any{"invoice": "7 EUR"}, map[string]any{"invoice": "8 EUR"})
	s.setTurns(goodVerdict)
	s.checkSteps(learning, map[string]any{"invoice": "3 EUR"}, "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success")
	r, steps := s.run(learning, map[string]any{"invoice": "4 EUR"})
	if code := steps[2].Code; !strings.Contains(code, "split") {
		t.Errorf("the learned code is %q; the run %s", code, r.Status)
	}
}

// TestCodeWithOneResultIsNotLearned: a program that always gives the result of the first inputs agrees with what is generated for
// others that have this result. Its literals are not values of the run.
func TestCodeWithOneResultIsNotLearned(t *testing.T) {
	const (
		deciding = `{weir: 1, name: deciding, inputs: {invoice: {type: text, required: true}}, nodes: {size: {type: decision,
  in: {invoice: "{{ run.inputs.invoice }}"}, with: {prompt: "Is the amount of the invoice large?", branches: [large, small]}}}}`
		deleting = `{weir: 1, name: deleting, inputs: {invoice: {type: text, required: true}}, state: {large: {initial: true}},
  nodes: {drop: {type: action, in: {invoice: "{{ run.inputs.invoice }}"}, with: {prompt: "Remove large unless the amount is large."}}}}`
	)
	reading := strings.Replace(readingFlow, ", learn: false", "", 1)
	amount := "float(inputs['invoice'].split(' EUR')[0])"
	for name, c := range map[string]struct{ flow, constant, reads string }{
		"a branch":          {deciding, "context['branch_decision'] = 'large'", "context['branch_decision'] = 'large' if " + amount + " > 1000 else 'small'"},
		"a derived number":  {reading, "context['amount'] = 50 * 25", "context['amount'] = " + amount},
		"a composed text":   {reading, "context['vendor'] = ''.join([chr(65), 'CME'])", "context['vendor'] = inputs['invoice'].split(' ')[3][:4]"},
		"an inferred text":  {reading, "context['land'] = 'Germany'", "context['land'] = 'Germany' if '1250' in inputs['invoice'] else 'France'"},
		"a deletion":        {deleting, "pass", "if " + amount + " < 1000: del context['large']"},
		"a printed message": {reading, "print('read')", "print(inputs['invoice'])"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLearningCase(t)
			for i, invoice := range []string{"1250 EUR, by ACME", "1250.0 EUR, by ACME", "1250 EUR, from ACME of bob"} {
				code := "```python\n" + c.constant + "\n```"
				if i > 0 { // what is generated for these reads them
					code = "```python\n" + c.reads + "\n```"
				}
				s.learnCode(c.flow, code, map[string]any{"invoice": invoice})
				if l := s.one(""); l.State == codegen.LearnedAccepted {
					t.Fatalf("after input %d, learned: %q", i+1, l.Code)
				}
			}
		})
	}
}

func TestCodeIsLearnedOnceResultsDiffer(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	s.learnCode(learning, readAmount, invoice(), map[string]any{"invoice": "1250.0 EUR, another one"})
	if l := s.one(""); l.State != codegen.LearnedCandidate || l.Run != "r1" {
		t.Fatalf("after equal results, %s of run %s", l.State, l.Run)
	}
	s.learnCode(learning, readAmount, map[string]any{"invoice": "7 EUR"})
	if l := s.one(""); l.State != codegen.LearnedAccepted || l.Run != "r1" || l.Confirmed != "r3" {
		t.Fatalf("after another result, %s of run %s, confirmed in %q", l.State, l.Run, l.Confirmed)
	}
}

func TestLearnedCodeHasNoComments(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	s.learnCode(learning, strings.Replace(readAmount, "amount =", "# for ACME\namount =", 1), invoice(), map[string]any{"invoice": "7 EUR"})
	s.setTurns(goodVerdict)
	if _, steps := s.run(learning, invoice()); strings.Contains(steps[2].Code, "ACME") || !strings.Contains(steps[2].Code, "split(' EUR')") {
		t.Errorf("the learned code is %q", steps[2].Code)
	}
}

func TestLearnedCodeIsPerUser(t *testing.T) {
	s := newLearningCase(t)
	learning := strings.Replace(readingFlow, ", learn: false", "", 1)
	s.user = "ada"
	s.learnCode(learning, readAmount, invoice(), map[string]any{"invoice": "7 EUR"})
	s.user = "bob"
	s.learnCode(learning, readAmount, invoice())
	s.user = "ada"
	s.setTurns(goodVerdict)
	s.checkSteps(learning, invoice(), "1.1 skipped", "2.1 skipped", "3.1 skipped", "4.1 skipped", "5.1 success", "6.1 success")
}

func TestOutputValidationNamesUnsourcedValues(t *testing.T) {
	s := newLearningCase(t)
	s.setTurns(noAnalysis, "```python\ncontext['vendor'] = 'ACME of ada'\ncontext['amount'] = 980\ncontext['total'] = 1250\n```", goodVerdict)
	s.run(readingFlow, map[string]any{"invoice": "980 EUR, Other"})
	text := sent(s.model.Provider.(*recorded.ScriptedTurns).Requests()[2])
	for _, want := range []string{`"vendor": "ACME of ada" (this text is in none`, `"total": 1250 (this number is in none`, `input "invoice": "980 EUR, Other"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the judge does not receive %s: %s", want, text)
		}
	}
	if strings.Contains(text, `980 (this number`) {
		t.Errorf("a number of the input is said to come from nowhere: %s", text)
	}
}

// failingExecutor is an executor that is out of order as long as it says so.
type failingExecutor struct {
	sandbox.Executor
	fail error
	runs int
}

func (b *failingExecutor) Run(ctx context.Context, job *sandbox.Job) (*sandbox.Result, error) {
	b.runs++
	if b.fail != nil {
		return nil, b.fail
	}
	return b.Executor.Run(ctx, job)
}

const simpleFlow = `
weir: 1
name: simple
nodes:
  a: {type: action, with: {code: "context['a'] = 1"}}
outputs: {value: "{{ a.value }}"}
`

func TestFailingExecutorOpensItsBreaker(t *testing.T) {
	x := &failingExecutor{Executor: python.New(python.Options{}), fail: &sandbox.Error{Code: engine.CodeSandboxFailed, Message: "the cloud is gone", Retry: true}}
	s := newLearningCase(t, x)
	for i := range 5 {
		if r, _ := s.run(simpleFlow, nil); r.Error == nil || r.Error.Code != engine.CodeSandboxFailed {
			t.Fatalf("run %d: %v", i, r.Error)
		}
	}
	r, _ := s.run(simpleFlow, nil)
	if r.Error == nil || r.Error.Code != engine.CodeBreakerOpen || x.runs != 5 {
		t.Fatalf("after %d failures: %v", x.runs, r.Error)
	}
	if !strings.Contains(r.Error.Message, "the cloud is gone") {
		t.Errorf("the error is %v", r.Error)
	}
	again, err := time.Parse(time.RFC3339, strings.TrimPrefix(r.Error.Hint, "retry the node after "))
	if wait := time.Until(again); err != nil || wait <= 0 || wait > time.Hour {
		t.Errorf("the hint is %q: %v, %s from now", r.Error.Hint, err, wait)
	}
}

func TestCodeErrorsDoNotOpenTheBreaker(t *testing.T) {
	s := newLearningCase(t)
	for range 7 {
		if r, _ := s.run(strings.Replace(simpleFlow, "context['a'] = 1", "1/0", 1), nil); r.Error == nil || r.Error.Code != engine.CodeCodeFailed {
			t.Fatalf("%v", r.Error)
		}
	}
	if r, _ := s.run(simpleFlow, nil); r.Status != engine.Completed {
		t.Errorf("%v", r.Error)
	}
}

func TestFailingModelOpensItsBreaker(t *testing.T) {
	s := openLearningCase(t, true)
	for range 5 {
		s.model.Provider = recorded.NewScriptedTurns([]weirtest.Turn{weirtest.Fails(engine.CodeModelUnavailable)}, nil)
		if r, _ := s.run(readingFlow, invoice()); r.Error == nil || r.Error.Code != engine.CodeModelUnavailable {
			t.Fatalf("%v", r.Error)
		}
	}
	s.setTurns(noAnalysis, readAmount, goodVerdict)
	r, _ := s.run(readingFlow, invoice())
	if r.Error == nil || r.Error.Code != engine.CodeBreakerOpen || !strings.Contains(r.Error.Message, "script/demo") {
		t.Fatalf("%v", r.Error)
	}
	other := strings.Replace(readingFlow, "script/demo", "script/other", 1)
	if r, _ := s.run(other, invoice()); r.Status != engine.Completed {
		t.Errorf("another model is left alone too: %v", r.Error)
	}
}
