package docgen_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	runFlag   = regexp.MustCompile(`-run[ =]('[^']*'|[^\s` + "`" + `]+)`)
	directory = regexp.MustCompile(`\s(\./[\w/]+|\.)(?:/\.\.\.)?(?:\s|$)`)
)

// command is a line that runs tests, and the file that it is in.
type command struct{ file, line string }

// TestCommandsSelectExistingTests reads each `go test ... -run PATTERN` of the Makefile, the scripts, the
// pages and the go:generate lines: go test passes silently where a pattern selects nothing.
func TestCommandsSelectExistingTests(t *testing.T) {
	funcs, _ := named(t)
	checked := 0
	for _, c := range commands(t) {
		pattern := runFlag.FindStringSubmatch(c.line)
		if pattern == nil {
			continue
		}
		want := strings.ReplaceAll(strings.Trim(pattern[1], "'"), "$$", "$")
		if want == "^$" || want == "xxx" {
			continue
		}
		for _, dir := range directory.FindAllStringSubmatch(c.line, -1) {
			at := path.Clean(dir[1])
			if strings.HasSuffix(c.file, ".go") {
				at = path.Join(path.Dir(c.file), dir[1])
			}
			for part := range strings.SplitSeq(want, "|") {
				checked++
				if !selectsTest(t, funcs, at, part) {
					t.Errorf("%s: -run %s selects no test of %s: %s", c.file, part, at, c.line)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d patterns found: the test reads nothing", checked)
	}
}

// commands lists the lines with `go test`, from there on.
func commands(t *testing.T) (out []command) {
	t.Helper()
	files := []string{"Makefile", ".ci/run", "README.md", "CONTRIBUTING.md"}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		files = append(files, "docs/"+filepath.Base(p))
	}
	add := func(file, line string) {
		if i := strings.Index(line, "go test "); i >= 0 {
			out = append(out, command{file, line[i:]})
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			add(file, strings.TrimSpace(line))
		}
	}
	source(t, func(file string, f *ast.File, _ func(ast.Node) token.Position) {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:generate ") {
					add(file, c.Text)
				}
			}
		}
	})
	return out
}

func selectsTest(t *testing.T, funcs map[string]bool, dir, pattern string) bool {
	t.Helper()
	re, err := regexp.Compile(pattern)
	if err != nil {
		t.Errorf("-run %s: %v", pattern, err)
		return true
	}
	for name := range funcs {
		in, test, _ := strings.Cut(name, ": ")
		if in == dir && strings.HasPrefix(test, "Test") && re.MatchString(test) {
			return true
		}
	}
	return false
}
