package vendorapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/llm/vendorapi"
)

const key = "sk-proj-Ab12Cd34/Ef56+Gh78=Ij90"

func TestSecretIsRemovedFromTextAndTheRestStays(t *testing.T) {
	t.Parallel()
	scrub := vendorapi.Scrubber(key)
	for text, want := range map[string]string{
		"":                                 "",
		"Nothing of it: 100% \\n sk-other": "Nothing of it: 100% \\n sk-other",
		"The key " + key + " is wrong.":    "The key [key] is wrong.",
		key + key:                          "[key]",
		key[:8] + " begins it":             "[key] begins it",
		key[:7] + " does not":              key[:7] + " does not",
		"cut " + key[:20]:                  "cut [key]",
		"?key=" + url.QueryEscape(key) + "&a=%20": "?key=[key]&a=%20",
		`\u0073\u006b\u002d` + key[3:] + `\n`:     `[key]\n`,
		`\x73k-proj-Ab%ZZ\u00`:                    `[key]%ZZ\u00`,
		"ends in %2":                              "ends in %2",
	} {
		if got := scrub(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestAShortKeyIsTakenOutWholeAndAVeryShortOneIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, text, want string }{
		{"ollama", "ollam ollama", "ollam [key]"},
		{"ollama", "olla%6Da", "[key]"},
		{"abc", "abc", "abc"},
		{"", "any", "any"},
	} {
		if got := vendorapi.Scrubber(c.key)(c.text); got != c.want {
			t.Errorf("%q without %q is %q, want %q", c.text, c.key, got, c.want)
		}
	}
}

// TestNoPieceOfAnyKeyIsLeft puts any key in any form into any text, and cuts it.
func TestNoPieceOfAnyKeyIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[!-~]{8,60}`).Draw(t, "key")
		quoted, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		form := rapid.SampledFrom([]string{
			key, url.QueryEscape(key), url.PathEscape(url.QueryEscape(key)), string(quoted), fmt.Sprintf("%q", quoted),
			base64.StdEncoding.EncodeToString([]byte(key)), base64.URLEncoding.EncodeToString([]byte("x" + key)),
		}).Draw(t, "form")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		whole := before + form + after
		from := rapid.IntRange(0, len(whole)).Draw(t, "from")
		text := whole[from:rapid.IntRange(from, len(whole)).Draw(t, "to")]
		scrub := vendorapi.Scrubber(key)
		got := scrub(text)
		for i := range len(key) - 7 {
			if piece := key[i : i+8]; strings.Contains(got, piece) {
				t.Fatalf("%q is left of %q: %q", piece, text, got)
			}
		}
		if form != key && strings.Contains(got, form) {
			t.Fatalf("%q is left: %q", form, got)
		}
		if again := scrub(got); again != got {
			t.Fatalf("%q scrubbed again is %q", got, again)
		}
	})
}

func FuzzScrubber(f *testing.F) {
	f.Add("The key " + key + " and %73k%2Dproj-Ab12 \\u0073k-proj-Ab12")
	f.Fuzz(func(t *testing.T, text string) {
		got := vendorapi.Scrubber(key)(text)
		for i := range len(key) - 7 {
			if strings.Contains(got, key[i:i+8]) {
				t.Fatalf("a piece is left of %q: %q", text, got)
			}
		}
		if got != text && !strings.Contains(got, "[key]") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
