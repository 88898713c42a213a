package flow_test

import (
	"testing"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node/builtin"
)

func TestExamplesOfTheRealCatalogueAreValidFlows(t *testing.T) {
	c := builtin.Catalogue()
	for _, sp := range c.Specs() {
		for _, e := range sp.Examples {
			files := flow.Source{Files: flow.MemFiles(e.Files)}
			if _, err := files.Parse("flow.yaml", []byte(e.Flow), c); err != nil {
				t.Errorf("%s: %v", sp.Name, err)
			}
		}
	}
	if _, err := flow.Schema(c); err != nil {
		t.Fatal(err)
	}
}
