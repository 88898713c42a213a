package cli

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
)

func TestCodeOutputIsPrintedSeparately(t *testing.T) {
	t.Parallel()
	p, _ := newTypingCLI("")
	var out strings.Builder
	p.out = &out
	p.printEffect(&engine.EffectCompleted{Key: "a/code#1", Result: map[string]any{"stdout": "one\ntwo\n", "stderr": "oops\n", "set": map[string]any{"n": int64(1)}}})
	if want := "  {\"set\":{\"n\":1}}\n  stdout:\n    one\n    two\n  stderr:\n    oops\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want it to end with %q", out.String(), want)
	}
	out.Reset()
	p.printEffect(&engine.EffectCompleted{Key: "a/code#1", Result: map[string]any{"stdout": "one\n"}, Error: &engine.Error{Code: "code_failed", Message: "it raised"}})
	if want := "it raised (code_failed)\n  stdout:\n    one\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want it to end with %q", out.String(), want)
	}
}
