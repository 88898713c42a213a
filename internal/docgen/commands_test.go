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

// TestCommandsSelectExistingTests reads each `go test ... -run PATTERN` of the Makefile, the scripts, the
// pages and the go:generate lines: go test passes silently where a pattern selects nothing.
func TestCommandsSelectExistingTests(t *testing.T) {
	funcs, _ := named(t)
	checked := 0
	check := func(file, line string) {
		pattern := runFlag.FindStringSubmatch(line)
		if pattern == nil || !strings.Contains(line, "go test") {
			return
		}
		dirs := directory.FindAllStringSubmatch(line[strings.Index(line, "go test"):], -1)
		want := strings.ReplaceAll(strings.Trim(pattern[1], "'"), "$$", "$")
		if len(dirs) == 0 || want == "^$" || want == "xxx" {
			return
		}
		for _, dir := range dirs {
			at := path.Clean(path.Join(path.Dir(file), dir[1]))
			if !strings.HasSuffix(file, ".go") {
				at = path.Clean(dir[1])
			}
			for _, part := range strings.Split(want, "|") {
				checked++
				if !selectsTest(t, funcs, at, part) {
					t.Errorf("%s: -run %s selects no test of %s: %s", file, part, at, strings.TrimSpace(line))
				}
			}
		}
	}
	files := []string{"Makefile", ".ci/run", "README.md", "CONTRIBUTING.md"}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		files = append(files, "docs/"+filepath.Base(p))
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			check(file, line)
		}
	}
	source(t, func(file string, f *ast.File, _ func(ast.Node) token.Position) {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:generate ") {
					check(file, c.Text)
				}
			}
		}
	})
	if checked < 10 {
		t.Errorf("only %d patterns found: the test reads nothing", checked)
	}
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
