package flowtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/flow"
)

func FuzzConfigurationIsReadOrReportsItsErrors(f *testing.F) {
	seeds, err := filepath.Glob("../examples/*/*.test.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%d seeds, %v", len(seeds), err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("defaults: {mocks: {a: [{}]}}\ntests: [{name: a, answers: {a: []}, mocks: {b>c: 1}, tools: {t: {when: {$not: {}}}}, expect: {outputs: {$all: [{$each: {}}]}, messages: {$subset: [{}]}}}]"))
	dir := f.TempDir()
	const text = "weir: 1\nname: f\nnodes: {a: {type: decision, with: {expr: \"true\"}}, b: {type: userInput, after: a}}\noutputs: {o: \"{{ b.text }}\"}"
	if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(filepath.Join(dir, "f.test.yaml"), data, Options{})
		var invalid *flow.Invalid
		switch {
		case err == nil && len(file.Tests) == 0:
			t.Error("a file without tests is valid")
		case err == nil:
			for _, test := range file.Tests { // what is expected of something can be compared with anything
				e := test.expect
				e.check(&outcome{status: completed, outputs: map[string]any{"o": []any{int64(1), "a"}}, state: map[string]any{}, messages: map[string]any{"main": []any{}}})
			}
		case !errors.As(err, &invalid) || len(invalid.Problems) == 0:
			t.Errorf("the error is %v", err)
		}
	})
}

func TestDiffCoversBothTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 12)
		want, got := lines.Draw(t, "want"), lines.Draw(t, "got")
		var a, b []string
		same := 0
		align(len(want), len(got), func(i, j int) bool { return want[i] == got[j] }, func(mark byte, i, j int) {
			if mark != '+' {
				a = append(a, want[i])
			}
			if mark != '-' {
				b = append(b, got[j])
			}
			if mark == ' ' {
				same++
				if want[i] != got[j] {
					t.Fatalf("%q and %q are not the same", want[i], got[j])
				}
			}
		})
		if strings.Join(a, "\n") != strings.Join(want, "\n") || strings.Join(b, "\n") != strings.Join(got, "\n") {
			t.Fatalf("%q is %q, %q is %q", want, a, got, b)
		}
		if least := longest(want, got); same != least {
			t.Fatalf("%d lines are in both, %d could be: %q, %q", same, least, want, got)
		}
	})
}

// longest returns the length of a longest common subsequence, the slow way.
func longest(a, b []string) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0
	case a[0] == b[0]:
		return 1 + longest(a[1:], b[1:])
	}
	return max(longest(a[1:], b), longest(a, b[1:]))
}
