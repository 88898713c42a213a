package flowtest_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/flowtest"
	"github.com/weir-run/weir/internal/barepython"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/weirtest"
)

func TestTheExamplesDoWhatTheirTestsSay(t *testing.T) {
	t.Parallel()
	flows, err := filepath.Glob("../examples/*/flow.yaml")
	if err != nil || len(flows) == 0 {
		t.Fatalf("%d examples, %v", len(flows), err)
	}
	for _, f := range flows {
		if _, err := flowtest.Find(filepath.Dir(f)); err != nil {
			t.Errorf("the example is not tested: %v", err)
		}
	}
	weirtest.Files(t, flowtest.Options{Executors: []sandbox.Executor{&barepython.Executor{}}}, "../examples")
}
