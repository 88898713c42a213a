package builtin

import (
	"slices"
	"testing"
)

func TestCodeReadsTheInputsThatItNames(t *testing.T) {
	for code, want := range map[string][]string{
		`x = inputs["a"] + inputs['b c']`:         {"a", "b c"},
		`x = inputs.get("Größe (m²)", 1)`:         {"Größe (m²)"},
		`x = inputs["it's"] + inputs['say "hi"']`: {"it's", `say "hi"`},
		`x = 1`:              nil,
		`x = inputs`:         {"*"},
		`x = inputs["a\\b"]`: {"*"},
		`x = inputs[name]`:   {"*"},
		`x = inputs["a"]; y = [k for k in inputs]`: {"*"},
		`x = inputs["a` + "\n" + `b"]`:             {"*"},
	} {
		names, all := codeReadsInputs(map[string]any{"code": code})
		if all != slices.Equal(want, []string{"*"}) || !all && !slices.Equal(names, want) {
			t.Errorf("%s reads %q, all: %v; want %q", code, names, all, want)
		}
	}
}
