package flow_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/flow"
)

var update = flag.Bool("update", false, "rewrite the want lines of testdata/invalid")

const wantPrefix = "# want: "

// splitWants takes the want lines off the top of a corpus file.
func splitWants(data string) (wants []string, body string) {
	for strings.HasPrefix(data, wantPrefix) {
		line, rest, _ := strings.Cut(data, "\n")
		wants, data = append(wants, strings.TrimPrefix(line, wantPrefix)), rest
	}
	return wants, data
}

func problemsOf(t *testing.T, name, data string) []flow.Problem {
	t.Helper()
	files := folder(t)
	files[name] = data
	_, err := flow.Source{Files: files}.Parse(name, []byte(data), testCatalogue())
	if err == nil {
		return nil
	}
	bad := new(flow.Invalid)
	if !errors.As(err, &bad) {
		t.Fatalf("%s: the error is a %T, not an *Invalid: %v", name, err, err)
	}
	return bad.Problems
}

// folder holds the flows that flows of the corpus use, under flows/.
func folder(tb testing.TB) flow.MemFiles {
	tb.Helper()
	paths, err := filepath.Glob("testdata/invalid/flows/*")
	if err != nil {
		tb.Fatal(err)
	}
	out := flow.MemFiles{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		out["flows/"+filepath.Base(p)] = string(b)
	}
	return out
}

// problemLines returns a problem as want lines have it: with the file where that is another.
func problemLines(name string, p flow.Problem) string {
	msg, _, _ := strings.Cut(p.Message, "\n")
	s := fmt.Sprintf("%d:%d %s %s", p.Pos.Line, p.Pos.Column, p.Code, msg)
	if p.Pos.File != name {
		s = p.Pos.File + ":" + s
	}
	return s
}

func TestEveryInvalidFlowIsRefusedWithAllItsProblemsInPlace(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) < 160 {
		t.Fatalf("the corpus has %d files, expected at least 160 (%v)", len(files), err)
	}
	codes := map[string]bool{}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, p := range checkWants(t, path) {
				codes[p.Code] = true
			}
		})
	}
	for _, c := range flow.Codes() {
		elsewhere := []string{flow.CodeTooManyProblems, flow.CodeUnknownTool, flow.CodeToolArguments} // which have tests of their own
		if !codes[c.Name] && !slices.Contains(elsewhere, c.Name) {
			t.Errorf("no file of the corpus shows %s", c.Name)
		}
	}
	for c := range codes {
		if !listed(c) {
			t.Errorf("the code %s is not in the table", c)
		}
	}
}

// checkWants compares what is reported of a file with its want lines, and
// returns what is reported.
func checkWants(t *testing.T, path string) []flow.Problem {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		raw = rewrite(t, path, string(raw))
	}
	wants, _ := splitWants(string(raw))
	got := problemsOf(t, filepath.Base(path), string(raw))
	if len(got) == 0 {
		t.Fatal("the flow is valid")
	}
	for i, p := range got {
		line := problemLines(filepath.Base(path), p)
		if i >= len(wants) || !strings.HasPrefix(line, wants[i]) {
			t.Errorf("unexpected: %s", line)
		}
	}
	for _, w := range wants[min(len(got), len(wants)):] {
		t.Errorf("not reported: %s", w)
	}
	return got
}

func listed(code string) bool {
	for _, c := range flow.Codes() {
		if c.Name == code {
			return true
		}
	}
	return false
}

// rewrite puts what is reported now into the want lines; review the diff.
func rewrite(t *testing.T, path, data string) []byte {
	t.Helper()
	_, body := splitWants(data)
	name := filepath.Base(path)
	n := len(problemsOf(t, name, body))
	var head strings.Builder
	for _, p := range problemsOf(t, name, strings.Repeat("#\n", n)+body) {
		fmt.Fprintf(&head, "%s%s\n", wantPrefix, problemLines(name, p))
	}
	out := []byte(head.String() + body)
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

func invalidFiles(tb testing.TB) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		_, body := splitWants(string(b))
		files[filepath.Base(p)] = body
	}
	return files
}

func TestAnotherTemplateLanguageIsRefusedWithAHint(t *testing.T) {
	data, err := os.ReadFile("testdata/invalid/settings-engine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problemsOf(t, "flow.yaml", string(data)) {
		if p.Code == flow.CodeUnknownSetting && strings.Contains(p.Hint, "counterparts of Jinja") {
			return
		}
	}
	t.Error("the refusal of engine: jinja has no hint")
}
