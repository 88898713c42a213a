package engine

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestAppendStringEscapesWhereverTheByteStands puts every byte at every place of texts of up
// to 24 bytes, and compares what can be read back with what encoding/json reads.
func TestAppendStringEscapesWhereverTheByteStands(t *testing.T) {
	for n := 1; n <= 24; n++ {
		for at := range n {
			for c := range 256 {
				text := []byte(strings.Repeat("a", n))
				text[at] = byte(c)
				checkQuoted(t, string(text))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab\"\\\n\x00\x1f \x7fé☃😀\uFFFD")
	for range 2000 {
		var b strings.Builder
		for range rng.IntN(2 * growFrom) {
			b.WriteRune(letters[rng.IntN(len(letters))])
		}
		checkQuoted(t, b.String())
	}
}

func checkQuoted(t *testing.T, text string) {
	t.Helper()
	quoted := AppendString(nil, text)
	var got, want string
	plain, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(plain, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(quoted, &got); err != nil || got != want {
		t.Fatalf("%q is written as %s (%v)", text, quoted, err)
	}
}
