package token_test

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/token"
)

// picture of that size in a format, of which only the header matters.
func picture(t *testing.T, format string, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, width, height))
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnImageCostsWhatTheVendorsDocumentationSays(t *testing.T) {
	// The sizes and figures are the examples of the pages that image.go names.
	for _, c := range []struct {
		vendor, format      string
		width, height, want int
	}{
		{"openai", "png", 1024, 1024, 765},
		{"openai", "jpeg", 2048, 4096, 1105},
		{"openai", "gif", 10, 10, 255},
		{"anthropic", "png", 200, 200, 54},
		{"anthropic", "png", 1000, 1000, 1334},
		{"anthropic", "jpeg", 1092, 1092, 1590},
		{"anthropic", "png", 4000, 4000, 4784},
		{"gemini", "png", 384, 384, 258},
		{"gemini", "png", 960, 540, 1548},
		{"gemini", "png", 385, 385, 1120},
	} {
		count := counter(t, token.O200k, c.vendor)
		got := cost(count, convo.Part{Kind: "image", Data: picture(t, c.format, c.width, c.height)})
		if got != c.want {
			t.Errorf("%s: %d by %d is %d tokens, want %d", c.vendor, c.width, c.height, got, c.want)
		}
		unknown := cost(count, convo.Part{Kind: "image", URL: "https://example.com/a.webp"})
		if unknown < got {
			t.Errorf("%s: an image of unknown size is %d tokens, one of known size %d", c.vendor, unknown, got)
		}
	}
}

// cost of one part.
func cost(c token.Counter, p convo.Part) int {
	m := convo.Message{Role: convo.User, Text: "see"}
	without := c.Message(m)
	m.Parts = []convo.Part{p}
	return c.Message(m) - without
}

func TestAFileCostsItsTextOrItsPages(t *testing.T) {
	c := counter(t, token.O200k, "openai")
	text := strings.Repeat("name,amount\n", 100)
	if got := cost(c, convo.Part{Kind: "file", MIME: "text/csv; charset=utf-8", Data: []byte(text)}); got != c.Text(text) {
		t.Errorf("a text file is %d tokens, its text %d", got, c.Text(text))
	}
	pdf := []byte("%PDF-1.7 <</Type /Pages /Count 2>> <</Type /Page>> <</Type/Page>>")
	if got := cost(c, convo.Part{Kind: "file", MIME: "application/pdf", Data: pdf}); got != 6000 {
		t.Errorf("two pages are %d tokens", got)
	}
	if got := cost(c, convo.Part{Kind: "file", URL: "https://example.com/a.pdf"}); got < 3000 {
		t.Errorf("a file elsewhere is %d tokens", got)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("hi", []byte("\x89PNG\r\n\x1a\n"), "image", "{}")
	f.Add("", []byte("\xff\xd8\xff\xe0"), "image", "")
	f.Add("", []byte("GIF89a\xff\xff\xff\xff"), "image", "")
	f.Add("", []byte("/Type /Page"), "file", `{"a":1}`)
	var counters []token.Counter
	for _, vendor := range []string{"openai", "anthropic", "gemini"} {
		counters = append(counters, counter(f, "", vendor))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte, kind, arguments string) {
		m := convo.Message{
			Role: convo.Assistant, Text: text, Native: data,
			Parts: []convo.Part{{Kind: kind, Data: data}, {Kind: kind, MIME: "application/pdf", Data: data}},
			Calls: []convo.Call{{ID: "c", Name: text, Arguments: arguments}},
		}
		for _, c := range counters {
			if n := c.Message(m); n <= c.Text(text) || n != c.Message(m) {
				t.Errorf("%d tokens, then %d", n, c.Message(m))
			}
		}
	})
}

func TestALearnedFactorCorrectsTheLatestRequests(t *testing.T) {
	pair := func(e, r int) token.EstimateReport { return token.EstimateReport{Estimated: e, Reported: r} }
	for _, c := range []struct {
		name  string
		pairs []token.EstimateReport
		want  token.Factor
	}{
		{"nothing is known", nil, 135},
		{"nothing usable", []token.EstimateReport{pair(0, 100), pair(100, 0)}, 135},
		{"rounded up", []token.EstimateReport{pair(1000, 1001)}, 101},
		{"the latest", []token.EstimateReport{pair(1000, 2000), pair(2000, 2200)}, 110},
		{"short ones together", []token.EstimateReport{pair(9000, 9000), pair(500, 600), pair(500, 800)}, 140},
		{"not under a half", []token.EstimateReport{pair(5000, 10)}, 50},
		{"not over three", []token.EstimateReport{pair(10, 5000)}, 300},
	} {
		if got := token.LearnFactor(135, c.pairs...); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestWithinIsTheLargestEstimateThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := token.Factor(rapid.IntRange(int(token.MinFactor), int(token.MaxFactor)).Draw(t, "factor"))
		n := rapid.IntRange(0, 2_000_000).Draw(t, "n")
		if m := f.LargestEstimate(n); f.Correct(m) > n || f.Correct(m+1) <= n {
			t.Fatalf("at %d%%, %d tokens hold an estimate of %d", f, n, m)
		}
	})
}

func TestTextIsCutByTheGivenCounter(t *testing.T) {
	text := strings.Repeat("flight 1234567890 on 20240522, ", 300)
	for _, vendor := range []string{"openai", "gemini"} {
		c := counter(t, "", vendor)
		for _, n := range []int{0, 1, 5, 100, 2000} {
			for _, cut := range []string{c.Head(text, n), c.Tail(text, n)} {
				if got := c.Text(cut); got > n || got < n*9/10-4 {
					t.Errorf("%s: cut to %d tokens it has %d", vendor, n, got)
				}
			}
		}
	}
}

func TestEveryDigitIsATokenForGemini(t *testing.T) {
	openai, gemini := counter(t, "", "openai"), counter(t, "", "gemini")
	for text, more := range map[string]int{"12": 1, "1234567": 4, "a1b2": 0, "2024-05-22": 4} {
		if got := gemini.Text(text) - openai.Text(text); got != more {
			t.Errorf("%q: %d more, want %d", text, got, more)
		}
	}
}

func TestAnySchemaHasATypeAndAnEnd(t *testing.T) {
	deep := map[string]any{"type": "string"}
	for range 1000 {
		deep = map[string]any{"type": "object", "properties": map[string]any{"p": deep}}
	}
	openai := counter(t, token.O200k, "openai")
	if n := openai.Tool("deep", "", deep); n > 1000 {
		t.Errorf("a schema without end is %d tokens", n)
	}
	plain := openai.Tool("f", "", object(t, `{"properties":{"x":{"type":"string"}}}`))
	for _, schema := range []string{
		`{"properties":{"x":{"type":["string","null"]}}}`,
		`{"properties":{"x":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]}}}`,
		`{"properties":{"x":{"enum":["red","green"]}}}`,
		`{"properties":{"x":{"type":"string"}},"$defs":{"y":{"type":"string"}}}`,
		`{"properties":{"x":{"type":"string","description":"What it is"}}}`,
	} {
		if n := openai.Tool("f", "", object(t, schema)); n <= plain {
			t.Errorf("%s is %d tokens, a string alone %d", schema, n, plain)
		}
	}
}
