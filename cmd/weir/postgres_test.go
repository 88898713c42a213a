//go:build postgres && unix

package main

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

func (p pgCommand) run(in string, wantCode int, args ...string) (out, told string) {
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
	_, told := p.run("", 0, "runs")
	p.contains(told, "no runs yet: there is no database at postgres://weir@")
	out, _ := p.run("", 0, "doctor")
	p.contains(out, "has no tables of Weir yet")

	_, told = p.run("", 3, "run", file)
	p.contains(told, "weir answer ")
	if strings.Contains(told, "geheim") {
		t.Errorf("the hint shows the password:\n%s", told)
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
	_, told = p.run("", 3, "fork", id, "--from", "ask")
	p.contains(told, "weir answer ")

	talk, reply := filepath.Join("..", "..", "examples", "talk", "flow.yaml"), "Good morning."
	out, _ = p.run("hello\nand you?\n", 0, "chat", talk, "--user", "ada")
	p.contains(out, reply, "Berth 4")
	out, _ = p.run("", 0, "sessions")
	p.contains(out, "ada", "talk")
	out, _ = p.run("more\n", 0, "chat", talk, "--user", "ada")
	p.contains(out, "Done")
	out, _ = p.run("", 0, "doctor")
	p.contains(out, "synchronous_commit", "may read and write all tables")

	server.SQL(t, "ALTER ROLE weir SET synchronous_commit = off")
	out, _ = p.run("", 1, "doctor")
	p.contains(out, "a crash loses acknowledged commits")
	_, told = p.run("", 1, "run", file)
	p.contains(told, "a crash loses acknowledged commits")
}
