package redact_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/node/builtin/redact"
)

func TestKindsFindOnlyWhatIsOne(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Write to ada@example.com, or to Bjørn.Ö+x@münchen.example!", "Write to [EMAIL_1], or to [EMAIL_2]!"},
		{"ada@localhost and @ada and a@b", "ada@localhost and @ada and a@b"},
		{"Call +49 (30) 123 45-67, 030/1234567, (555) 123-4567 or 555-123-4567.", "Call [PHONE_1], [PHONE_2], [PHONE_3] or [PHONE_4]."},
		{"On 2026-11-23 at 12:30:45 we sold 1234567 for 0.1234567 each.", "On 2026-11-23 at 12:30:45 we sold 1234567 for 0.1234567 each."},
		{"IBAN DE89 3704 0044 0532 0130 00 TODAY", "IBAN [IBAN_1] TODAY"},
		{"IBAN GB82WEST12345698765432, not GB82WEST12345698765433", "IBAN [IBAN_1], not GB82WEST12345698765433"},
		{"Card 4111 1111 1111 1111, not 4111 1111 1111 1112", "Card [CARD_1], not 4111 1111 1111 1112"},
		{"From 192.168.0.1 and 2001:db8::1, not 1.2.3.400 or std::vector", "From [IP_1] and [IP_2], not 1.2.3.400 or std::vector"},
		{"Nothing here.", "Nothing here."},
	} {
		if got := redact.New(nil).Redact(c.text, redact.Finder{Kinds: redact.Kinds()}); got != c.want {
			t.Errorf("%q\n is %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestWordsAndPatternsAreReplacedInsideValues(t *testing.T) {
	f := redact.Finder{
		Words:    []redact.Word{{Kind: "PERSON", Text: "ann"}, {Kind: "PERSON", Text: "Ann Müller"}},
		Patterns: []redact.Pattern{{Kind: "ORDER", Expr: regexp.MustCompile(`order \d+`)}, {Kind: "LATE", Expr: regexp.MustCompile(`7 by Ann`)}},
	}
	r := redact.New(nil)
	got := r.Redact(map[string]any{"to": []any{"Ann Müller", "Anna", int64(5), nil, true}, "ann": "order 17 by Ann, ANN and [PERSON_1]"}, f)
	want := map[string]any{"to": []any{"[PERSON_4]", "Anna", int64(5), nil, true}, "[PERSON_2]": "[ORDER_1], [PERSON_3] and [PERSON_1]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v; map %v", got, want, r.Map())
	}
	if r.Map()["[ORDER_1]"] != "order 17 by Ann" || r.Count() != 4 {
		t.Errorf("map %v, %d replaced", r.Map(), r.Count())
	}
}

// TestRestoreReturnsWhatWasRedacted draws texts of pieces that are private, of placeholders, and of others, and redacts them
// in two steps with one map.
func TestRestoreReturnsWhatWasRedacted(t *testing.T) {
	pieces := []string{"ada@example.com", "bob@example.com", "[EMAIL_1]", "[EMAIL_2]", "[WORD_1]", "secret", "Secret", " ", "x", "[", "]", ", ", "+49 30 1234567"}
	private := []string{"ada@example.com", "bob@example.com", "+49 30 1234567"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, label), " ")
		}
		f := redact.Finder{Kinds: redact.Kinds(), Words: []redact.Word{{Kind: "WORD", Text: "secret"}}}
		first, second := any([]any{draw("one"), draw("two")}), any(map[string]any{"a": draw("three")})
		r := redact.New(nil)
		hidden := r.Redact(first, f)
		again := redact.New(r.Map())
		more := again.Redact([]any{hidden, second}, f)
		for _, text := range private {
			if strings.Contains(strings.Join(texts(more), " "), text) {
				t.Fatalf("%q is in %v", text, more)
			}
		}
		// A placeholder of the second value that the map knows already was written by somebody who had it.
		if got := redact.New(r.Map()).Restore(hidden); !reflect.DeepEqual(got, first) {
			t.Fatalf("restored %v, want %v", got, first)
		}
	})
}

func texts(v any) []string {
	switch t := v.(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, e := range t {
			out = append(out, texts(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for k, e := range t {
			out = append(append(out, k), texts(e)...)
		}
		return out
	}
	return nil
}
