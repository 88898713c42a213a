package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/weirtest"
)

// asker returns a tool that asks two questions, and one more after a short name.
func asker(l *effectLog) *tool.Tool {
	name := map[string]any{"type": "object", "required": []any{"name"}, "properties": map[string]any{"name": map[string]any{"type": "string"}}}
	return &tool.Tool{
		Name: "act", Parameters: anyArguments,
		Call: func(_ context.Context, c tool.Call) (string, error) {
			key := c.Key[strings.IndexByte(c.Key, '/')+1:]
			in, err := json.Marshal(c.Input)
			if err != nil {
				return "", err
			}
			l.add(key + " " + string(in))
			switch {
			case c.Input == nil:
				return "", &tool.InputRequired{State: "s1", Questions: []tool.Question{{Name: "who", Prompt: "Who?", Schema: name}, {Name: "where/at:once", Prompt: "Where?"}}}
			case c.Input.State == "s1":
				return "", &tool.InputRequired{State: "s2", Questions: []tool.Question{{Name: "why", Prompt: "Why?"}}}
			}
			return "done", nil
		},
	}
}

// The calls of asker: every one is made once, with the state and the answers of the one before.
func askedCalls(path string) []string {
	return []string{
		path + `#1 null`,
		path + `#1.2 {"state":"s1","answers":{"where/at:once":{"declined":true},"who":{"value":{"name":"Ada"}}}}`,
		path + `#1.3 {"state":"s2","answers":{"why":{"value":"so"}}}`,
	}
}

// answerAll answers the questions of a tool, each in a process of its own.
func answerAll(t *testing.T, w *processWorld, r weir.Result, answers map[string]any) weir.Result {
	t.Helper()
	if r.Status != engine.Paused || len(r.Interrupts) != len(answers) {
		t.Fatalf("%s, %+v, %v", r.Status, r.Interrupts, r.Error)
	}
	for _, q := range r.Interrupts {
		if q.Kind != engine.AwaitInput || !strings.Contains(q.Prompt, "The tool act, called with {") || answers[q.ID] == nil {
			t.Fatalf("the question is %+v", q)
		}
		r = w.process(t, func(ctx context.Context, p *weir.Weir) *weir.Run {
			run, err := p.Answer(ctx, r.Run, q.ID, answers[q.ID], "ann")
			if err != nil {
				t.Fatal(err)
			}
			return run
		})
	}
	return r
}

func TestAToolThatRequiresInputPausesItsNodeAndContinuesInAnotherProcess(t *testing.T) {
	t.Parallel()
	for typ, text := range map[string]string{
		"tool":       toolNodeFlow("", ""),
		"llmRequest": toolFlow("llmRequest", ""),
		"agent":      toolFlow("agent", ""),
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			l := &effectLog{}
			w := newWorld(t, &scriptedModel{steps: []convo.Message{callMessage("act {}"), textMessage("done")}}, asker(l))
			r := w.start(t, text)
			node := map[bool]string{true: "call", false: "ask"}[typ == "tool"]
			r = answerAll(t, w, r, map[string]any{node + ":input.1.1.1#1": map[string]any{"name": "Ada"}, node + ":input.1.1.2#1": "decline"})
			r = answerAll(t, w, r, map[string]any{node + ":input.1.2.1#1": "so"})
			if r.Status != engine.Completed || r.Outputs[0].Value != "done" {
				t.Errorf("%s %v, %v", r.Status, r.Outputs, r.Error)
			}
			if got := l.all(); !slices.Equal(got, askedCalls(node+"/tool")) {
				t.Errorf("the calls are\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

func TestAnAnswerThatDoesNotFitTheFormOfAToolIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, asker(&effectLog{}))
	r := w.start(t, toolNodeFlow("", ""))
	w.process(t, func(ctx context.Context, p *weir.Weir) *weir.Run {
		if _, err := p.Answer(ctx, r.Run, "call:input.1.1.1#1", map[string]any{"name": 5}, "ann"); err == nil {
			t.Error("the answer was taken")
		}
		run, err := p.Answer(ctx, r.Run, "call:input.1.1.2#1", "Rome", "ann")
		if err != nil {
			t.Fatal(err)
		}
		return run
	})
}

func TestQuestionsOfToolsThatCannotBeAskedAreErrors(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]tool.Question{{Name: "q", Prompt: "?"}}, 2)
	for says, need := range map[string]*tool.InputRequired{
		"asks nothing":       {},
		"two questions":      {Questions: many},
		"the limit":          {Questions: slices.Repeat(many, 20)},
		"its state has":      {Questions: many[:1], State: strings.Repeat("x", 70000)},
		"a form that cannot": {Questions: []tool.Question{{Name: "q", Schema: map[string]any{"type": 5}}}},
	} {
		act := &tool.Tool{Name: "act", Parameters: anyArguments, Call: func(context.Context, tool.Call) (string, error) { return "", need }}
		r := weirtest.Flow(t, toolNodeFlow("", ""), weirtest.Case{Tools: []*tool.Tool{act}})
		if r.Error == nil || r.Error.Code != engine.CodeToolError || !strings.Contains(r.Error.Message, says) {
			t.Errorf("%s: %v", says, r.Error)
		}
	}
	endless := &tool.Tool{Name: "act", Parameters: anyArguments, Call: func(_ context.Context, c tool.Call) (string, error) {
		return "", &tool.InputRequired{Questions: []tool.Question{{Name: "q", Prompt: "Again?"}}}
	}}
	answers := map[string]any{}
	for round := range tool.MaxInputRounds {
		answers[fmt.Sprintf("call:input.1.%d.1#1", round+1)] = "yes"
	}
	r := weirtest.Flow(t, toolNodeFlow("", ""), weirtest.Case{Tools: []*tool.Tool{endless}, Answers: answers})
	if r.Error == nil || r.Error.Code != engine.CodeToolError || len(r.Effects) != tool.MaxInputRounds+1 {
		t.Errorf("%s, %d effects: %v", r.Status, len(r.Effects), r.Error)
	}
}

func TestACallThatFailsAfterAnAnswerIsRepeatedWithTheAnswer(t *testing.T) {
	t.Parallel()
	failed := false
	act := &tool.Tool{Name: "act", Parameters: anyArguments, Idempotent: true, Call: func(_ context.Context, c tool.Call) (string, error) {
		switch {
		case c.Input == nil:
			return "", &tool.InputRequired{Questions: []tool.Question{{Name: "q", Prompt: "Who?"}}}
		case !failed:
			failed = true
			return "", errors.New("not yet")
		}
		return fmt.Sprint(c.Input.Answers["q"].Value), nil
	}}
	r := weirtest.Flow(t, toolNodeFlow("", "    retry: {attempts: 2, backoff: 1ms}\n"), weirtest.Case{Tools: []*tool.Tool{act}, Answers: map[string]any{"call": "Ada"}})
	if r.Error != nil || r.Outputs["text"] != "Ada" {
		t.Errorf("%v %v", r.Outputs, r.Error)
	}
}

func TestAToolThatRequiresInputSurvivesACrashAtAnyCommit(t *testing.T) {
	t.Parallel()
	asking := func() *crashCase {
		l := &effectLog{}
		act := asker(l)
		act.Idempotent = true
		return &crashCase{l: l, tools: []*tool.Tool{act}, text: toolNodeFlow("", "")}
	}
	whole := asking()
	if r, err := whole.runApproving(t, memory.New(), unlimitedCommits); err != nil || r.Status != engine.Completed || len(whole.l.all()) != 3 {
		t.Fatalf("%s %v %v: %q", r.Status, r.Error, err, whole.l.all())
	}
	died := 1
	for ; ; died++ {
		c, record := asking(), memory.New()
		if _, err := c.runApproving(t, record, died); err == nil {
			break
		}
		r, err := c.runApproving(t, record, unlimitedCommits)
		if text, _ := weir.Output[string](r, "text"); err != nil || r.Status != engine.Completed || text != "done" {
			t.Fatalf("after %d commits: %s %q %v %v", died, r.Status, text, r.Error, err)
		}
		calls := c.l.all()
		if distinct := slices.Compact(slices.Clone(calls)); !slices.Equal(distinct, whole.l.all()) || len(calls) > len(distinct)+1 {
			t.Errorf("after %d commits the calls are\n%s", died, strings.Join(calls, "\n"))
		}
	}
	if died < 6 {
		t.Errorf("the run has %d commits in which a process may die, expected more", died)
	}
}
