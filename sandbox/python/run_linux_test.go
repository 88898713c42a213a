//go:build linux && (amd64 || arm64)

package python_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
)

func TestATracebackShowsTheLinesOfTheCode(t *testing.T) {
	ready(t)
	e := python.New(python.Options{})
	_, err := e.Run(t.Context(), &sandbox.Job{Code: "import json\n\ndef total(text):\n    return json.loads(text)['total']\n\ntotal('{')\n"})
	f, ok := errors.AsType[*sandbox.Error](err)
	if !ok || f.Code != engine.CodeCodeFailed || f.Line != 4 {
		t.Fatalf("the error is %#v", err)
	}
	for _, want := range []string{`File "<code>", line 6`, `File "<code>", line 4, in total`, "return json.loads(text)['total']", "JSONDecodeError"} {
		if !strings.Contains(f.Traceback, want) {
			t.Errorf("the traceback lacks %q:\n%s", want, f.Traceback)
		}
	}
	if !strings.HasPrefix(f.Traceback, "Traceback (most recent call last):\n  File \"<code>\", line 6") {
		t.Errorf("the traceback does not begin in the code:\n%s", f.Traceback)
	}
}

func TestCodeImportsFromTheFoldersOfPackages(t *testing.T) {
	ready(t)
	dir := openFolder(t)
	if err := os.WriteFile(filepath.Join(dir, "invoices.py"), []byte("rate = 19\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := python.New(python.Options{Packages: []string{dir}})
	r, err := e.Run(t.Context(), &sandbox.Job{Code: "import invoices\ncontext['rate'] = invoices.rate\n"})
	if err != nil || r.Set["rate"] != int64(19) {
		t.Errorf("brought %+v, %v", r, err)
	}
	gone := python.New(python.Options{Packages: []string{dir + "-gone"}})
	if _, err := gone.Run(t.Context(), &sandbox.Job{}); err == nil || !strings.Contains(err.Error(), dir+"-gone") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestTheStandardLibraryWorks(t *testing.T) {
	ready(t)
	code := `
import asyncio, csv, datetime, decimal, hashlib, io, re, sqlite3, statistics, tempfile, threading, zlib, zoneinfo, concurrent.futures
async def f():
    await asyncio.sleep(0.01)
    return 3
context["async"] = asyncio.run(f())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    context["pool"] = list(pool.map(lambda x: x * x, range(5)))
with tempfile.TemporaryFile() as t:
    t.write(b"abc"); t.seek(0)
    context["file"] = t.read().decode()
context["sql"] = sqlite3.connect(":memory:").execute("select 1 + 1").fetchone()[0]
context["hash"] = hashlib.sha256(b"x").hexdigest()[:8]
context["zone"] = str(datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).utcoffset())
context["zip"] = len(zlib.compress(b"x" * 1000)) < 100
`
	r, err := python.New(python.Options{}).Run(t.Context(), &sandbox.Job{Code: code})
	if err != nil {
		f, _ := errors.AsType[*sandbox.Error](err)
		t.Fatalf("%v\n%s", err, f.Traceback)
	}
	if r.Set["async"] != int64(3) || r.Set["file"] != "abc" || r.Set["sql"] != int64(2) || r.Set["zone"] != "1:00:00" || r.Set["zip"] != true {
		t.Errorf("brought %v", r.Set)
	}
}

func TestWaitingForAPlaceIsNotTheJobsTime(t *testing.T) {
	ready(t)
	e := python.New(python.Options{Concurrent: 1})
	var wait sync.WaitGroup
	var took atomic.Int64
	began := time.Now()
	for range 3 {
		wait.Go(func() {
			r, err := e.Run(t.Context(), &sandbox.Job{Code: "import time\ntime.sleep(0.3)"})
			if err != nil {
				t.Error(err)
				return
			}
			took.Add(int64(r.Duration))
		})
	}
	wait.Wait()
	if whole, all := time.Since(began), time.Duration(took.Load()); all > whole {
		t.Errorf("three jobs one after another took %s of %s", all, whole)
	}
}

var runsUnderLoad = flag.Int("python.runs", 100, "how many runs of code there are under load")

func TestRunsUnderLoadHaveNoFaultOfTheirOwn(t *testing.T) {
	ready(t)
	runs := *runsUnderLoad
	if testing.Short() {
		runs = 50
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range runtime.GOMAXPROCS(0) { // load: garbage, so that the runtime has its hands full
		go func() {
			for ctx.Err() == nil {
				_ = make([]byte, 1<<20)
			}
		}()
	}
	e := python.New(python.Options{})
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := next.Add(1); n <= int64(runs); n = next.Add(1) {
				r, err := e.Run(ctx, &sandbox.Job{Code: "context['n'] += 1", Context: map[string]any{"n": n}})
				if err != nil || r.Set["n"] != n+1 {
					t.Errorf("run %d brought %+v, %v", n, r, err)
				}
			}
		})
	}
	wait.Wait()
}

func TestNoRunLeavesAFileOrThreadOpen(t *testing.T) {
	ready(t)
	e := python.New(python.Options{Concurrent: 4})
	run := func(n int) {
		for range n {
			_, _ = e.Run(t.Context(), &sandbox.Job{Code: "import os\nos._exit(1)"})
			_, _ = e.Run(t.Context(), &sandbox.Job{Code: "while True:\n    print('x' * 100000)"})
		}
	}
	run(3)
	before := openFiles(t)
	run(20)
	if after := openFiles(t); after > before+4 {
		t.Errorf("%d files are open, before it were %d", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestAnInterpreterThatIsNoneIsRefused(t *testing.T) {
	for _, path := range []string{"/bin/false", "/nowhere/python3", "/bin/cat"} {
		e := python.New(python.Options{Interpreter: path})
		for range 2 { // the second time from memory
			_, err := e.Run(t.Context(), &sandbox.Job{Code: "pass"})
			f, ok := errors.AsType[*sandbox.Error](err)
			if !ok || f.Code != engine.CodeSandboxUnavailable || f.Hint == "" || !strings.Contains(f.Message, path) {
				t.Errorf("%s: %#v", path, err)
			}
		}
	}
}

func TestCheckFindsWhatWouldFailAndNothingElse(t *testing.T) {
	ready(t)
	e := python.New(python.Options{})
	job := sandbox.Job{Context: map[string]any{"amount": int64(1)}, Inputs: map[string]any{"text": "x"}, Files: nil}
	for _, tt := range []struct {
		name, code string
		line       int // 0 for no problem
	}{
		{"a key in a try that catches it", "try:\n    x = context['gone']\nexcept KeyError:\n    x = 0\n", 0},
		{"a key after an update with it", "context.update(gone=1)\nx = context['gone']\n", 0},
		{"a key after an update that cannot be read", "context.update(**inputs)\nx = context['gone']\n", 0},
		{"a context handed to a function that may set keys", "def f(c):\n    c['gone'] = 1\nf(context)\nx = context['gone']\n", 0},
		{"an input that is not there", "x = 1\ny = inputs['gone']\n", 2},
		{"names of a walrus, with, except, class and match", "import re\nif (m := re.match('a', 'a')):\n    print(m)\nwith open('/tmp/x', 'w') as f:\n    f.write('')\ntry:\n    pass\nexcept OSError as e:\n    print(e)\nclass A:\n    b = 1\n    c = [d for d in range(b)]\nprint(A)\n", 0},
		{"a global that a function sets", "def f():\n    global g\n    g = 1\nf()\nprint(g)\n", 0},
		{"a name in a lambda", "f = lambda x: x + y\n", 1},
		{"a name in a decorator", "@gone\ndef f():\n    pass\n", 1},
		{"star imports may define any name", "from math import *\nprint(sin(1))\n", 0},
		{"return outside a function", "x = 1\nreturn x\n", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job.Code = tt.code
			list, err := e.Check(t.Context(), &job)
			if err != nil {
				t.Fatal(err)
			}
			if tt.line == 0 && len(list) > 0 || tt.line > 0 && (len(list) != 1 || list[0].Line != tt.line) {
				t.Errorf("found %+v, want one in line %d", list, tt.line)
			}
		})
	}
}
