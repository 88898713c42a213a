package builtin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
	"github.com/weir-run/weir/weirtest"
)

// The flows of which a node chooses one. Two have the same name.
func choiceFiles() map[string]string {
	say := func(name, inputs, text string) string {
		return "weir: 1\nname: " + name + "\ninputs: {" + inputs + "}\nnodes: {say: {type: template, with: {text: \"" + text + "\"}}}\noutputs: {text: \"{{ say.text }}\", " + name + ": \"{{ say.text }}\"}\n"
	}
	return map[string]string{
		"law.yaml":    say("law", "question: {type: text, required: true}, court: {type: text}", "law {{ run.inputs.question }}"),
		"travel.yaml": say("travel", "question: {type: text, required: true}", "travel {{ run.inputs.question }}"),
		"other.yaml":  say("travel", "question: {type: text, required: true}", "other {{ run.inputs.question }}"),
		"ask.yaml":    "weir: 1\nname: ask\ninputs: {question: {type: text}}\nnodes: {who: {type: userInput, with: {prompt: Who?}}}\noutputs: {text: \"{{ who.text }}\"}\n",
	}
}

func choiceFlow(in, from, name string) string {
	return "weir: 1\nname: desk\ninputs: {topic: {type: any, default: law}}\nnodes:\n  pick: {type: flow, in: {" + in + "}, with: {flow: {from: [" + from + "], name: \"" + name +
		"\"}}}\noutputs: {text: \"{{ pick.text }}\", law: \"{{ pick.law }}\"}\n"
}

func TestANodeRunsTheFlowThatTheRunChooses(t *testing.T) {
	t.Parallel()
	const all = "./law.yaml, ./travel.yaml, ./other.yaml"
	for topic, c := range map[string]struct{ from, text, error string }{
		"law":           {all, "law Q", ""},
		"./law.yaml":    {all, "law Q", ""},
		"./other.yaml":  {all, "other Q", ""},
		"travel":        {all, "", "several flows: ./travel.yaml, ./other.yaml"},
		"lwa":           {all, "", "none of the flows"},
		"travel.yaml":   {all, "", "none of the flows"}, // not as it stands in the list
		"../secret.yml": {all, "", "none of the flows"},
		"":              {all, "", "none of the flows"},
	} {
		r := weirtest.Flow(t, choiceFlow("question: Q, court: C", c.from, "{{ run.inputs.topic }}"), weirtest.Case{In: map[string]any{"topic": topic}, Files: choiceFiles()})
		if c.error != "" {
			if r.Error == nil || r.Error.Code != engine.CodeInput || !strings.Contains(r.Error.Message, c.error) {
				t.Errorf("%q: %v", topic, r.Error)
			}
			continue
		}
		if r.Error != nil || r.Outputs["text"] != c.text {
			t.Errorf("%q: %v, %v", topic, r.Outputs, r.Error)
		}
		if _, has := r.Outputs["law"]; has != strings.HasPrefix(c.text, "law") {
			t.Errorf("%q: the outputs are %v", topic, r.Outputs)
		}
	}
}

func TestQuestionsOfAChosenFlowSurface(t *testing.T) {
	t.Parallel()
	r := weirtest.Flow(t, choiceFlow("question: Q", "./travel.yaml, ./ask.yaml, ./law.yaml", "{{ 'a' + 'sk' }}"), weirtest.Case{Files: choiceFiles(), Answers: map[string]any{"pick>who": "Ada"}})
	if r.Error != nil || r.Outputs["text"] != "Ada" {
		t.Errorf("%s %v %v %v", r.Status, r.Outputs, r.Waiting, r.Error)
	}
}

func TestEveryFlowOfAChoiceIsCheckedAndPinnedAtLoad(t *testing.T) {
	t.Parallel()
	load := func(t *testing.T, text, law string) (*flow.Flow, error) {
		t.Helper()
		dir := t.TempDir()
		files := choiceFiles()
		files["law.yaml"] += law
		files["flow.yaml"] = text
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return flow.Load(filepath.Join(dir, "flow.yaml"), builtin.Catalogue())
	}
	const both, topic = "./travel.yaml, ./law.yaml", "{{ run.inputs.topic }}"
	for text, says := range map[string]string{
		choiceFlow("question: Q", both, topic):                                                          "",
		choiceFlow("question: Q, kind: x", both, "{{ inputs.kind }}"):                                   "",
		choiceFlow("court: C", both, topic):                                                             "question",
		choiceFlow("question: Q, cuort: C", both, topic):                                                "cuort",
		choiceFlow("question: Q", both+", ./none.yaml", topic):                                          "none.yaml",
		choiceFlow("question: Q", both+", law.yaml", topic):                                             "the same flow",
		choiceFlow("question: Q", both+", ../x/../law.yaml", topic):                                     "law.yaml",
		choiceFlow("question: Q", both, "law"):                                                          "nothing is chosen",
		choiceFlow("question: Q", both, "{{ nope.x }}"):                                                 "nope",
		strings.Replace(choiceFlow("question: Q", both, topic), "pick.law", "pick.lwa", 1):              "lwa",
		strings.Replace(choiceFlow("question: Q", both, topic), ", name: \"{{ run", ", x: \"{{ run", 1): "name",
	} {
		f, err := load(t, text, "")
		var invalid *flow.Invalid
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case says != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), says) || invalid.Problems[0].Pos.Line == 0):
			t.Errorf("%s: %v, expected %q", text, err, says)
		}
		if f == nil {
			continue
		}
		changed, err := load(t, text, "description: Changed.\n")
		if err != nil || changed.Fingerprint() == f.Fingerprint() {
			t.Errorf("the fingerprint does not cover the flows of the choice: %v", err)
		}
	}
}
