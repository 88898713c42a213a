package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/flowtest"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// testKind are documents of results, by the name of the flow and an id that grows with time.
const testKind = "test_result"

const (
	// testTime bounds how long the tests of a flow may take.
	testTime = 90 * time.Second
	// maxTestResults is how many results of a flow are kept.
	maxTestResults = 20
)

// testFile is a file with tests of a flow.
type testFile struct {
	File     string    `json:"file" doc:"The name of the file, without its folder"`
	Problems []Mistake `json:"problems" doc:"Why the file cannot be used"`
	Tests    []testRow `json:"tests"`
}

type testRow struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	Skip string `json:"skip" doc:"Why it is not run; empty if it is"`
}

type testList struct {
	Files []testFile `json:"files"`
}

type runTestsInput struct {
	Flow string `path:"flow" maxLength:"400" doc:"The name of the flow"`
	Body struct {
		Test string `json:"test,omitempty" maxLength:"1000" doc:"Only the test with this name"`
	}
}

// testReport is what tests of a flow gave.
type testReport struct {
	ID      string       `json:"id"`
	By      string       `json:"by"`
	At      time.Time    `json:"at"`
	Flow    string       `json:"fingerprint" doc:"The version of the flow"`
	Passed  int          `json:"passed"`
	Failed  int          `json:"failed"`
	Skipped int          `json:"skipped"`
	Stopped int          `json:"stopped" doc:"Tests that had not ended when the time was over"`
	Invalid int          `json:"invalid" doc:"Files that cannot be used"`
	Seconds float64      `json:"seconds"`
	Tests   []testResult `json:"tests"`
}

type testResult struct {
	File     string        `json:"file"`
	Name     string        `json:"name" doc:"Empty for a file that cannot be used"`
	Status   string        `json:"status" enum:"passed,failed,skipped,stopped,invalid"`
	Seconds  float64       `json:"seconds"`
	Failures []testFailure `json:"failures"`
}

type testFailure struct {
	Line    int      `json:"line"`
	Where   string   `json:"where" doc:"The value that differs; empty is the test as a whole"`
	Message string   `json:"message"`
	Diff    []string `json:"diff" doc:"Lines that begin with -, + or a blank"`
}

type testResults struct {
	Results []testReport `json:"results" doc:"The newest first, at most 20"`
}

func (s *Server) registerFlowTests() {
	op := func(id, method, path string, scope Scope, summary, description string) operation {
		return operation{id: id, method: method, path: "/v1/flows/{flow}/tests" + path, scope: scope, summary: summary, description: description, tags: []string{"flows"}}
	}
	register(s, op("listTests", http.MethodGet, "", Read, "List the tests of a flow", "These are the test files beside the file of the flow. A flow that was put has none."), listTests)
	register(s, op("runTests", http.MethodPost, "/run", Start, "Run the tests of a flow",
		"No model, tool or person is asked, and nothing is kept but the result. One request at a time runs tests, for at most 90 seconds."), runTests)
	register(s, op("listTestResults", http.MethodGet, "/results", Read, "List the results of tests of a flow", ""), listTestResults)
}

// testsOf returns the test files of a flow, each with what it has or why it cannot be used.
func (c *call) testsOf(f *app.ServedFlow) (paths []string, list []testFile, err error) {
	if f.File == "" {
		return nil, []testFile{}, nil
	}
	list = []testFile{}
	for _, suffix := range flowtest.Suffixes() {
		found, err := filepath.Glob(filepath.Join(globQuoted(filepath.Dir(f.File)), "*"+suffix))
		if err != nil {
			return nil, nil, fmt.Errorf("find tests: %w", err)
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	var own []string
	for _, path := range paths {
		t, err := flowtest.Load(path, c.options.Tests)
		row := testFile{File: filepath.Base(path), Problems: []Mistake{}, Tests: []testRow{}}
		if invalid, ok := errors.AsType[*flow.Invalid](err); ok {
			// Whose tests they are is not known then: they are listed with each flow of the folder.
			row.Problems = mistakesOf(invalid)
		} else if err != nil {
			row.Problems = append(row.Problems, Mistake{Message: app.Printable(err.Error())})
		} else if !sameFile(t.FlowPath, f.File) {
			continue
		} else {
			for _, x := range t.Tests {
				row.Tests = append(row.Tests, testRow{x.Name, x.Pos.Line, x.Skip})
			}
		}
		own, list = append(own, path), append(list, row)
	}
	return own, list, nil
}

// globQuoted is a path as a pattern that matches it alone.
func globQuoted(path string) string {
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(path, `\$0`)
}

func sameFile(a, b string) bool {
	x, errA := filepath.Abs(a)
	y, errB := filepath.Abs(b)
	return errA == nil && errB == nil && x == y
}

func listTests(c *call, in *flowPath) (*body[testList], error) {
	f, err := c.flow(in.Flow)
	if err != nil {
		return nil, err
	}
	_, list, err := c.testsOf(f)
	return bodyOf(testList{list}), err
}

func runTests(c *call, in *runTestsInput) (*body[testReport], error) {
	f, err := c.flow(in.Flow)
	if err != nil {
		return nil, err
	}
	paths, list, err := c.testsOf(f)
	if err != nil {
		return nil, err
	}
	o := c.options.Tests
	if in.Body.Test != "" {
		if !slices.ContainsFunc(list, func(x testFile) bool {
			return slices.ContainsFunc(x.Tests, func(t testRow) bool { return t.Name == in.Body.Test })
		}) {
			return nil, notFound("test of flow "+in.Flow, in.Body.Test)
		}
		o.Run = regexp.MustCompile(": " + regexp.QuoteMeta(in.Body.Test) + "$")
	}
	if !c.testing.TryLock() {
		return nil, newProblem(http.StatusTooManyRequests, engine.CodeTooMany, "the server runs the tests of another request")
	}
	defer c.testing.Unlock()
	ctx, cancel := context.WithTimeout(c.untilDrain(c), testTime)
	defer cancel()
	r := flowtest.Run(ctx, paths, o)
	out := testReportOf(&r)
	out.ID, out.By, out.At, out.Flow = runner.NewID(), c.by(), time.Now().UTC().Truncate(time.Second), f.Fingerprint()
	return bodyOf(*out), c.keepTestResult(in.Flow, out)
}

func testReportOf(r *flowtest.Report) *testReport {
	out := &testReport{
		Passed: r.Passed, Failed: r.Failed, Skipped: r.Skipped, Stopped: r.Stopped, Invalid: r.Invalid, Seconds: r.Took.Seconds(), Tests: []testResult{},
	}
	for i := range r.Files {
		f := &r.Files[i]
		name := filepath.Base(f.Path)
		if len(f.Tests) == 0 && f.Status != flowtest.Passed {
			x := testResult{File: name, Status: string(f.Status), Seconds: f.Took.Seconds(), Failures: []testFailure{}}
			if f.Error != "" {
				x.Failures = append(x.Failures, testFailure{Message: app.Printable(f.Error), Diff: []string{}})
			}
			for _, p := range f.Problems {
				x.Failures = append(x.Failures, testFailure{p.Pos.Line, "", p.Message, []string{}})
			}
			out.Tests = append(out.Tests, x)
		}
		for j := range f.Tests {
			t := &f.Tests[j]
			x := testResult{File: name, Name: t.Name, Status: string(t.Status), Seconds: t.Took.Seconds(), Failures: []testFailure{}}
			for _, failure := range t.Failures {
				y := testFailure{failure.Pos.Line, failure.Where, failure.Message, []string{}}
				for _, l := range failure.Diff {
					y.Diff = append(y.Diff, string(l.Mark)+" "+l.Text)
				}
				x.Failures = append(x.Failures, y)
			}
			out.Tests = append(out.Tests, x)
		}
	}
	return out
}

// keepTestResult keeps a result, and removes the oldest ones of the flow.
func (c *call) keepTestResult(name string, r *testReport) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c)
	if _, err := c.app.Store.PutDocument(ctx, store.Document{Kind: testKind, ID: name + "/" + r.ID, User: c.who.user, Body: text}); err != nil {
		return err
	}
	docs, err := c.app.Store.Documents(ctx, store.DocumentFilter{Kind: testKind, Prefix: name + "/", Limit: documentPage})
	for i := 0; i < len(docs)-maxTestResults; i++ {
		if e := c.app.Store.DeleteDocument(ctx, testKind, docs[i].ID, 0); e != nil && !errors.Is(e, store.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func listTestResults(c *call, in *flowPath) (*body[testResults], error) {
	if _, err := c.flow(in.Flow); err != nil {
		return nil, err
	}
	docs, err := c.app.Store.Documents(c, store.DocumentFilter{Kind: testKind, Prefix: in.Flow + "/", Limit: documentPage})
	if err != nil {
		return nil, err
	}
	out := testResults{Results: []testReport{}}
	for _, d := range slices.Backward(docs) {
		var r testReport
		if err := json.Unmarshal(d.Body, &r); err != nil {
			return nil, err
		}
		if len(out.Results) < maxTestResults {
			out.Results = append(out.Results, r)
		}
	}
	return bodyOf(out), nil
}
