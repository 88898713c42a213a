package docgen_test

import (
	"encoding/json"
	"os"
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
