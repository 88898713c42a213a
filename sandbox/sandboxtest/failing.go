package sandboxtest

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

func (s *suite) failures(t *testing.T) {
	t.Run("an error has its message, the traceback and the line", s.raisedErrors)
	t.Run("what was printed before an error is there", func(t *testing.T) {
		r, err := s.runChecked(t.Context(), t, &sandbox.Job{Code: printStatement("so far") + s.Fail})
		if err == nil || r == nil || r.Stdout != "so far\n" {
			t.Errorf("the result is %+v, %v", r, err)
		}
		if r != nil && (len(r.Set) > 0 || len(r.Delete) > 0) {
			t.Errorf("code that failed has an update: %+v", r)
		}
	})
	s.abnormalExits(t)
}

// raisedErrors tests errors that the code raises.
func (s *suite) raisedErrors(t *testing.T) {
	e := s.runFailing(t, &sandbox.Job{Code: s.Fail}, engine.CodeCodeFailed)
	if !strings.Contains(e.Message, "no such customer") {
		t.Errorf("the message is %q", e.Message)
	}
	if e.Line != 3 {
		t.Errorf("the line is %d, want 3", e.Line)
	}
	for _, want := range []string{"find", "3", "4", "no such customer"} {
		if !strings.Contains(e.Traceback, want) {
			t.Errorf("the traceback does not say %q:\n%s", want, e.Traceback)
		}
	}
	for _, foreign := range []string{"weir", "harness", "sandbox"} {
		if strings.Contains(e.Traceback, foreign) {
			t.Errorf("the traceback shows what is not the user's, %q:\n%s", foreign, e.Traceback)
		}
	}
	if e.Retry {
		t.Error("the same code fails the same way, and the error says that it may not")
	}
}

// abnormalExits tests other ways in which code ends early.
func (s *suite) abnormalExits(t *testing.T) {
	t.Run("an error wins over an update that was printed before", func(t *testing.T) {
		_ = s.runFailing(t, &sandbox.Job{Code: printStatement(`{"status": "success", "context_updates": {"a": 1}}`) + s.Fail}, engine.CodeCodeFailed)
	})
	t.Run("a key that is not there is an error of the code with its line", func(t *testing.T) {
		e := s.runFailing(t, &sandbox.Job{Code: "x = 1\ny = context['amout']\n"}, engine.CodeCodeFailed)
		if !strings.Contains(e.Message, "amout") || e.Line != 2 {
			t.Errorf("the error is %+v", e)
		}
	})
	t.Run("code that does not parse is invalid, with the line", func(t *testing.T) {
		e := s.runFailing(t, &sandbox.Job{Code: s.SyntaxError}, engine.CodeCodeInvalid)
		if e.Line != 2 {
			t.Errorf("the line is %d, want 2: %s", e.Line, e.Message)
		}
	})
	for name, code := range map[string]string{
		"a dict": "x = 1\ncontext = {'old': 1, 'only': 2}\n", "a list": "x = 1\ncontext = []\n", "none": "x = 1\ncontext = None\n",
		"one of several": "x = 1\ncontext, y = {'a': 1}, 2\n",
	} {
		t.Run("another value under the name context is refused: "+name, func(t *testing.T) {
			e := s.runFailing(t, &sandbox.Job{Code: code, Context: map[string]any{"kept": int64(1)}}, engine.CodeCodeValue)
			if e.Line != 2 || e.Key != "context" || !strings.Contains(e.Hint, "in place") {
				t.Errorf("the error is %+v", e)
			}
		})
	}
	t.Run("a local name context is the code's own", func(t *testing.T) {
		code := "def f(context):\n    context = {'a': 1}\n    return context\n\ncontext['b'] = f(1)['a']\n"
		expect(t, s.run(t, &sandbox.Job{Code: code, Context: map[string]any{"kept": int64(1)}}), map[string]any{"b": int64(1)})
	})
	t.Run("an exit in the middle keeps what was done", func(t *testing.T) {
		s.needs(t, s.Exit, "end early")
		r := s.run(t, &sandbox.Job{Code: "context['a'] = 1\n" + s.Exit + "\ncontext['a'] = 2\n"})
		expect(t, r, map[string]any{"a": int64(1)})
	})
	t.Run("an exit code is an error", func(t *testing.T) {
		s.needs(t, s.ExitWith, "end with a code")
		_, err := s.runChecked(t.Context(), t, &sandbox.Job{Code: "context['a'] = 1\n" + s.ExitWith + "\n"})
		if err == nil {
			t.Error("no error")
		}
	})
}

func (s *suite) checks(t *testing.T) {
	given := map[string]any{"amount": int64(1), "customer": map[string]any{}}
	check := func(t *testing.T, code string) []sandbox.Problem {
		t.Helper()
		list, err := s.open(t).Check(t.Context(), &sandbox.Job{Code: code, Context: given, Inputs: map[string]any{"n": int64(1)}})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, tt := range []struct {
		name, code string
		line       int
		says       string
	}{
		{"code that does not parse", s.SyntaxError, 2, ""},
		{"a name that nothing defines", "x = 1\nprint(x)\ny = x + amuont\n", 3, "amuont"},
		{"a name that nothing defines, inside a function", "def f(a):\n    return a + missing_name\nf(1)\n", 2, "missing_name"},
		{"a key of the context that is not there", "x = context['amount']\ny = context['amout']\n", 2, "amout"},
		{"a key that is not there, inside a function", "def f():\n    return context[\"totl\"]\nf()\n", 2, "totl"},
	} {
		t.Run(tt.name+" is found", func(t *testing.T) {
			list := check(t, tt.code)
			if len(list) != 1 || list[0].Line != tt.line || !strings.Contains(list[0].Message, tt.says) {
				t.Errorf("found %+v, want one problem in line %d about %q", list, tt.line, tt.says)
			}
		})
	}
	for _, tt := range []struct{ name, code string }{
		{"code without fault", "context['total'] = context['amount'] + inputs['n']\nprint(context['total'])\n"},
		{"a key that is set before it is read", "context['new'] = 1\nx = context['new']\n"},
		{"a key that is asked for before it is read", "if 'maybe' in context:\n    x = context['maybe']\n"},
		{"a key with a default", "x = context.get('maybe', 1)\n"},
		{"a name of the language", "print(len(sorted([str(1), repr(2)])))\n"},
		{"names of loops, functions and comprehensions", "def f(a, b=1):\n    return [c + a for c in range(b)]\nfor i in f(1):\n    print(i)\n"},
		{"a dict of another name", "d = {'x': 1}\nprint(d['x'])\n"},
		{"empty code", ""},
	} {
		t.Run(tt.name+" is no problem", func(t *testing.T) {
			if list := check(t, tt.code); len(list) > 0 {
				t.Errorf("found %+v", list)
			}
		})
	}
	t.Run("a check runs nothing", func(t *testing.T) {
		if list := check(t, s.LoopForever); len(list) > 0 {
			t.Errorf("found %+v", list)
		}
		if list := check(t, s.Fail); len(list) > 0 {
			t.Errorf("found %+v", list)
		}
	})
}
