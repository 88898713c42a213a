package history_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/weirkit"
)

var update = flag.Bool("update", false, "rewrite the trajectories in testdata/trajectories")

// trajectoryCase is something that becomes of a run, as a file says it.
type trajectoryCase struct {
	*trajectoryHarness
	file  string
	parts map[string][]string // by their headings
	id    string              // of the run
	flow  *weir.Flow
}

func trajectoryCases(t *testing.T) []*trajectoryCase {
	t.Helper()
	files, err := filepath.Glob("testdata/trajectories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []*trajectoryCase
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := &trajectoryCase{file: file, id: "run", parts: map[string][]string{}}
		for i, part := range strings.Split("-- is --\n"+string(data), "-- ") {
			if name, text, ok := strings.Cut(part, " --\n"); ok && i > 0 {
				c.parts[name] = append(c.parts[name], text)
			}
		}
		out = append(out, c)
	}
	return out
}

// run has the run, and does with it what the file says.
func (c *trajectoryCase) run(t *testing.T) weir.Result {
	t.Helper()
	var uses []*weir.Flow
	for _, text := range c.parts["used"] {
		uses = append(uses, c.parse(t, text, uses))
	}
	c.flow = c.parse(t, c.parts["flow"][0], uses)
	run, err := c.w.Start(t.Context(), c.flow, weir.Start{ID: c.id})
	if err != nil {
		t.Fatal(err)
	}
	r := weirkit.Wait(t, run)
	if len(c.parts["does"]) == 0 {
		return r
	}
	for line := range strings.Lines(c.parts["does"][0]) {
		if line = strings.TrimSpace(line); line == "reopen" {
			if err := c.open(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		run, err := c.perform(t, line, r)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		r = weirkit.Wait(t, run)
	}
	return r
}

func (c *trajectoryCase) parse(t *testing.T, text string, uses []*weir.Flow) *weir.Flow {
	t.Helper()
	f, err := c.w.Parse("flow.yaml", []byte(text), uses...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (c *trajectoryCase) perform(t *testing.T, line string, r weir.Result) (*weir.Run, error) {
	t.Helper()
	words := strings.Fields(line)
	switch words[0] {
	case "answer":
		return c.w.Answer(t.Context(), c.id, r.Interrupts[0].ID, reply(r.Interrupts[0]), "ann")
	case "retry":
		return c.w.OverrideNode(t.Context(), c.id, "retry", r.Error.Node, nil, "ann")
	case "skip":
		return c.w.OverrideNode(t.Context(), c.id, "skip", words[1], nil, "ann")
	case "complete":
		return c.w.OverrideNode(t.Context(), c.id, "complete", words[1], map[string]any{"text": "done by hand"}, "ann")
	case "raise":
		return c.w.IncreaseBudget(t.Context(), c.id, r.Error.Node, map[string]any{"maxCalls": 10}, "ann")
	case "cancel":
		return c.w.Cancel(t.Context(), c.id, "ann", "enough")
	case "rerun":
		c.id = "again"
		return c.w.Rerun(t.Context(), "run", weir.Start{ID: c.id})
	case "fork":
		o := weir.ForkOptions{ID: "fork", From: words[1]}
		for _, input := range words[2:] {
			name, value, _ := strings.Cut(input, "=")
			o.Inputs = map[string]any{name: value}
		}
		c.id = o.ID
		run, _, err := c.w.Fork(t.Context(), "run", o)
		return run, err
	}
	return nil, errors.New("nobody knows how")
}

// describe returns what the run became, and the trajectories of all who worked in it.
func (c *trajectoryCase) describe(t *testing.T, r weir.Result) string {
	t.Helper()
	agents, err := c.w.Agents(t.Context(), c.id)
	if err != nil {
		t.Fatal(err)
	}
	out := r.Status.String() + "\n"
	for _, a := range agents {
		g, err := c.w.Trajectory(t.Context(), c.id, a.Sub)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkPaths(g, c.flow); err != nil && a.Sub == 0 {
			t.Error(err)
		}
		out += fmt.Sprintf("\nagent %d %s\n%s", a.Sub, a.Name, graphText(g))
	}
	return out
}

func TestTrajectoriesShowRunOutcomes(t *testing.T) {
	for _, onDisk := range []bool{true, false} {
		for _, c := range trajectoryCases(t) {
			t.Run(fmt.Sprint(filepath.Base(c.file), onDisk), func(t *testing.T) {
				path := ""
				if onDisk {
					path = filepath.Join(t.TempDir(), "weir.db")
				}
				c.trajectoryHarness = newTrajectoryHarness(t, path)
				if err := c.open(); err != nil {
					t.Fatal(err)
				}
				r := c.run(t)
				if err := c.open(); err != nil { // all is stored by then
					t.Fatal(err)
				}
				checkStored(t, c.w, c.kept, "", c.id)
				c.compare(t, c.describe(t, r))
			})
		}
	}
}

func (c *trajectoryCase) compare(t *testing.T, got string) {
	t.Helper()
	want := strings.Join(c.parts["becomes"], "")
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s becomes\n%s\nand has to become\n%s", c.file, got, want)
	}
	data, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(data), "-- becomes --\n")
	if err := os.WriteFile(c.file, []byte(text+"-- becomes --\n"+got), 0o600); err != nil {
		t.Fatal(err)
	}
}
