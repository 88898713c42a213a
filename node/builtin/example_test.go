package builtin

import (
	"testing"

	"github.com/weir-run/weir/flow"
)

func TestEveryExampleIsAValidFlow(t *testing.T) {
	c := Catalogue()
	for _, s := range c.Specs() {
		for _, e := range s.Examples {
			t.Run(s.Name+"/"+e.Name, func(t *testing.T) {
				if _, err := flow.Parse("example.yaml", []byte(e.Flow), c); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
