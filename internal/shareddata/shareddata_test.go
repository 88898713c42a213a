package shareddata_test

import (
	"testing"

	"github.com/weir-run/weir/internal/shareddata"
)

// outcome is a test that records how it was ended.
type outcome struct {
	testing.TB
	ended string
}

func (*outcome) Helper() {}

func (o *outcome) Fatalf(string, ...any) { o.ended = "failed"; panic(o) }

func (o *outcome) Skipf(string, ...any) { o.ended = "skipped"; panic(o) }

func TestMissingDataFailsInCIAndSkipsElsewhere(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv("CI", ci)
		o := &outcome{TB: t}
		func() {
			defer func() {
				if recover() != any(o) {
					t.Error("the test was not ended")
				}
			}()
			shareddata.Open(o, "missing.jsonl")
		}()
		if o.ended != want {
			t.Errorf("with CI=%q the test was %s, want %s", ci, o.ended, want)
		}
	}
}
