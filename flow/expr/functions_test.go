package expr_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

func TestEachExampleOfAFunctionHasItsResult(t *testing.T) {
	for _, f := range expr.Functions() {
		if len(f.Examples) == 0 || f.Summary == "" || f.Usage == "" {
			t.Errorf("%s has no example, summary or usage", f.Name)
		}
		for _, e := range f.Examples {
			checkExample(t, e)
		}
	}
}

// checkExample requires the result of an example.
func checkExample(t *testing.T, e expr.Example) {
	t.Helper()
	p, err := expr.Compile(e.Expr)
	if err != nil {
		t.Errorf("%s: %v", e.Expr, err)
		return
	}
	got, err := p.Eval(expr.Map{expr.UUIDSeed: "run/node@1"})
	if err != nil {
		t.Errorf("%s: %v", e.Expr, err)
		return
	}
	var want, plain any
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(e.Result), &want); err != nil {
		t.Fatalf("%s: %v", e.Result, err)
	}
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plain, want) {
		t.Errorf("%s = %s; want %s", e.Expr, raw, e.Result)
	}
}
