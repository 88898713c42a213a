package builtin

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
)

func TestAMessageValueHasImagesAndFiles(t *testing.T) {
	t.Parallel()
	part := func(kv ...string) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for name, x := range map[string]struct {
		parts any
		err   string
	}{
		"no list":     {"x", "expected a list"},
		"no kind":     {[]any{part("data", "eA==")}, "parts.0: kind"},
		"no content":  {[]any{part("kind", "image")}, "expected either data"},
		"both":        {[]any{part("kind", "image", "data", "eA==", "url", "https://example.org/a.png")}, "expected either data"},
		"no base64":   {[]any{part("kind", "image", "data", "x")}, "parts.0: data"},
		"a local URL": {[]any{part("kind", "file", "data", "eA=="), part("kind", "file", "url", "file:///etc/passwd")}, "parts.1: url"},
	} {
		m, err := messageOf(map[string]any{"role": "user", "text": "See", "parts": x.parts}, "1")
		if err == nil || !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	m, err := messageOf(map[string]any{"role": "user", "text": "See", "parts": []any{
		part("kind", "image", "mime", "image/png", "name", "a.png", "data", "eHl6"), part("kind", "file", "url", "https://example.org/a.pdf"),
	}}, "1")
	want := convo.Message{ID: "1", Role: convo.User, Text: "See", Parts: []convo.Part{
		{Kind: "image", MIME: "image/png", Name: "a.png", Data: []byte("xyz")}, {Kind: "file", URL: "https://example.org/a.pdf"},
	}}
	if err != nil || !m.Equal(want) {
		t.Errorf("%+v, %v", m, err)
	}
}
