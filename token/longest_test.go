package token

import "testing"

func TestNoTokenIsLongerThanTheLongest(t *testing.T) {
	for _, name := range []string{O200k, Cl100k} {
		e, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for id := range e.vocabulary.len() {
			longest = max(longest, len(e.vocabulary.text(uint32(id))))
		}
		if longest > LongestToken {
			t.Errorf("%s has a token of %d bytes", name, longest)
		}
	}
}
