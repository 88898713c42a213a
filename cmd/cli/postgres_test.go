//go:build postgres && unix

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

const askFlow = `
weir: 1
name: greeting
inputs: {message: {type: text}}
nodes:
  ask: {type: userInput, with: {prompt: "Who is there?"}}
  greet: {type: template, in: {who: "{{ ask.text }}"}, with: {text: "Hello {{ inputs.who }}."}}
outputs: {said: "{{ greet.text }}"}
`

// pgCommand calls the program with a database on a server.
type pgCommand struct {
	t    *testing.T
	args []string
}

func (p pgCommand) run(in string, wantCode int, args ...string) (out, stderr string) {
	p.t.Helper()
	var o, e bytes.Buffer
	if code := command(p.t.Context(), append(p.args, args...), terminal{strings.NewReader(in), &o, &e}); code != wantCode {
		p.t.Fatalf("%v: exit code %d, want %d\n%s", args, code, wantCode, e.String())
	}
	return o.String(), e.String()
}

// contains fails unless a text has all parts.
func (p pgCommand) contains(text string, parts ...string) {
	p.t.Helper()
	for _, x := range parts {
		if !strings.Contains(text, x) {
			p.t.Errorf("no %q in:\n%s", x, text)
		}
	}
}

func TestCommandsOnPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	url := strings.Replace(server.Schema(t), "weir@", "weir:geheim@", 1)
	p := pgCommand{t, []string{"--db", url}}
	file := filepath.Join(t.TempDir(), "greeting.yaml")
	if err := os.WriteFile(file, []byte(askFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr := p.run("", 0, "runs")
	p.contains(stderr, "no runs yet: there is no database at postgres://weir@")
	out, _ := p.run("", 0, "doctor")
	p.contains(out, "has no tables of Weir yet")

	_, stderr = p.run("", 3, "run", file)
	p.contains(stderr, "weir answer ")
	if strings.Contains(stderr, "geheim") {
		t.Errorf("the hint shows the password:\n%s", stderr)
	}
	out, _ = p.run("", 0, "runs", "--json")
	var runs []struct {
		Run    string `json:"run"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 1 || runs[0].Status != "paused" {
		t.Fatalf("%v %s", err, out)
	}
	id := runs[0].Run
	out, _ = p.run("", 0, "answer", id, "ask:ask#1", "Ada")
	p.contains(out, "Hello Ada.")
	out, _ = p.run("", 0, "show", id)
	p.contains(out, "completed", "Hello Ada.")
	out, _ = p.run("", 0, "resume", id)
	p.contains(out, "Hello Ada.")
	_, stderr = p.run("", 3, "fork", id, "--from", "ask")
	p.contains(stderr, "weir answer ")

	talk, reply := filepath.Join("..", "..", "examples", "talk", "flow.yaml"), "Good morning."
	out, _ = p.run("hello\nand you?\n", 0, "chat", talk, "--user", "ada")
	p.contains(out, reply, "Berth 4")
	out, _ = p.run("", 0, "sessions")
	p.contains(out, "ada", "talk")
	out, _ = p.run("more\n", 0, "chat", talk, "--user", "ada")
	p.contains(out, "Done")
	p.run("", 0, "tokens", "create", "--user", "ada", "--scope", "read")
	out, _ = p.run("", 0, "tokens", "list")
	p.contains(out, "ada")
	out, _ = p.run("", 0, "doctor")
	p.contains(out, "synchronous_commit", "may read and write all tables")

	out, stderr = p.run("", 0, "sessions", "delete", "--user", "ada", "--yes")
	p.contains(out+stderr, "deleted 1 session", "standbys and backups")
	out, _ = p.run("", 0, "verify", "--all")
	p.contains(out, "erased")

	server.SQL(t, "ALTER ROLE weir SET synchronous_commit = off")
	out, _ = p.run("", 1, "doctor")
	p.contains(out, "a crash loses acknowledged commits")
	_, stderr = p.run("", 1, "run", file)
	p.contains(stderr, "a crash loses acknowledged commits")
}

// TestCopiesToPostgreSQLAndBack copies a file to a server and back, and compares the heads.
func TestCopiesToPostgreSQLAndBack(t *testing.T) {
	server := pgtest.Start(t)
	dir, url := t.TempDir(), server.Schema(t)
	first, last := filepath.Join(dir, "first.db"), filepath.Join(dir, "last.db")
	in := func(db string) pgCommand { return pgCommand{t, []string{"--db", db}} }
	file := filepath.Join(dir, "greeting.yaml")
	if err := os.WriteFile(file, []byte(askFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	in(first).run("", 3, "run", file, "--id", "waits")
	in(first).run("", 3, "run", file, "--id", "ends")
	in(first).run("", 0, "answer", "ends", "ask:ask#1", "Ada")
	in(first).run("", 3, "fork", "ends", "--from", "ask")
	talk := filepath.Join("..", "..", "examples", "talk", "flow.yaml")
	in(first).run("hello\nand you?\n", 0, "chat", talk, "--user", "ada")

	in(first).run("", 0, "tokens", "create", "--user", "ada", "--scope", "read")

	out, _ := in(first).run("", 0, "store", "copy", first, url)
	in(first).contains(out, "copied 5 runs", "all heads are the same", "1 × access token")
	out, _ = in(first).run("", 0, "store", "copy", url, last)
	in(first).contains(out, "copied 5 runs")
	for _, db := range []string{first, url, last} {
		in(db).run("", 0, "verify", "--all")
	}
	for _, db := range []string{url, last} {
		out, _ = in(db).run("", 0, "answer", "waits", "ask:ask#1", "Bert")
		in(db).contains(out, "Hello Bert.")
		out, _ = in(db).run("more\n", 0, "chat", talk, "--user", "ada")
		in(db).contains(out, "Done")
	}
	out, _ = in(first).run("", 0, "store", "copy", first, url) // it has all of that, and more
	in(first).contains(out, "copied 0 runs", "5 runs had been there")
	_, stderr := in(first).run("", 1, "store", "copy", url, first)
	in(first).contains(stderr, "differs from the source")
	server.SQL(t, "UPDATE s1.run_commit SET at = at + 1 WHERE seq = 1 AND run = (SELECT num FROM s1.run WHERE id = 'ends')")
	in(url).run("", 1, "verify", "--all")
	_, stderr = in(first).run("", 1, "store", "copy", url, filepath.Join(dir, "damaged.db"))
	in(first).contains(stderr, "not as it was written")
	_, stderr = in(first).run("", 2, "store", "copy", first, first)
	in(first).contains(stderr, "the same database")
	_, stderr = in(first).run("", 2, "store", "copy", filepath.Join(dir, "none.db"), url)
	in(first).contains(stderr, "there is no database")
}
