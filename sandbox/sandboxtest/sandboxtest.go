// Package sandboxtest is the conformance suite of executors. The tests of an executor
// call Suite with the dialect of its language. A feature that the language lacks is
// left empty there, and its test is skipped by name. It must not know how an executor
// isolates code.
package sandboxtest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-run/weir/sandbox"
)

// Dialect has the language-specific parts of the suite's code.
type Dialect struct {
	// Dumps is the call that encodes a value as JSON, with %s for the value.
	Dumps string
	// ReadFile is an expression for the text of the file "note".
	ReadFile string
	// Fail raises an error on line 3, inside a function, with the text "no such customer".
	Fail string
	// Exit ends the code at once, as if it had reached its end; ExitWith ends it with a failing exit code. Empty if
	// the language has none.
	Exit, ExitWith string
	// Stderr writes "careful" to standard error; empty if the language cannot.
	Stderr string
	// NaN and Infinity are expressions; Alien is an expression for a value that JSON does not have.
	NaN, Infinity, Unencodable string
	// LoopForever never ends; Flood writes without end; Hoard allocates 4 GB of memory in small steps, Double by
	// doubling a list.
	LoopForever, WriteForever, AllocateSlowly, AllocateDoubling string
	// SyntaxError has a syntax error on line 2.
	SyntaxError string
}

// Python returns the dialect of Python 3.
func Python() Dialect {
	return Dialect{
		Dumps:    "__import__('json').dumps(%s)",
		ReadFile: "open(files['note'], encoding='utf-8').read()",
		Fail:     "def find(name):\n    if name:\n        raise ValueError('no such customer')\nfind('x')\n",
		Exit:     "import sys\nsys.exit()",
		ExitWith: "import os\nos._exit(7)",
		Stderr:   "import sys\nprint('careful', file=sys.stderr)",
		NaN:      "float('nan')", Infinity: "float('-inf')", Unencodable: "{1, 2}",
		LoopForever:      "while True:\n    pass\n",
		WriteForever:     "while True:\n    print('x' * 1000)\n",
		AllocateSlowly:   "l = []\nwhile True:\n    l.append(bytearray(1000000))\n",
		AllocateDoubling: "l = [0]\nwhile True:\n    l = l + l\n",
		SyntaxError:      "x = 1\nif x ==\n    y = 2\n",
	}
}

// Starlark returns the dialect of Starlark.
func Starlark() Dialect {
	return Dialect{
		Dumps:    "json.encode(%s)",
		ReadFile: "files['note']",
		Fail:     "def find(name):\n    if name:\n        fail('no such customer')\nfind('x')\n",
		NaN:      "float('nan')", Infinity: "float('-inf')", Unencodable: "len",
		LoopForever:      "while True:\n    pass\n",
		WriteForever:     "while True:\n    print('x' * 1000)\n",
		AllocateSlowly:   "l = []\nwhile True:\n    l.append('x' * 1000000 + str(len(l)))\n",
		AllocateDoubling: "l = [0]\nwhile True:\n    l = l + l\n",
		SyntaxError:      "x = 1\nif x ==\n    y = 2\n",
	}
}

// Suite runs all tests; open returns an executor and registers its cleanup.
func Suite(t *testing.T, open func(t *testing.T) sandbox.Executor, d Dialect) {
	s := &suite{open: open, Dialect: d}
	for _, group := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"reading", s.reading},
		{"changes", s.changes},
		{"values", s.values},
		{"printing", s.printing},
		{"decisions", s.decisions},
		{"failures", s.failures},
		{"checks", s.checks},
		{"limits", s.limits},
		{"many", s.concurrentJobs},
	} {
		t.Run(group.name, group.run)
	}
}

type suite struct {
	Dialect
	open func(t *testing.T) sandbox.Executor
}

// jobTimeout is longer than any job of the suite that is not meant to time out.
const jobTimeout = 30 * time.Second

// run runs a job that must succeed.
func (s *suite) run(t *testing.T, job *sandbox.Job) *sandbox.Result {
	t.Helper()
	r, err := s.runChecked(t.Context(), t, job)
	if err != nil {
		t.Fatalf("the code failed: %v\n%s", err, traceback(err))
	}
	return r
}

// runChecked runs a job and checks that its result and error are consistent.
func (s *suite) runChecked(ctx context.Context, t *testing.T, job *sandbox.Job) (*sandbox.Result, error) {
	t.Helper()
	if job.Limits.Time == 0 {
		job.Limits.Time = jobTimeout
	}
	r, err := s.open(t).Run(ctx, job)
	if err == nil && r == nil {
		t.Fatal("neither a result nor an error")
	}
	if err != nil {
		if _, ok := errors.AsType[*sandbox.Error](err); !ok {
			t.Fatalf("the error is of type %T: %v", err, err)
		}
	}
	return r, err
}

// runFailing runs a job that must fail with a code.
func (s *suite) runFailing(t *testing.T, job *sandbox.Job, code string) *sandbox.Error {
	t.Helper()
	r, err := s.runChecked(t.Context(), t, job)
	if err == nil {
		t.Fatalf("the code brought %+v, want the error %s", r, code)
	}
	e, _ := errors.AsType[*sandbox.Error](err)
	if e.Code != code {
		t.Fatalf("the error is %s: %v, want %s\n%s", e.Code, e, code, e.Traceback)
	}
	if e.Message == "" {
		t.Error("the error says nothing")
	}
	return e
}

// update returns the keys that a result sets and deletes; deleted ones have the value deleted.
func update(r *sandbox.Result) map[string]any {
	m := make(map[string]any, len(r.Set)+len(r.Delete))
	maps.Copy(m, r.Set)
	for _, k := range r.Delete {
		m[k] = deleted
	}
	return m
}

// deleted represents a deletion in the result of update.
const deleted = "(deleted)"

func expect(t *testing.T, r *sandbox.Result, want map[string]any) {
	t.Helper()
	if got := update(r); !reflect.DeepEqual(got, want) {
		t.Errorf("the update is\n%#v, want\n%#v", got, want)
	}
}

func traceback(err error) string {
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		return ""
	}
	return e.Traceback
}

// write creates a file for a job.
func write(t *testing.T, name, text string) sandbox.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outside-"+name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return sandbox.File{Name: name, Path: path}
}

func (s *suite) needs(t *testing.T, snippet, what string) {
	t.Helper()
	if snippet == "" {
		t.Skip("the language has no way to " + what)
	}
}
