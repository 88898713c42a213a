package template_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/tool/template"
)

func TestReferencesAreReplacedOnce(t *testing.T) {
	t.Parallel()
	args := map[string]any{
		"a": "{{ secrets.KEY }}", "n": json.Number("1.50"), "o": map[string]any{"p": map[string]any{"q": true}}, "null": nil,
	}
	secrets := template.NewSecrets(func(name string) (string, bool) { return "{{ args.a }}", name == "KEY" })
	for in, want := range map[string]string{
		"plain { } }} text": "plain { } }} text",
		"{{args.a}}":        "{{ secrets.KEY }}",
		"<{{ args.n }}|{{ args.o.p.q }}|{{ args.o.p }}>": `<1.50|true|{"q":true}>`,
		"{{ args.null }}{{ args.none }}{{ args.a.b }}":   "",
		"{{ secrets.KEY }}":                              "{{ args.a }}",
	} {
		tmpl, err := template.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Expand(args, secrets); got != want || err != nil {
			t.Errorf("%s: got %q, %v", in, got, err)
		}
	}
}

func TestSecretsAreTakenOutInEveryForm(t *testing.T) {
	t.Parallel()
	values := map[string]string{"A": `pass"word&more`, "B": `pass"word&more, and longer`, "C": "abc"}
	s := template.NewSecrets(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	before := `pass"word&more`
	if s.Scrub(before) != before {
		t.Error("a secret that was not given out is not known")
	}
	for name := range values {
		if _, err := s.Get(name); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		`x pass"word&more x`:              "x [secret A] x",
		`pass"word&more, and longer`:      "[secret B]",
		"k=pass%22word%26more":            "k=[secret A]",
		`{"k":"pass\"word\u0026more"}`:    `{"k":"[secret A]"}`,
		"Basic cGFzcyJ3b3JkJm1vcmU=":      "Basic [secret A]",
		"abc is too short to be a secret": "abc is too short to be a secret",
	} {
		if got := s.Scrub(in); got != want {
			t.Errorf("%s: got %s", in, got)
		}
	}
	if got := s.ScrubCut("the end is pass\"wor"); got != "the end is [secret B]" && got != "the end is [secret A]" {
		t.Errorf("got %s", got)
	}
	inner := errors.New("inner " + values["A"])
	err := s.Error(inner)
	if !errors.Is(err, inner) || strings.Contains(err.Error(), "word") || errors.Unwrap(err) != nil {
		t.Errorf("got %v", err)
	}
	if s.Error(nil) != nil {
		t.Error("no error is no error")
	}
	if _, err := s.Get("D"); err == nil || err.Error() != "there is no secret D" {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"{{ args.a }}", "{{secrets.B}} x", "{{", "}}{{ args. }}", "{{ args.a.b }}{{args.c}}"} {
		f.Add(s)
	}
	secrets := template.NewSecrets(func(string) (string, bool) { return "", true })
	f.Fuzz(func(t *testing.T, s string) {
		tmpl, err := template.Parse(s)
		if err != nil {
			return
		}
		for _, p := range tmpl {
			if (p.Kind == template.Literal) != (p.Path == nil) {
				t.Fatalf("%q: part %+v", s, p)
			}
		}
		if got, err := tmpl.Expand(nil, secrets); err != nil || len(got) > len(s) {
			t.Fatalf("%q became %q, %v", s, got, err)
		}
	})
}
