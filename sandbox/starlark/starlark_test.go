package starlark_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/sandboxtest"
	"github.com/weir-run/weir/sandbox/starlark"
)

// self is how the test binary starts itself again.
var self sandbox.SelfCommand

func TestMain(m *testing.M) {
	self = sandbox.RunChildRole(starlark.Role(), sandbox.ChildRole{Name: "forgoing", Main: childSyscallMode})
	os.Exit(m.Run())
}

func TestStarlarkExecutor(t *testing.T) {
	sandboxtest.Suite(t, func(*testing.T) sandbox.Executor { return starlark.New(self, starlark.Options{}) }, sandboxtest.Starlark())
}

func run(t *testing.T, job *sandbox.Job) (*sandbox.Result, *sandbox.Error) {
	t.Helper()
	r, err := starlark.New(self, starlark.Options{Steps: 10_000_000}).Run(t.Context(), job)
	if err == nil {
		return r, nil
	}
	fault, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		t.Fatalf("the error is of type %T: %v", err, err)
	}
	return r, fault
}

func TestStepsAreLimited(t *testing.T) {
	_, fault := run(t, &sandbox.Job{Code: "x = 0\nfor i in range(100000000):\n    x += i\n"})
	if fault == nil || fault.Code != engine.CodeCodeTimeout || !strings.Contains(fault.Message, "10000000 steps") || fault.Line == 0 {
		t.Errorf("the error is %+v", fault)
	}
}

func TestAllocationsAreRefusedAtTheLimit(t *testing.T) {
	if starlark.RaceEnabled {
		t.Skip("a program that finds data races is not held to its memory by the kernel")
	}
	for name, code := range map[string]string{
		"a list that doubles":  "l = [0]\nwhile True:\n    l = l + l\n",
		"a list that extends":  "l = [0]\nwhile True:\n    l.extend(l)\n",
		"a text that doubles":  "s = 'x'\nwhile True:\n    s = s + s\n",
		"one long text":        "s = 'x' * 1000000000\n",
		"one long list":        "l = [0] * 1000000000\n",
		"a number that grows":  "n = 2\nwhile True:\n    n = n * n\n",
		"a dict that grows":    "d = {}\nfor i in range(100000000):\n    d[i] = [i]\n",
		"a text of many parts": "s = ''.join(['x' * 1000000 for i in range(100000)])\n",
		"a number shifted far": "n = 1 << 511\nfor i in range(100):\n    n = n << 511\nl = [n * (i + 1) for i in range(10000000)]\n",
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 64 << 20
			e := starlark.New(self, starlark.Options{})
			_, err := e.Run(t.Context(), &sandbox.Job{Code: code, Limits: sandbox.Limits{Memory: limit, Time: 20 * time.Second}})
			fault, _ := errors.AsType[*sandbox.Error](err)
			if fault == nil || fault.Code == engine.CodeCodeKilled || fault.Code == engine.CodeSandboxFailed {
				t.Fatalf("the error is %+v", fault)
			}
			t.Logf("%s: %s", fault.Code, fault.Message)
			if most := childMemory(t); most > limit+200<<20 {
				t.Errorf("a child took %d MB", most>>20)
			}
		})
	}
}

func TestDeepNestingEndsOnlyTheChildProcess(t *testing.T) {
	for name, code := range map[string]string{
		"brackets":    strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000),
		"parentheses": "x = " + strings.Repeat("(", 1_000_000),
		"operators":   "x = " + strings.Repeat("not ", 1_000_000) + "True",
		"a value":     "l = []\nfor i in range(1000000):\n    l = [l]\nprint(str(l))\n",
		"JSON":        "x = json.decode('[' * 1000000)\n",
		"the context": "l = []\nfor i in range(300):\n    l = [l]\ncontext['l'] = l\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, fault := run(t, &sandbox.Job{Code: code})
			if fault == nil || fault.Code == engine.CodeCodeKilled || fault.Code == engine.CodeSandboxFailed {
				t.Fatalf("the error is %+v", fault)
			}
			t.Logf("%s: %.100s", fault.Code, fault.Message)
		})
	}
	_, err := starlark.New(self, starlark.Options{}).Check(t.Context(), &sandbox.Job{Code: "x = " + strings.Repeat("(", 1_000_000)})
	t.Logf("checked: %v", err)
}

func TestFilesAreTheirContents(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"text": "a\r\nü", "bytes": "\xff\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := []sandbox.File{{Name: "t", Path: filepath.Join(dir, "text")}, {Name: "b", Path: filepath.Join(dir, "bytes")}}
	r, fault := run(t, &sandbox.Job{Code: "context['t'] = files['t']\ncontext['b'] = [x for x in files['b'].elems()]\n", Files: files})
	if fault != nil || !reflect.DeepEqual(r.Set, map[string]any{"t": "a\r\nü", "b": []any{int64(255), int64(0)}}) {
		t.Errorf("the code read %v, %v", r, fault)
	}
	if _, fault = run(t, &sandbox.Job{Code: "files['t'] = 'x'\n", Files: files}); fault == nil || !strings.Contains(fault.Message, "frozen") {
		t.Errorf("writing a file: %v", fault)
	}
}

func TestTheLanguageReachesNothingOutside(t *testing.T) {
	for _, code := range []string{
		"load('os', 'system')\n", "import os\n", "open('/etc/passwd')\n", "__import__('os')\n", "eval('1')\n", "exec('1')\n",
		"x = getattr(context, '__class__')\n", "time.now()\n", "x = context.__class__\n",
	} {
		if _, fault := run(t, &sandbox.Job{Code: code}); fault == nil || fault.Code != engine.CodeCodeInvalid && fault.Code != engine.CodeCodeFailed {
			t.Errorf("%q: %+v", code, fault)
		}
	}
}

func TestWithoutAProgramToStartItRefuses(t *testing.T) {
	e := starlark.New(sandbox.SelfCommand{}, starlark.Options{})
	_, run := e.Run(t.Context(), &sandbox.Job{Code: "x = 1"})
	_, check := e.Check(t.Context(), &sandbox.Job{Code: "x = 1"})
	for what, err := range map[string]error{"probe": e.Probe(t.Context()), "run": run, "check": check} {
		fault, _ := errors.AsType[*sandbox.Error](err)
		if fault == nil || fault.Code != engine.CodeSandboxUnavailable || fault.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
