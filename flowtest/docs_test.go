package flowtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/flowtest"
)

func TestDocExampleRuns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/flow-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, b := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(b, "```")
		blocks = append(blocks, text)
	}
	if len(blocks) < 2 {
		t.Fatalf("the page has %d blocks of YAML", len(blocks))
	}
	dir := files(t, map[string]string{"order.yaml": blocks[0], "order.test.yaml": blocks[1]})
	r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "order.test.yaml")}, flowtest.Options{})
	if !r.OK() || r.Passed != 4 {
		t.Error(reportText(&r.Files[0]))
	}
	talk, err := filepath.Abs("../examples/talk/flow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conversations := 0
	for _, b := range blocks {
		if !strings.Contains(b, "turns:") {
			continue
		}
		conversations++
		dir := files(t, map[string]string{"order.yaml": blocks[0], "talk.test.yaml": strings.Replace(b, "examples/talk/flow.yaml", talk, 1)})
		r := flowtest.Run(t.Context(), []string{filepath.Join(dir, "talk.test.yaml")}, flowtest.Options{})
		if !r.OK() || r.Passed != strings.Count(b, "turns:") {
			t.Error(reportText(&r.Files[0]))
		}
	}
	if conversations != 2 {
		t.Errorf("the page has %d conversations", conversations)
	}
	for _, name := range flowtest.Matchers() {
		if !strings.Contains(string(page), "`"+name) {
			t.Errorf("the page does not have the matcher %s", name)
		}
	}
}
