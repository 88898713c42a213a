//go:build linux

package temporal_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

const echoFlow = `
weir: 1
name: echo
inputs: {message: {type: text, required: true}}
nodes:
  say: {type: template, in: {m: "{{ run.inputs.message }}"}, with: {text: "You said {{ inputs.m }}."}}
outputs: {text: "{{ say.text }}"}
`

// program is the built program with a database, in folders with different configurations.
type program struct {
	*world
	path string
}

// folder returns a folder with a configuration, "" for none, and the flow.
func (p *program) folder(config string) string {
	p.t.Helper()
	dir := p.t.TempDir()
	files := map[string]string{"echo.yaml": echoFlow}
	if config != "" {
		files[".weir/config.yaml"] = config
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	return dir
}

func (p *program) command(dir string, args ...string) *exec.Cmd {
	c := exec.Command(p.path, append(args, "--db", p.database)...)
	c.Dir = dir
	c.Env = []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, "none"), "PATH=" + os.Getenv("PATH"), "USER=ada"}
	return c
}

// run carries out a command, which must exit with a code, and returns what it prints.
func (p *program) run(dir, in string, code int, args ...string) string {
	p.t.Helper()
	c := p.command(dir, args...)
	c.Stdin = strings.NewReader(in)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != code {
		p.t.Fatalf("weir-temporal %v: exit code %d, want %d, %v\n%s", args, c.ProcessState.ExitCode(), code, err, out)
	}
	return string(out)
}

// startWorker starts a worker, which ends with the test.
func (p *program) startWorker(dir string) {
	p.t.Helper()
	c := p.command(dir, "worker")
	out, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { kill(c) })
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), "polling the task queue") {
			go func() {
				for lines.Scan() { // or it waits for someone to read
				}
			}()
			return
		}
	}
	p.t.Fatalf("the worker has ended: %s", strings.Join(said, "\n"))
}

// TestTheProgramDeletesSessionsOnTemporal has the built program make the rounds of two users' sessions on each store, and delete one user's by
// command: not without Temporal, and then with the workflows.
func TestTheProgramDeletesSessionsOnTemporal(t *testing.T) {
	needServer(t)
	path := filepath.Join(t.TempDir(), "weir-temporal")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "postgres", "-o", path, "./cmd/weir-temporal").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			p := &program{newWorld(t), path}
			if name == "PostgreSQL" {
				p.database = pgtest.Start(t).Schema(t)
			}
			testDeletionByCommand(p)
		})
	}
}

func testDeletionByCommand(p *program) {
	t := p.t
	connected := p.folder(fmt.Sprintf("runner: temporal\ntemporal: {address: %q, taskQueue: %q, heartbeat: 2s}\n", p.address, p.queue))
	p.startWorker(connected)
	for _, user := range []string{"ada", "bob"} {
		if out := p.run(connected, "hello\nand you?\n", 0, "chat", "echo.yaml", "--user", user); !strings.Contains(out, "You said and you?.") {
			t.Fatalf("the chat printed:\n%s", out)
		}
	}
	rounds := p.rounds(connected, "ada")
	others := p.rounds(connected, "bob")
	for _, run := range append(rounds, others...) {
		if p.kept(run) == 0 {
			t.Fatalf("run %s has no workflow", run)
		}
	}
	remove := []string{"sessions", "delete", "--user", "ada", "--yes"}
	if out := p.run(p.folder(""), "", 1, remove...); !strings.Contains(out, "belongs to the runner temporal") {
		t.Errorf("a process without the runner says:\n%s", out)
	}
	away := p.folder("runner: temporal\ntemporal: {address: \"127.0.0.1:1\"}\n")
	if out := p.run(away, "", 1, remove...); !strings.Contains(out, "127.0.0.1:1") {
		t.Errorf("while Temporal is away:\n%s", out)
	}
	if n := len(p.rounds(connected, "ada")); n != len(rounds) {
		t.Fatalf("%d rounds are left of %d", n, len(rounds))
	}
	if out := p.run(connected, "", 0, remove...); !strings.Contains(out, "deleted 1 session") {
		t.Errorf("the deletion printed:\n%s", out)
	}
	p.forgotten(rounds)
	if n := len(p.rounds(connected, "ada")); n != 0 {
		t.Errorf("%d rounds are left", n)
	}
	for _, run := range others {
		if p.kept(run) == 0 {
			t.Errorf("the workflow of run %s of another user is gone", run)
		}
	}
	p.run(connected, "", 0, "verify", "--all")
}

// rounds lists the runs of a user.
func (p *program) rounds(dir, user string) (out []string) {
	p.t.Helper()
	c := p.command(dir, "runs", "--user", user, "--json")
	text, err := c.Output()
	if err != nil {
		p.t.Fatalf("weir-temporal runs: %v", err)
	}
	var list []struct {
		Run string `json:"run"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		p.t.Fatalf("%v\n%s", err, text)
	}
	for _, r := range list {
		out = append(out, r.Run)
	}
	return out
}
