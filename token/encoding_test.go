package token_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"slices"
	"testing"

	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/token"
)

// vector is one string with what the reference tiktoken makes of it.
type vector struct {
	Text   string `json:"text"`
	O200k  []int  `json:"o200k_base"`
	Cl100k []int  `json:"cl100k_base"`
}

func vectors(tb testing.TB) []vector {
	tb.Helper()
	z, err := gzip.NewReader(shareddata.Open(tb, "tokens/vectors.jsonl.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []vector
	for d := json.NewDecoder(bufio.NewReader(z)); d.More(); {
		var v vector
		if err := d.Decode(&v); err != nil {
			tb.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func encoding(tb testing.TB, name string) *token.Encoding {
	tb.Helper()
	e, err := token.Get(name)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestEveryVectorOfTheReferenceIsEqual(t *testing.T) {
	all := vectors(t)
	if len(all) != 8000 {
		t.Fatalf("%d vectors, want 8000", len(all))
	}
	for _, name := range []string{token.O200k, token.Cl100k} {
		e, bad := encoding(t, name), 0
		for _, v := range all {
			want := v.O200k
			if name == token.Cl100k {
				want = v.Cl100k
			}
			got := e.Append(nil, v.Text)
			if n := e.Count(v.Text); n != len(want) {
				t.Errorf("%s: Count(%q) = %d, want %d", name, v.Text, n, len(want))
			}
			if !slices.Equal(got, want) {
				if bad++; bad < 10 {
					t.Errorf("%s: %q\n got %v\nwant %v", name, v.Text, got, want)
				}
			}
		}
		if bad > 0 {
			t.Errorf("%s: %d of %d differ", name, bad, len(all))
		}
	}
}
