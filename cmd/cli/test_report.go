package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/flowtest"
)

// testPrinter prints the results of tests, file by file.
type testPrinter struct {
	w     io.Writer
	style style
	all   bool // say also which passed
}

// file prints the result of one file: a line, and below it the tests that did not pass.
func (t *testPrinter) file(f flowtest.FileResult) {
	switch f.Status {
	case flowtest.Invalid:
		fmt.Fprintf(t.w, "%s %s\n", t.style.bad.Render("invalid"), f.Path)
		for _, p := range f.Problems {
			fmt.Fprintln(t.w, indent(app.Printable(p.String()), "  "))
		}
		if f.Error != "" {
			fmt.Fprintln(t.w, "  "+app.Printable(f.Error))
		}
		return
	case flowtest.Stopped:
		fmt.Fprintf(t.w, "%s %s\n", t.style.ask.Render("stopped"), f.Path)
	case flowtest.Failed:
		fmt.Fprintf(t.w, "%s  %s  (%s)\n", t.style.bad.Render("FAIL"), f.Path, seconds(f.Took))
	case flowtest.Passed, flowtest.Skipped:
		if len(f.Tests) == 0 {
			return // --run left none
		}
		fmt.Fprintf(t.w, "%s    %s  %s\n", t.style.good.Render("ok"), f.Path, t.style.dim.Render(count(len(f.Tests), "test")+", "+seconds(f.Took)))
	}
	for i := range f.Tests {
		t.test(&f.Tests[i])
	}
}

// test prints the result of one test.
func (t *testPrinter) test(r *flowtest.Result) {
	switch r.Status {
	case flowtest.Failed:
		fmt.Fprintf(t.w, "  %s %s\n", t.style.bad.Render("✗"), app.Printable(r.Name))
		for i := range r.Failures {
			t.failure(&r.Failures[i], r)
		}
	case flowtest.Skipped:
		fmt.Fprintf(t.w, "  %s %s: %s\n", t.style.dim.Render("-"), app.Printable(r.Name), app.Printable(r.Reason))
	case flowtest.Stopped:
		fmt.Fprintf(t.w, "  %s %s: stopped\n", t.style.ask.Render("-"), app.Printable(r.Name))
	case flowtest.Passed:
		if t.all {
			fmt.Fprintf(t.w, "  %s %s\n", t.style.good.Render("✓"), app.Printable(r.Name))
		}
	case flowtest.Invalid:
	}
	if r.Updated != "" {
		fmt.Fprintf(t.w, "  wrote %s\n", r.Updated)
	}
}

// failure prints what differs from the test: the place, what, and the
// difference.
func (t *testPrinter) failure(f *flowtest.Failure, r *flowtest.Result) {
	pos := f.Pos
	if pos.Line == 0 {
		pos = r.Pos
	}
	where := ""
	if f.Where != "" {
		where = t.style.bold.Render(f.Where) + ": "
	}
	fmt.Fprintf(t.w, "      %s: %s%s\n", t.style.dim.Render(pos.String()), where, strings.ReplaceAll(app.Printable(f.Message), "\n", "\n        "))
	for _, l := range f.Diff {
		text := string(l.Mark) + " " + app.Printable(strings.ReplaceAll(l.Text, "\n", "\n  "))
		switch l.Mark {
		case '-':
			text = t.style.bad.Render(text)
		case '+':
			text = t.style.good.Render(text)
		}
		fmt.Fprintln(t.w, "        "+text)
	}
}

// summary prints the totals.
func (t *testPrinter) summary(r *flowtest.Report) {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(r.Failed, "failed")
	if r.Invalid > 0 {
		parts = append(parts, count(r.Invalid, "file")+" not valid")
	}
	add(r.Stopped, "stopped")
	add(r.Passed, "passed")
	add(r.Skipped, "skipped")
	if parts == nil {
		return
	}
	mark := t.style.good
	if !r.OK() {
		mark = t.style.bad
	}
	fmt.Fprintf(t.w, "%s in %s\n", mark.Render(strings.Join(parts, ", ")), seconds(r.Took))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// testReport is what --json prints. All keys are always there.
type testReport struct {
	Status  string           `json:"status"` // passed, failed, invalid or stopped
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Skipped int              `json:"skipped"`
	Stopped int              `json:"stopped"`
	Invalid int              `json:"invalid"` // files
	Seconds float64          `json:"seconds"`
	Files   []testFileReport `json:"files"`
}

type testFileReport struct {
	File     string             `json:"file"`
	Flow     string             `json:"flow"`
	Status   string             `json:"status"`
	Error    string             `json:"error"`
	Problems []placedProblem    `json:"problems"`
	Seconds  float64            `json:"seconds"`
	Tests    []testResultReport `json:"tests"`
}

// placedProblem is a problem with its file: the flow's, or the test's.
type placedProblem struct {
	File string `json:"file"`
	problem
}

type testResultReport struct {
	Name     string              `json:"name"`
	Status   string              `json:"status"`
	Line     int                 `json:"line"`
	Reason   string              `json:"reason"` // why it was skipped
	Seconds  float64             `json:"seconds"`
	Updated  string              `json:"updated"` // the golden file that was written
	Failures []testFailureReport `json:"failures"`
}

type testFailureReport struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Where   string   `json:"where"`
	Message string   `json:"message"`
	Diff    []string `json:"diff"`
}

func testReportOf(r *flowtest.Report) *testReport {
	out := &testReport{
		Status: "passed", Passed: r.Passed, Failed: r.Failed, Skipped: r.Skipped, Stopped: r.Stopped, Invalid: r.Invalid,
		Seconds: r.Took.Seconds(), Files: make([]testFileReport, len(r.Files)),
	}
	switch {
	case r.Invalid > 0:
		out.Status = "invalid"
	case r.Failed > 0:
		out.Status = "failed"
	case r.Stopped > 0:
		out.Status = "stopped"
	}
	for i := range r.Files {
		f := &r.Files[i]
		o := testFileReport{
			File: f.Path, Flow: f.Flow, Status: string(f.Status), Error: f.Error, Seconds: f.Took.Seconds(),
			Problems: []placedProblem{}, Tests: make([]testResultReport, len(f.Tests)),
		}
		for _, p := range f.Problems {
			o.Problems = append(o.Problems, placedProblem{p.Pos.File, problem{
				Line: p.Pos.Line, Column: p.Pos.Column, Code: p.Code, Message: p.Message, Hint: p.Hint,
			}})
		}
		for j := range f.Tests {
			o.Tests[j] = testResultOf(&f.Tests[j])
		}
		out.Files[i] = o
	}
	return out
}

func testResultOf(t *flowtest.Result) testResultReport {
	out := testResultReport{
		Name: t.Name, Status: string(t.Status), Line: t.Pos.Line, Reason: t.Reason, Seconds: t.Took.Seconds(), Updated: t.Updated,
		Failures: make([]testFailureReport, len(t.Failures)),
	}
	for i, f := range t.Failures {
		diff := make([]string, len(f.Diff))
		for j, l := range f.Diff {
			diff[j] = string(l.Mark) + " " + l.Text
		}
		out.Failures[i] = testFailureReport{f.Pos.File, f.Pos.Line, f.Pos.Column, f.Where, f.Message, diff}
	}
	return out
}
