package sandboxtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// printStatement returns a statement that prints a text, valid in every language.
func printStatement(text string) string {
	return "print('" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "')\n"
}

// dumps returns an expression for the JSON of an expression's value.
func (s *suite) dumps(expr string) string { return fmt.Sprintf(s.Dumps, expr) }

func (s *suite) printing(t *testing.T) {
	const change = "context['assigned'] = 1\n"
	for _, tt := range []struct {
		name, code string
		want       map[string]any
		message    string
	}{
		{
			"the printed update replaces what was assigned",
			change + printStatement(`{"status": "success", "context_updates": {"a": 1, "b": [2]}, "message": "done"}`),
			map[string]any{"a": int64(1), "b": []any{int64(2)}},
			"done",
		},
		{"the last object line wins", printStatement(`{"context_updates": {"a": 1}}`) + printStatement(`{"context_updates": {"b": 2}}`), map[string]any{"b": int64(2)}, ""},
		{"empty ones are passed over", printStatement(`{"context_updates": {"a": 1}}`) + printStatement("{}") + printStatement("[]") + printStatement("null") + printStatement(""), map[string]any{"a": int64(1)}, ""},
		{"text around it does not matter", printStatement("begin") + printStatement(`{"context_updates": {"a": 1}}`) + printStatement("the end: {") + printStatement("} 12"), map[string]any{"a": int64(1)}, ""},
		{"spaces around it do not matter", printStatement(`   {"context_updates": {"a": 1}}   `), map[string]any{"a": int64(1)}, ""},
		{"without context_updates the object is the update", change + printStatement(`{"status": "success", "total": 3, "message": "m"}`), map[string]any{"total": int64(3)}, "m"},
		{"without status it is the update too", printStatement(`{"total": 3.0}`), map[string]any{"total": 3.0}, ""},
		{"an empty update is an update", change + printStatement(`{"status": "success", "context_updates": {}}`), map[string]any{}, ""},
		{"an object over several lines is none", change + printStatement("{\n\"a\": 1\n}"), map[string]any{"assigned": int64(1)}, ""},
		{"what is not quite JSON is none", change + printStatement(`{'a': 1}`) + printStatement(`{"a": 1,}`) + printStatement(`{"a": 1} trailing`), map[string]any{"assigned": int64(1)}, ""},
		{"a null is a value", printStatement(`{"context_updates": {"old": null}}`), map[string]any{"old": nil}, ""},
		{"whole numbers are exact", printStatement(`{"context_updates": {"n": 9007199254740993}}`), map[string]any{"n": int64(9007199254740993)}, ""},
		{"_ai_metadata does not enter", printStatement(`{"context_updates": {"a": 1, "_ai_metadata": {"x": 1}}, "_ai_metadata": {}}`), map[string]any{"a": int64(1)}, ""},
		{"_ai_metadata does not enter from a bare object", printStatement(`{"a": 1, "_ai_metadata": {"x": 1}}`), map[string]any{"a": int64(1)}, ""},
		{"it may be made of values", "print(" + s.dumps("{'context_updates': {'list': [1, 'é']}}") + ")\n", map[string]any{"list": []any{int64(1), "é"}}, ""},
		{"it may be long", "print(" + s.dumps("{'context_updates': {'long': 'é' * 50000}}") + ")\n", map[string]any{"long": strings.Repeat("é", 50000)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s.run(t, &sandbox.Job{Code: tt.code, Context: map[string]any{"old": int64(1)}})
			expect(t, r, tt.want)
			if r.Message != tt.message {
				t.Errorf("the message is %q, want %q", r.Message, tt.message)
			}
			if _, assigned := tt.want["assigned"]; r.Printed == assigned {
				t.Errorf("Printed is %t", r.Printed)
			}
		})
	}
	s.output(t)
	s.statuses(t)
}

// output tests output besides the update.
func (s *suite) output(t *testing.T) {
	t.Run("what else is printed is kept in order", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: printStatement("one") + printStatement(`{"context_updates": {"a": 1}}`) + printStatement("two ü")})
		if r.Stdout != "one\ntwo ü\n" {
			t.Errorf("the output is %q", r.Stdout)
		}
		if r = s.run(t, &sandbox.Job{Code: printStatement("only this")}); r.Stdout != "only this\n" {
			t.Errorf("the output without an update is %q", r.Stdout)
		}
	})
	t.Run("what is printed is passed on while the code runs", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var live strings.Builder
		job := &sandbox.Job{Code: printStatement("größer") + s.LoopForever, OnOutput: func(stdout, stderr string) {
			if live.WriteString(stdout); stderr != "" {
				t.Errorf("stderr has %q", stderr)
			}
			if live.String() == "größer\n" {
				cancel() // nothing else ends the code before its time is up
			}
		}}
		if _, err := s.runChecked(ctx, t, job); err == nil {
			t.Error("the code ended")
		}
		if live.String() != "größer\n" {
			t.Errorf("passed on: %q", live.String())
		}
	})
	t.Run("what is passed on is what the result has, up to the limit", func(t *testing.T) {
		var live strings.Builder
		job := &sandbox.Job{
			Code: s.WriteForever, Limits: sandbox.Limits{Output: 4096},
			OnOutput: func(stdout, _ string) { live.WriteString(stdout) },
		}
		r, err := s.runChecked(t.Context(), t, job)
		if err == nil || r == nil || r.Stdout != live.String() || live.Len() != 4096 {
			t.Errorf("%d bytes were passed on: %v, %v", live.Len(), r, err)
		}
	})
	t.Run("what goes to standard error is kept apart", func(t *testing.T) {
		s.needs(t, s.Stderr, "write to standard error")
		r := s.run(t, &sandbox.Job{Code: s.Stderr})
		if r.Stderr != "careful\n" || r.Stdout != "" {
			t.Errorf("the output is %q and %q", r.Stdout, r.Stderr)
		}
	})
}

// statuses tests updates that fail the job.
func (s *suite) statuses(t *testing.T) {
	const change = "context['assigned'] = 1\n"
	t.Run("status error fails with the message", func(t *testing.T) {
		e := s.runFailing(t, &sandbox.Job{
			Code: change + printStatement(`{"status": "error", "message": "the invoice has no total", "context_updates": {"a": 1}}`),
		}, engine.CodeCodeFailed)
		if !strings.Contains(e.Message, "the invoice has no total") || e.Retry {
			t.Errorf("the error is %+v", e)
		}
		_ = s.runFailing(t, &sandbox.Job{Code: printStatement(`{"status": "error"}`)}, engine.CodeCodeFailed)
	})
	t.Run("an update that cannot be read and a status that is neither word fail", func(t *testing.T) {
		for _, printed := range []string{"{\n\"context_updates\": {\"a\": 1}\n}", `{'context_updates': 1}`, `Update: {"context_updates": {"a": 1}}`, `{"status": "paid", "a": 1}`} {
			_ = s.runFailing(t, &sandbox.Job{Code: change + printStatement(printed)}, engine.CodeCodeValue)
		}
	})
	t.Run("printed numbers that JSON does not have are an error that names the key", func(t *testing.T) {
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			e := s.runFailing(t, &sandbox.Job{Code: change + printStatement(`{"context_updates": {"fine": 1, "odd": [`+word+`]}}`)}, engine.CodeCodeValue)
			if e.Key != "odd" {
				t.Errorf("the error is about %q: %s", e.Key, e.Message)
			}
		}
	})
}

func (s *suite) decisions(t *testing.T) {
	for _, tt := range []struct{ name, code, branch string }{
		{"a text is the branch", "context['branch_decision'] = 'approved'\n", "approved"},
		{"true reads true", "context['branch_decision'] = True\n", "true"},
		{"false reads false", "context['branch_decision'] = 1 > 2\n", "false"},
		{"a whole number reads as its digits", "context['branch_decision'] = 12\n", "12"},
		{"a printed one is the branch", printStatement(`{"status": "success", "context_updates": {"branch_decision": "high", "a": 1}}`), "high"},
		{"a printed one of a bare object is the branch", printStatement(`{"branch_decision": true, "a": 1}`), "true"},
		{"the printed one wins", "context['branch_decision'] = 'low'\n" + printStatement(`{"context_updates": {"branch_decision": "high"}}`), "high"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s.run(t, &sandbox.Job{Code: tt.code, Decision: true, Context: map[string]any{"branch_decision": "stale"}})
			if r.Branch != tt.branch {
				t.Errorf("the branch is %q, want %q", r.Branch, tt.branch)
			}
			if _, set := r.Set["branch_decision"]; set || len(r.Delete) > 0 {
				t.Errorf("branch_decision is in the update: %v, %v", r.Set, r.Delete)
			}
		})
	}
	t.Run("other keys that a decision sets are the update", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: "context['why'] = 'x'\ncontext['branch_decision'] = 'yes'\n", Decision: true})
		expect(t, r, map[string]any{"why": "x"})
	})
	t.Run("the one of an earlier node is gone before the code runs", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{
			Code: "context['branch_decision'] = 'stale' if 'branch_decision' in context else 'fresh'\n", Decision: true,
			Context: map[string]any{"branch_decision": "stale"},
		})
		if r.Branch != "fresh" {
			t.Error("the code read an earlier decision")
		}
	})
	t.Run("a decision that sets none is an error, whatever was there before", func(t *testing.T) {
		for _, code := range []string{"", "x = 1\n", "context['branch'] = 'yes'\n", printStatement(`{"context_updates": {"a": 1}}`)} {
			e := s.runFailing(t, &sandbox.Job{Code: code, Decision: true, Context: map[string]any{"branch_decision": "stale"}}, engine.CodeBranchMissing)
			if !strings.Contains(e.Message, "branch_decision") {
				t.Errorf("the error is %s", e.Message)
			}
		}
	})
	t.Run("an action's branch_decision does not enter the state", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: "context['branch_decision'] = 'x'\ncontext['a'] = 1\n"})
		expect(t, r, map[string]any{"a": int64(1)})
		r = s.run(t, &sandbox.Job{Code: printStatement(`{"context_updates": {"branch_decision": "x", "a": 2}}`)})
		expect(t, r, map[string]any{"a": int64(2)})
	})
}
