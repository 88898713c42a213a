package cli

import "testing"

func TestNamesWithEqualSignsAreCutWhereTheyAreDeclared(t *testing.T) {
	declared := []string{"a", "a=b", "x y", "a=b=c"}
	for arg, want := range map[string][2]string{
		"a=1":       {"a", "1"},
		"a=b=1":     {"a=b", "1"},
		"a=b=c=d=e": {"a=b=c", "d=e"},
		"x y=":      {"x y", ""},
		"other=b=1": {"other", "b=1"},
	} {
		name, value, ok := cutAssignment(arg, declared)
		if !ok || name != want[0] || value != want[1] {
			t.Errorf("%s is %q and %q; want %q", arg, name, value, want)
		}
	}
	if _, _, ok := cutAssignment("a", declared); ok {
		t.Error("an argument without a value is accepted")
	}
}
