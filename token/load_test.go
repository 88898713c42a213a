package token

import (
	"encoding/base64"
	"testing"
)

// BenchmarkReadVocabulary reads a vocabulary as a new process does for its first
// count.
func BenchmarkReadVocabulary(b *testing.B) {
	for _, name := range []string{O200k, Cl100k} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := readVocabulary(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestBase64IsReadAsTheLibraryReadsIt(t *testing.T) {
	digits := newBase64Table()
	for _, text := range []string{"", "AA==", "AAA=", "AAAA", "/+8=", "IHRoZQ==", "4pSA4pSA", "A", "AA", "AAA", "AA=A", "=AAA", "A===", "====", "AA=\n", "AA-_", "AAAAAA==", "AA==AAAA"} {
		want, wrong := base64.StdEncoding.DecodeString(text)
		got, err := digits.append([]byte("x"), []byte(text))
		if (err != nil) != (wrong != nil) || err == nil && string(got) != "x"+string(want) {
			t.Errorf("%q: %q (%v), want %q (%v)", text, got, err, want, wrong)
		}
	}
}

func TestVocabularyLineOutOfOrderIsRefused(t *testing.T) {
	digits := newBase64Table()
	v := &vocabulary{}
	if err := v.add([]byte("IQ== 0"), digits); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Ig== 0", "Ig== 2", "Ig==", "Ig== ", "Ig== -1", "Ig== 1x", "Ig=! 1"} {
		if err := v.add([]byte(line), digits); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}
