package flowtest

import (
	"context"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
)

// Options of a test run; the zero value works.
type Options struct {
	// Types are node types in addition to the built-in ones.
	Types []weir.Type
	// Models has the prices of models; nil means the built-in table.
	Models *llm.Catalogue
	// FlowFolders are folders that the flows which a flow uses may be in, besides its own.
	FlowFolders []string
	// HTTP performs the requests of tests with `network: true`; nil refuses private addresses.
	HTTP node.HTTPDoer
	// Executors run the code of nodes that are not mocked.
	Executors []sandbox.Executor
	// Run selects tests by "FILE: NAME"; nil selects all.
	Run *regexp.Regexp
	// Update writes golden files that differ.
	Update bool
	// Parallel is the maximum number of concurrent tests; 0 means the number of processors.
	Parallel int
	// Report is called with each completed file, in the order of their paths.
	Report func(FileResult)
}

// Status is the outcome of a test or a file.
type Status string

// The outcomes of tests and files. A file is Invalid if it cannot be read; a test is Stopped if the test run ended
// first.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	Invalid Status = "invalid"
	Stopped Status = "stopped"
)

// Result is the outcome of one test.
type Result struct {
	Name     string
	Pos      flow.Pos
	Status   Status
	Reason   string // why it was skipped
	Took     time.Duration
	Failures []Failure
	// Updated is the path of the written golden file.
	Updated string
}

// FileResult is the outcome of one file.
type FileResult struct {
	Path, Flow string
	// Status is Invalid, Stopped, Failed, or Passed if no test failed.
	Status Status
	// Problems describes why the file is invalid, Error why it could not be read.
	Problems []flow.Problem
	Error    string
	Tests    []Result
	Took     time.Duration
}

// Report summarises a test run.
type Report struct {
	Files []FileResult
	// Passed, Failed, Skipped and Stopped count tests; a file that was not started counts as one stopped test.
	// Invalid counts files.
	Passed, Failed, Skipped, Stopped, Invalid int
	Took                                      time.Duration
}

// OK reports whether nothing failed and everything ran.
func (r *Report) OK() bool { return r.Failed == 0 && r.Invalid == 0 && r.Stopped == 0 }

// Run runs the tests of the files concurrently, and reports the files in order. When ctx ends, unfinished tests are
// Stopped.
func Run(ctx context.Context, files []string, o Options) Report {
	begin := time.Now()
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	slots := make(chan struct{}, o.Parallel)
	done := make([]chan FileResult, len(files))
	for i, path := range files {
		done[i] = make(chan FileResult, 1)
		go func() { done[i] <- runFile(ctx, path, &o, slots) }()
	}
	var r Report
	for _, d := range done {
		f := <-d
		r.add(f)
		if o.Report != nil {
			o.Report(f)
		}
	}
	r.Took = time.Since(begin)
	return r
}

func (r *Report) add(f FileResult) {
	r.Files = append(r.Files, f)
	switch {
	case f.Status == Invalid:
		r.Invalid++
	case f.Status == Stopped && len(f.Tests) == 0:
		r.Stopped++ // whatever it contains
	}
	for _, t := range f.Tests {
		switch t.Status {
		case Passed:
			r.Passed++
		case Failed:
			r.Failed++
		case Skipped:
			r.Skipped++
		case Stopped:
			r.Stopped++
		case Invalid:
		}
	}
}

// runFile runs the tests of one file, each in a slot.
func runFile(ctx context.Context, path string, o *Options, slots chan struct{}) FileResult {
	begin := time.Now()
	out := FileResult{Path: path, Status: Passed}
	if !acquireSlot(ctx, slots) {
		out.Status = Stopped
		return out
	}
	f, err := Load(path, *o)
	<-slots
	if err != nil {
		out.Status = Invalid
		var ok bool
		if out.Problems, ok = problemsIn(err); !ok {
			out.Error = err.Error()
		}
		return out
	}
	out.Flow = f.Flow.Name
	var tests []*Test
	for _, t := range f.Tests {
		if o.Run == nil || o.Run.MatchString(path+": "+t.Name) {
			tests = append(tests, t)
		}
	}
	out.Tests = make([]Result, len(tests))
	var all sync.WaitGroup
	for i, t := range tests {
		all.Go(func() {
			out.Tests[i] = Result{Name: t.Name, Pos: t.Pos, Status: Stopped}
			if acquireSlot(ctx, slots) {
				defer func() { <-slots }()
				out.Tests[i] = t.run(ctx, f, o)
			}
		})
	}
	all.Wait()
	for _, t := range out.Tests {
		if t.Status == Failed || t.Status == Stopped && out.Status != Failed {
			out.Status = t.Status
		}
	}
	out.Took = time.Since(begin)
	return out
}

// acquireSlot waits for a slot; false if ctx ends first.
func acquireSlot(ctx context.Context, slots chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// run runs one test.
func (t *Test) run(ctx context.Context, f *File, o *Options) Result {
	r := Result{Name: t.Name, Pos: t.Pos, Status: Passed}
	if t.Skip != "" {
		r.Status, r.Reason = Skipped, t.Skip
		return r
	}
	begin := time.Now()
	seen, failures, err := t.execute(ctx, f, o)
	r.Took = time.Since(begin)
	switch {
	case ctx.Err() != nil:
		r.Status = Stopped
		return r
	case err != nil:
		failures = append(failures, Failure{Pos: t.Pos, Message: err.Error()})
	case t.expect.golden != "" && seen != nil && seen.status == t.expect.status:
		found, written := t.expect.checkGolden(seen, o.Update && len(failures) == 0)
		failures = append(failures, found...)
		r.Updated = written
	}
	if r.Failures = failures; len(failures) > 0 {
		r.Status = Failed
	}
	return r
}
