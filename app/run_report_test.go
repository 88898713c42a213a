package app

import (
	"encoding/json"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

func TestAReportHasAllKeysAndNoNullList(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(RunReportOf(weir.Result{Run: "r", Status: engine.Completed}))
	want := `{"run":"r","status":"completed","outputs":{},"absent":{},"interrupts":[],` +
		`"usage":{"calls":0,"input":0,"cached":0,"output":0,"reasoning":0,"cost":0},"error":null}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}
