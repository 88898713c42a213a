package flowtest_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flowtest"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/weirtest"
)

func TestExamplesPassTheirTests(t *testing.T) {
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
	paths, err := flowtest.Find("../examples")
	if err != nil {
		t.Fatal(err)
	}
	x := python.New(python.Options{})
	if err := x.Probe(t.Context()); err != nil {
		t.Logf("examples with code are left out: %v", err)
		paths = slices.DeleteFunc(paths, func(p string) bool {
			return strings.HasPrefix(p, "../examples/invoice/") && filepath.Base(p) != "flow.test.yaml"
		})
	}
	weirtest.Files(t, flowtest.Options{Executors: []sandbox.Executor{x}}, paths...)
}
