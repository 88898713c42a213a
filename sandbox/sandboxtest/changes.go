package sandboxtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

func (s *suite) reading(t *testing.T) {
	t.Run("code reads context, inputs and files", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{
			Code:    "context['sum'] = context['a']['b'][1] + inputs['n']\ncontext['note'] = " + s.ReadFile + "\n",
			Context: map[string]any{"a": map[string]any{"b": []any{int64(1), int64(2)}}},
			Inputs:  map[string]any{"n": int64(40)},
			Files:   []sandbox.File{write(t, "note", "Grüße\n")},
		})
		expect(t, r, map[string]any{"sum": int64(42), "note": "Grüße\n"})
		if r.Printed {
			t.Error("nothing was printed")
		}
		if r.Sandbox == "" {
			t.Error("the sandbox has no id")
		}
		if r.Duration <= 0 {
			t.Errorf("it took %s", r.Duration)
		}
	})
	t.Run("inputs are the code's own copy", func(t *testing.T) {
		job := &sandbox.Job{
			Code:   "inputs['list'].append(2)\ncontext['n'] = len(inputs['list'])\n",
			Inputs: map[string]any{"list": []any{int64(1)}},
		}
		expect(t, s.run(t, job), map[string]any{"n": int64(2)})
		if got := len(job.Inputs["list"].([]any)); got != 1 {
			t.Errorf("the caller's list has %d elements", got)
		}
	})
	t.Run("without context, inputs and files all are empty", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: "context['n'] = [len(context), len(inputs), len(files)]"})
		expect(t, r, map[string]any{"n": []any{int64(0), int64(0), int64(0)}})
	})
	t.Run("a file that is not there is an error that names it", func(t *testing.T) {
		_, err := s.runChecked(t.Context(), t, &sandbox.Job{Code: "x = 1", Files: []sandbox.File{{Name: "gone", Path: "/nowhere/to/be/found"}}})
		if err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("the error is %v", err)
		}
	})
}

func (s *suite) changes(t *testing.T) {
	start := func() map[string]any {
		return map[string]any{
			"kept": "as it was", "old": int64(1), "list": []any{int64(1), []any{int64(2)}},
			"deep": map[string]any{"a": map[string]any{"b": "c"}},
		}
	}
	for _, tt := range []struct {
		name, code string
		want       map[string]any
	}{
		{"assignments set keys", "context['new'] = 'x'\ncontext['old'] = 2\n", map[string]any{"new": "x", "old": int64(2)}},
		{"deep changes set the key they are under", "context['deep']['a']['b'] = 'd'\ncontext['list'][1].append(3)\n", map[string]any{
			"deep": map[string]any{"a": map[string]any{"b": "d"}}, "list": []any{int64(1), []any{int64(2), int64(3)}},
		}},
		{"a change through another name counts", "d = context['deep']\nd['z'] = None\n", map[string]any{
			"deep": map[string]any{"a": map[string]any{"b": "c"}, "z": nil},
		}},
		{"deletions delete", "context.pop('old')\n", map[string]any{"old": deleted}},
		{"a key that is deleted and set again is set", "context.pop('old')\ncontext['old'] = 7\n", map[string]any{"old": int64(7)}},
		{"a key that is set and deleted again was not there", "context['x'] = 1\ncontext.pop('x')\n", map[string]any{}},
		{"clearing deletes all", "context.clear()\n", map[string]any{"kept": deleted, "old": deleted, "list": deleted, "deep": deleted}},
		{"what ends as it began is no change", "context['old'] = 2\ncontext['old'] = 1\ncontext['kept'] = 'as it was'\n", map[string]any{}},
		{"null is a value and not a deletion", "context['old'] = None\n", map[string]any{"old": nil}},
		{"the type of a value is a change", "context['old'] = '1'\n", map[string]any{"old": "1"}},
		{"true is not 1", "context['old'] = True\n", map[string]any{"old": true}},
		{"1.0 is not 1", "context['old'] = 1.0\n", map[string]any{"old": 1.0}},
		{"empty code changes nothing", "", map[string]any{}},
		{"code of comments and blank lines changes nothing", "\n# nothing\n\n", map[string]any{}},
		{"code that prints no object is taken by what it did", "print('working')\ncontext['new'] = 1\nprint('[1, 2]')\nprint('12')\n", map[string]any{"new": int64(1)}},
		{"_ai_metadata does not enter", "context['_ai_metadata'] = {'x': 1}\ncontext['new'] = 1\n", map[string]any{"new": int64(1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			given := start()
			r := s.run(t, &sandbox.Job{Code: tt.code, Context: given})
			expect(t, r, tt.want)
			if before := start(); !equalValues(given, before) {
				t.Errorf("the caller's context became %v", given)
			}
		})
	}
}

// equalValues compares values as the journal would.
func equalValues(a, b any) bool {
	x, err := engine.AppendValue(nil, a)
	y, other := engine.AppendValue(nil, b)
	return err == nil && other == nil && string(x) == string(y)
}

func (s *suite) values(t *testing.T) {
	kept := map[string]any{
		"past 2^53":      int64(9007199254740993),
		"largest":        int64(9223372036854775807),
		"smallest":       int64(-9223372036854775808),
		"float":          2.5,
		"whole float":    2.0,
		"large float":    1e300,
		"tiny float":     5e-324,
		"yes":            true,
		"nothing":        nil,
		"empty":          "",
		"quotes":         `"'\ """ ''' \n` + "\n\t\r",
		"unicode":        "ÄÖÜ 漢字 🜁 \u2028 \u00a0 é e\u0301",
		"nul":            "a\x00b",
		"braces":         "{\"context_updates\": {\"x\": 1}}",
		"long":           strings.Repeat("0123456789", 20000),
		"empty list":     []any{},
		"empty object":   map[string]any{},
		"nested":         []any{map[string]any{"a": []any{nil, false, int64(-1), "x"}}},
		"ключ \"'\\\n":   "a strange key",
		"__proto__":      map[string]any{"constructor": int64(1)},
		"$context":       "not a handle",
		"looks a handle": map[string]any{"$context": "x"},
	}
	t.Run("values go through code as they are", func(t *testing.T) {
		r := s.run(t, &sandbox.Job{Code: "context['back'] = inputs['all']\n", Inputs: map[string]any{"all": kept}})
		if len(r.Set) != 1 || len(r.Delete) != 0 {
			t.Fatalf("the update is %d keys set and %d deleted", len(r.Set), len(r.Delete))
		}
		back, _ := r.Set["back"].(map[string]any)
		for k, v := range kept {
			if !equalValues(back[k], v) {
				t.Errorf("%q came back as %.100q, want %.100q", k, fmt.Sprintf("%T %v", back[k], back[k]), fmt.Sprintf("%T %v", v, v))
			}
		}
	})
	t.Run("values of the context that are not touched are not in the update", func(t *testing.T) {
		expect(t, s.run(t, &sandbox.Job{Code: "x = 1", Context: kept}), map[string]any{})
	})
	for name, expr := range map[string]string{"NaN": s.NaN, "infinity": s.Infinity, "what is not JSON": s.Unencodable} {
		t.Run(name+" is an error that names the key", func(t *testing.T) {
			code := "context['fine'] = 1\ncontext['odd'] = " + expr + "\n"
			if e := s.runFailing(t, &sandbox.Job{Code: code}, engine.CodeCodeValue); e.Key != "odd" {
				t.Errorf("the error is about %q: %s", e.Key, e.Message)
			}
			deep := "context['odd'] = {'a': [1, " + expr + "]}\n"
			if e := s.runFailing(t, &sandbox.Job{Code: deep}, engine.CodeCodeValue); e.Key != "odd" {
				t.Errorf("the error of one inside is about %q: %s", e.Key, e.Message)
			}
		})
	}
	t.Run("a value that holds itself is an error that names the key", func(t *testing.T) {
		e := s.runFailing(t, &sandbox.Job{Code: "l = []\nl.append(l)\ncontext['round'] = l\n"}, engine.CodeCodeValue)
		if e.Key != "round" {
			t.Errorf("the error is about %q: %s", e.Key, e.Message)
		}
	})
	t.Run("a context that is no dict is an error", func(t *testing.T) {
		_ = s.runFailing(t, &sandbox.Job{Code: "context = [1]\n"}, engine.CodeCodeValue)
	})
	t.Run("a tuple is a list", func(t *testing.T) {
		expect(t, s.run(t, &sandbox.Job{Code: "context['t'] = (1, ('a', None))\n"}), map[string]any{"t": []any{int64(1), []any{"a", nil}}})
	})
}
