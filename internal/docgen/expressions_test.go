package docgen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow/expr"
)

// The rows of tables "expression, value" of the page on expressions are evaluated.
func TestExpressionsOfTheDocumentationHaveTheirValues(t *testing.T) {
	text, err := os.ReadFile("expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| `(.*)` \\| `(.*)` \\|$")
	count, inTable := 0, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		inTable = line == "| expression | value |" || inTable && strings.HasPrefix(line, "|")
		m := row.FindStringSubmatch(line)
		if !inTable || m == nil {
			continue
		}
		count++
		src := strings.ReplaceAll(m[1], `\|`, "|")
		p, err := expr.Compile(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got, err := p.Eval(expr.Map{})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		raw, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var want, plain any
		if err := json.Unmarshal([]byte(m[2]), &want); err != nil {
			t.Errorf("%s: %v", m[2], err)
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(plain, want) {
			t.Errorf("%s = %s; the page says %s", src, raw, m[2])
		}
	}
	if count < 20 {
		t.Errorf("the page has %d rows; want 20 and more", count)
	}
}

func TestExpressionsOfThePagesCompile(t *testing.T) {
	template := regexp.MustCompile(`\{\{([^{}\n]|\{[^{}\n]*\})+\}\}`)
	found := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/nodes/*.md", "docs/adr/*.md"} {
		pages, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			found += compileAll(t, page, template.FindAllString(string(text), -1))
		}
	}
	if found < 300 {
		t.Errorf("%d expressions were found", found)
	}
}

// compileAll compiles the expressions of a page and returns how many there were.
func compileAll(t *testing.T, page string, templates []string) (found int) {
	t.Helper()
	for _, m := range templates {
		source := strings.TrimSuffix(strings.TrimPrefix(m, "{{"), "}}")
		if s := strings.TrimSpace(source); s == "" || s == "..." || s == "'" {
			continue // it stands for any expression, or for braces in an expression
		}
		found++
		if _, err := expr.Compile(source); err != nil {
			t.Errorf("%s: %s: %v", page, m, err)
		}
	}
	return found
}
