package weirtest

import (
	"testing"

	"github.com/weir-run/weir/flowtest"
)

// Files runs the flow tests in files and folders as subtests: one for each file, and below it one for each test. See
// docs/flow-tests.md.
func Files(t *testing.T, o flowtest.Options, paths ...string) {
	t.Helper()
	files, err := flowtest.Find(paths...)
	if err != nil {
		t.Fatal(err)
	}
	r := flowtest.Run(t.Context(), files, o)
	for i := range r.Files {
		f := &r.Files[i]
		t.Run(f.Path, func(t *testing.T) {
			t.Helper()
			for _, p := range f.Problems {
				t.Error(p)
			}
			if f.Error != "" {
				t.Error(f.Error)
			}
			for j := range f.Tests {
				t.Run(f.Tests[j].Name, func(t *testing.T) { file(t, &f.Tests[j]) })
			}
		})
	}
}

// file reports the results of a file.
func file(t *testing.T, r *flowtest.Result) {
	t.Helper()
	switch r.Status {
	case flowtest.Skipped:
		t.Skip(r.Reason)
	case flowtest.Stopped:
		t.Error("the test was stopped before it had ended")
	case flowtest.Passed, flowtest.Failed, flowtest.Invalid:
	}
	for i := range r.Failures {
		t.Error(r.Failures[i].String())
	}
}
