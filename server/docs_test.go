package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/server"
)

// TestTheExamplesOfTheDocumentationRun sends the requests of docs/server.md in their order.
// Each answer must have what the page shows of it. RUN and SESSION stand for the ids that
// were answered first.
func TestTheExamplesOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/weir", "/tools/weir-2.0"} {
		t.Run("below "+base, func(t *testing.T) {
			t.Parallel()
			runExamples(t, base)
		})
	}
}

func runExamples(t *testing.T, base string) {
	t.Helper()
	page, err := os.ReadFile("../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	p := openProcess(t, t.TempDir(), server.Options{BasePath: base})
	if flow := flows()["ask.yaml"]; !strings.Contains(string(page), "```yaml\n"+flow+"```") {
		t.Errorf("the page does not show the flow of the tests:\n%s", flow)
	}
	examples := regexp.MustCompile("(?s)```http\n(.*?)```\n\n```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != strings.Count(string(page), "```http") || len(examples) < 8 {
		t.Errorf("%d examples have an answer", len(examples))
	}
	ids := map[string]string{}
	for _, e := range examples {
		request := e[1]
		for name, id := range ids {
			request = strings.ReplaceAll(request, "/"+name, "/"+id)
		}
		head, body, _ := strings.Cut(request, "\n\n")
		lines := strings.Split(strings.TrimSpace(head), "\n")
		method, path, _ := strings.Cut(lines[0], " ")
		got := p.send(method, path, strings.TrimSpace(body), func(r *http.Request) {
			for _, line := range lines[1:] {
				name, value, _ := strings.Cut(line, ": ")
				r.Header.Set(name, value)
			}
		})
		checkExample(t, lines[0], got.body, e[2], ids)
	}
}

// checkExample compares an answer with what the page shows of it.
func checkExample(t *testing.T, what, got, want string, ids map[string]string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%s: %v in %s", what, err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%s: the page: %v", what, err)
	}
	if miss := missing(a, b, ids); miss != "" {
		t.Errorf("%s: %s\n%s", what, miss, got)
	}
}

// missing says what of want is not in got, "" for nothing.
func missing(got, want any, ids map[string]string) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			if m := missing(g[k], v, ids); m != "" {
				return k + ": " + m
			}
		}
		return ""
	case []any:
		return missingItem(got, w, ids)
	case string:
		if w == "RUN" || w == "RERUN" || w == "SESSION" {
			if ids[w] == "" {
				ids[w], _ = got.(string)
			}
			w = ids[w]
		}
		want = w
	}
	if got != want {
		return fmt.Sprintf("%v, not %v", got, want)
	}
	return ""
}

func missingItem(got any, want []any, ids map[string]string) string {
	list, _ := got.([]any)
	if len(list) != len(want) {
		return fmt.Sprintf("%d items, not %d", len(list), len(want))
	}
	for i := range want {
		if m := missing(list[i], want[i], ids); m != "" {
			return m
		}
	}
	return ""
}
