package expr_test

import (
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

func TestExpressionIsCompiledOnceForItsCheckAndItsEvaluation(t *testing.T) {
	long := "inputs.once + '"
	for len(long) < 300 {
		long += "0123456789"
	}
	for _, c := range []struct {
		src    string
		shared bool
	}{{"inputs.once + 1", true}, {long + "'", false}} {
		first, err := expr.Compile(c.src)
		if err != nil {
			t.Fatal(err)
		}
		second, err := expr.Compile(c.src)
		if err != nil {
			t.Fatal(err)
		}
		if (first == second) != c.shared {
			t.Errorf("the programs of %d bytes are the same: %v, want %v", len(c.src), first == second, c.shared)
		}
	}
	for range 2 {
		if _, err := expr.Compile("inputs.once +"); err == nil {
			t.Error("an expression with a syntax error is compiled")
		}
	}
}
