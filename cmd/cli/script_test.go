package cli

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.RunChildRole(app.ChildRoles()...) // the program that scripts run is this one, and so are its children
	testscript.Main(m, map[string]func(){"weir": func() { Main(Options{}) }, "toolserver": toolServerMain})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			e.Setenv("USER", "ada")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", os.Getenv("GORACE"))
			model := newCommandModelServer()
			e.Defer(model.Close)
			e.Setenv("MODEL_URL", model.URL)
			e.Setenv("MODEL_ROOT", model.Root)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"expand":   expand,
			"ended":    ended,
			"exits":    exits,
			"last":     last,
			"lines":    lines,
			"keeps":    checkKept,
			"becoming": waitForStatus,
			"typing":   typingAnswers,
		},
	})
}

// expand FILE... puts the values of $NAME into files.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// ended FILE requires the processes whose ids the file lists to have ended.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	pids := strings.Fields(ts.ReadFile(args[0]))
	if len(pids) == 0 {
		ts.Fatalf("%s lists no process", args[0])
	}
	for _, pid := range pids {
		if stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat")); err == nil && !strings.Contains(string(stat), ") Z ") {
			ts.Fatalf("process %s still runs: %s", pid, stat)
		}
	}
}

// exits CODE COMMAND... runs a command and requires that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// last FILE requires the last line of stdout to be the JSON of the file: the same
// keys, and the same values but where the file says "*".
func last(ts *testscript.TestScript, _ bool, args []string) {
	all := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	var got, want any
	ts.Check(json.Unmarshal([]byte(all[len(all)-1]), &got))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &want))
	if where := differs(want, got); where != "" {
		ts.Fatalf("the last line of stdout differs from %s at %s:\n%s", args[0], where, all[len(all)-1])
	}
}

// differs says where got is not what want says, "" if it is.
func differs(want, got any) string {
	if want == "*" {
		return ""
	}
	w, ok := want.(map[string]any)
	g, ok2 := got.(map[string]any)
	if !ok || !ok2 {
		if reflect.DeepEqual(want, got) {
			return ""
		}
		return "."
	}
	for _, k := range slices.Sorted(maps.Keys(w)) {
		x, there := g[k]
		if !there {
			return "." + k
		}
		if where := differs(w[k], x); where != "" {
			return "." + k + where
		}
	}
	for _, k := range slices.Sorted(maps.Keys(g)) {
		if _, there := w[k]; !there {
			return "." + k + " (not wanted)"
		}
	}
	return ""
}

// lines KEY... requires every line of stdout to be a JSON object with those keys.
func lines(ts *testscript.TestScript, _ bool, args []string) {
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var o map[string]any
		ts.Check(json.Unmarshal([]byte(line), &o))
		for _, k := range args {
			if _, ok := o[k]; !ok {
				ts.Fatalf("no %q in %s", k, line)
			}
		}
	}
}

// checkKept FILE requires stdout to be exactly the file; with UPDATE set in the
// environment of the test it writes it instead.
func checkKept(ts *testscript.TestScript, _ bool, args []string) {
	got := ts.ReadFile("stdout")
	if os.Getenv("UPDATE") != "" {
		ts.Check(os.WriteFile(args[0], []byte(got), 0o600))
	}
	if want := ts.ReadFile(args[0]); got != want {
		ts.Fatalf("%s is not what the command prints now; UPDATE=1 go test writes it", args[0])
	}
}

// waitForStatus TEXT COMMAND... runs a command again and again until its stdout
// holds the text: for what another process is about to do.
func waitForStatus(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if ts.Exec(args[1], args[2:]...) == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			ts.Fatalf("%q did not come", args[0])
		}
	}
}
