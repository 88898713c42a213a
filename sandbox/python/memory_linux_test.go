package python_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
)

// TestMemoryIsReportedWhereverItEnds uses up the memory in each phase of a job: the reading of its values, the code, and
// the reading of what the code left.
func TestMemoryIsReportedWhereverItEnds(t *testing.T) {
	t.Parallel()
	ready(t)
	const numbers = "for i in range(100_000_000):\n    "
	for name, job := range map[string]*sandbox.Job{
		"the values of the job":        {Code: "x = 1\n", Context: map[string]any{"text": strings.Repeat("a", 90<<20)}},
		"a large value":                {Code: "x = 'a' * (1 << 30)\n"},
		"a list of small values":       {Code: "x = []\n" + numbers + "x.append(i)\n"},
		"an object of small values":    {Code: "x = {}\n" + numbers + "x[i] = i\n"},
		"a function":                   {Code: "def f():\n    x = []\n    " + strings.ReplaceAll(numbers, "\n", "\n    ") + "x.append(i)\nf()\n"},
		"a large value that is left":   {Code: "context['x'] = 'a' * (90 << 20)\n"},
		"small values that are left":   {Code: "context['x'] = [0] * 10_000_000\n"},
		"many keys that are left":      {Code: "for i in range(3_000_000):\n    context['k%d' % i] = i\n"},
		"a value that is left, caught": {Code: "x = context['x'] = []\ntry:\n    " + strings.ReplaceAll(numbers, "\n", "\n    ") + "x.append(i)\nexcept MemoryError:\n    pass\n"},
	} {
		t.Run(name, func(t *testing.T) {
			job.Limits = sandbox.Limits{Memory: 128 << 20}
			_, err := python.New(python.Options{}).Run(t.Context(), job)
			if e, _ := errors.AsType[*sandbox.Error](err); e == nil || e.Code != engine.CodeCodeMemory {
				t.Errorf("the error is %v, not %s", err, engine.CodeCodeMemory)
			}
		})
	}
	t.Run("code that catches the error leaves its result", func(t *testing.T) {
		r, err := python.New(python.Options{}).Run(t.Context(), &sandbox.Job{
			Code:   "x = []\ntry:\n    " + strings.ReplaceAll(numbers, "\n", "\n    ") + "x.append(i)\nexcept MemoryError:\n    pass\ncontext['n'] = 1\n",
			Limits: sandbox.Limits{Memory: 128 << 20},
		})
		if err != nil || r.Set["n"] != int64(1) {
			t.Errorf("the result is %+v, %v", r, err)
		}
	})
}

// TestAFaultInWhatCodeLeavesIsAnErrorOfTheCode leaves values whose own methods fail, and an interpreter that cannot be used.
func TestAFaultInWhatCodeLeavesIsAnErrorOfTheCode(t *testing.T) {
	t.Parallel()
	ready(t)
	const class = "class K:\n    def __repr__(self):\n        raise ValueError('no')\n    __str__ = __repr__\n"
	for name, code := range map[string]string{
		"a key":         class + "context[K()] = 1\n",
		"an exit code":  class + "import sys\nsys.exit(K())\n",
		"an exception":  "class E(Exception):\n    def __str__(self):\n        raise ValueError('no')\nraise E()\n",
		"the recursion": "import sys\ncontext['x'] = [[[[[[[[[[1]]]]]]]]]]\nsys.setrecursionlimit(16)\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := python.New(python.Options{}).Run(t.Context(), &sandbox.Job{Code: code})
			e, _ := errors.AsType[*sandbox.Error](err)
			if e == nil || e.Code != engine.CodeCodeFailed || strings.Contains(e.Message, "exit code 1") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
