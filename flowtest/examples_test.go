package flowtest_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

func TestTheExamplesDoWhatTheirTestsSay(t *testing.T) {
	t.Parallel()
	files, err := flowtest.Find("../examples")
	if err != nil {
		t.Fatal(err)
	}
	flows, err := filepath.Glob("../examples/*/flow.yaml")
	if err != nil || len(flows) == 0 || len(files) < len(flows) {
		t.Errorf("%d test files for %d examples, %v", len(files), len(flows), err)
	}
	r := flowtest.Run(t.Context(), files, flowtest.Options{})
	for _, f := range r.Files {
		for _, p := range f.Problems {
			t.Error(p)
		}
		if f.Error != "" {
			t.Error(f.Error)
		}
		for _, test := range f.Tests {
			if test.Status == flowtest.Passed {
				continue
			}
			t.Errorf("%s: %s: %s", f.Path, test.Name, test.Status)
			for _, x := range test.Failures {
				t.Error(x.String())
			}
		}
	}
}
