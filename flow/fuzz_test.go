package flow_test

import (
	"errors"
	"testing"

	"github.com/weir-run/weir/flow"
)

// FuzzParse: whatever the bytes, Parse ends soon with a flow or with problems
// that have a known code and a place, and a flow's normal form is its own.
func FuzzParse(f *testing.F) {
	for _, data := range validFiles(f) {
		f.Add([]byte(data))
	}
	for _, data := range invalidFiles(f) {
		f.Add([]byte(data))
	}
	c := testCatalogue()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		got, err := flow.Parse("fuzz", data, c)
		if err != nil {
			checkProblems(t, err)
			return
		}
		text := normal(t, got)
		back, err := flow.Parse("back.json", []byte(text), c)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if back.Fingerprint() != got.Fingerprint() {
			t.Fatalf("the normal form changed:\n%s\n%s", text, normal(t, back))
		}
	})
}

func checkProblems(t *testing.T, err error) {
	t.Helper()
	bad := new(flow.Invalid)
	if !errors.As(err, &bad) || len(bad.Problems) == 0 {
		t.Fatalf("%T %v", err, err)
	}
	for _, p := range bad.Problems {
		if !listed(p.Code) || p.Pos.Line < 1 || p.Pos.Column < 1 || p.Message == "" {
			t.Fatalf("%+v", p)
		}
	}
}
