package sandbox_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-run/weir/sandbox"
)

func TestLiveOutputNeverDividesACharacter(t *testing.T) {
	const whole = "a€😀ü\n\xff\xf0z\xe2\x82"
	want := strings.ToValidUTF8(whole, "\uFFFD")
	for size := 1; size <= len(whole); size++ {
		var got strings.Builder
		job := &sandbox.Job{OnOutput: func(_, stderr string) {
			if stderr == "" || !utf8.ValidString(stderr) {
				t.Errorf("writes of %d bytes: the piece %q", size, stderr)
			}
			got.WriteString(stderr)
		}}
		w := job.LiveStderr()
		for rest := whole; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		w.Close()
		w.Close()
		// Several invalid bytes in one write become one replacement character.
		if squeeze(got.String()) != squeeze(want) {
			t.Errorf("writes of %d bytes: %q", size, got.String())
		}
	}
	w := (&sandbox.Job{}).LiveStdout()
	if n, err := w.Write([]byte("x\xe2")); n != 2 || err != nil {
		t.Errorf("without OnOutput: %d, %v", n, err)
	}
	w.Close()
}

func squeeze(s string) string {
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}
