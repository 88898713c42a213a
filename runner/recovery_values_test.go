package runner_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const (
	toolsByValue = `
weir: 1
name: left
context: {model: p/m}
inputs: {names: {type: list, default: [look, send]}, message: {type: text, default: hold}}
nodes:
  f: {type: first}
  say: {type: TYPE, after: f, in: {message: "MESSAGE", tools: "{{ run.inputs.names }}"}}
outputs: {text: "{{ say.text }}"}
`
	forkedFlow = `
weir: 1
name: left
context: {model: p/m}
nodes:
  f: {type: first}
  from: {type: llmRequest, after: f, in: {message: "MESSAGE", tools: TOOLS}}
outputs: {text: "{{ from.text }}"}
`
)

// lackingCase is what a process was doing when it died, and what the next one lacks.
type lackingCase struct {
	recoveryCase
	lacks, word string // the process that takes it lacks this, and the reason contains word; "" for nothing that the run needs
}

func lackingTable() []lackingCase {
	fill := func(flow string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(flow) }
	f := []string{"first"}
	return []lackingCase{
		{recoveryCase{
			name: "tools by value, in a model call", flow: fill(toolsByValue, "TYPE", "llmRequest", "MESSAGE", "hold"),
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "tool", "look"},
		{recoveryCase{
			name: "tools by value, in a call of the tool", flow: fill(toolsByValue, "TYPE", "llmRequest", "MESSAGE", "call look"),
			want: "answer to seen", onceEffects: []string{"first", "asked call look"}, repeatedEffects: []string{"called look"},
		}, "tool", "look"},
		{recoveryCase{
			name: "tools by value, in a call of another tool that acts", flow: fill(toolsByValue, "TYPE", "llmRequest", "MESSAGE", "call send"),
			want: "answer to seen", onceEffects: []string{"first", "asked call send"}, repeatedEffects: []string{"called send"}, answer: "retry",
		}, "tool", "look"},
		{recoveryCase{
			name: "tools of an agent by value", flow: fill(toolsByValue, "TYPE", "agent", "MESSAGE", "hold"),
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "tool", "look"},
		{recoveryCase{
			name: "tools by value, in a round", flow: fill(toolsByValue, "TYPE", "llmRequest", "MESSAGE", "{{ run.inputs.message }}"), messages: []string{"hold"},
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "tool", "look"},
		{recoveryCase{
			name: "tools by value, in a child run",
			uses: fill(toolsByValue, "name: left", "name: called", "TYPE", "llmRequest", "MESSAGE", "hold"),
			flow: recoveryNodes + "  c: {type: flow, with: {flow: called}}\n  e: {type: llmRequest, in: {message: aside}}\noutputs: {text: \"{{ c.outputs.text }}\"}\n",
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "tool", "look"},
		{recoveryCase{
			name: "a model by value", flow: recoveryNodes + "  f: {type: choose}\n  say: {type: llmRequest, context: f, in: {message: hold}}\noutputs: {text: \"{{ say.text }}\"}\n",
			want: "answer to hold", repeatedEffects: []string{"asked hold"},
		}, "other provider", "other"},
		{recoveryCase{
			name: "the model of a fork", flow: fill(forkedFlow, "MESSAGE", "a", "TOOLS", "[]"), fork: fill(forkedFlow, "MESSAGE", "hold", "TOOLS", "[]"), forkModel: "other/m",
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "other provider", "other"},
		{recoveryCase{
			name: "a tool that only the fork uses", flow: fill(forkedFlow, "MESSAGE", "a", "TOOLS", "[send]"), fork: fill(forkedFlow, "MESSAGE", "hold", "TOOLS", "[look]"),
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "tool", "look"},
		{recoveryCase{
			name: "a tool that only the run before the fork used", flow: fill(forkedFlow, "MESSAGE", "a", "TOOLS", "[look]"), fork: fill(forkedFlow, "MESSAGE", "hold", "TOOLS", "[send]"),
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "tool", ""},
		{recoveryCase{
			name: "a secret of a tool", flow: fill(forkedFlow, "MESSAGE", "hold", "TOOLS", "[look]", "from", "say"),
			want: "answer to hold", onceEffects: f, repeatedEffects: []string{"asked hold"},
		}, "secret of a tool", "secret LOOK of the tool look"},
	}
}

func lackingCases() (list []recoveryCase) {
	for _, c := range lackingTable() {
		list = append(list, c.recoveryCase)
	}
	return append(list, recoveryCase{name: "a tool that no process has", flow: recoveryNodes + "  s: {type: seek}\n"})
}

// TestRunIsNotContinuedWithoutWhatItsValuesName: what a run needs follows from its values and its past, not from
// its flow alone.
func TestRunIsNotContinuedWithoutWhatItsValuesName(t *testing.T) {
	t.Parallel()
	for _, c := range lackingTable() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			startProcess(t, dir, c.name, "WEIR_HOLDS=1").kill(t)
			w := &recoveryWorld{dir: dir, recover: true, lacks: c.lacks}
			lacking := openWorld(t, w)
			if c.word == "" {
				c.checkOutcome(t, lacking, w)
				return
			}
			c.checkBlocked(t, lacking)
			if err := lacking.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			w = &recoveryWorld{dir: dir, recover: true}
			c.checkOutcome(t, openWorld(t, w), w)
		})
	}
}

// checkBlocked checks that the process names what it lacks, and that no run has failed.
func (c *lackingCase) checkBlocked(t *testing.T, lacking *weir.Weir) {
	t.Helper()
	waitUntil(t, "the run is listed as blocked", func() bool { return len(lacking.Blocked()) > 0 })
	b := lacking.Blocked()[0]
	if b.Poisoned || !strings.Contains(strings.Join(b.Missing, "; "), c.word) {
		t.Errorf("blocked is %+v, which does not name %q", b, c.word)
	}
	list, err := lacking.Runs(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if r := &list[i]; r.ID != "first" && r.Head.Status != engine.Running {
			t.Errorf("run %s is %s: %v", r.ID, r.Head.Status, r.Head.Error)
		}
	}
}

// TestToolThatNoProcessHasFailsTheNode: the attempt has come as far as it had, so that what it
// asks for is not missing here.
func TestToolThatNoProcessHasFailsTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startProcess(t, dir, "a tool that no process has", "WEIR_HOLDS=1").kill(t)
	w := &recoveryWorld{dir: dir, recover: true}
	eng := openWorld(t, w)
	waitUntil(t, "the run ends", func() bool {
		list, err := eng.Runs(t.Context(), store.Filter{})
		return err == nil && list[0].Head.Status == engine.Failed && list[0].Head.Error.Code == engine.CodeToolUnknown
	})
	if b := eng.Blocked(); len(b) > 0 || w.effects("sought") != 1 {
		t.Errorf("blocked: %+v; sought %d times", b, w.effects("sought"))
	}
}
