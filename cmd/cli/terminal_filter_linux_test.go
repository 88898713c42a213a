package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/server/auditlog"
	"github.com/weir-run/weir/store/sqlite"
)

const askFirst = `
weir: 1
name: ask
nodes:
  ask: {type: userInput, with: {prompt: "Approve?", schema: {type: string, enum: [approve, reject]}}}
outputs: {said: "{{ ask.text }}"}
`

func TestKeysTypedBeforeQuestionAreDiscarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "ask.yaml", askFirst)
	c := consoleWith(t, dir, "run", "ask.yaml")
	c.press("approve\n")
	c.expect("Approve?")
	c.expect("> ")
	c.press("reject\n")
	c.expect("said: reject")
	c.wait()
}

func TestKeysTypedBeforeConfirmationAreDiscarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "talk.yaml", slowFlow)
	writeFile(t, dir, "script.yaml", "answer: [First.]\n")
	c := consoleWith(t, dir, "chat", "talk.yaml", "--user", "ada")
	c.expect("> ")
	c.press("Hello.\r")
	c.expect("First.")
	c.expect("> ")
	c.press("/quit\r")
	c.wait()
	c = consoleWith(t, dir, "sessions", "delete", "--user", "ada")
	c.press("y\n")
	c.expect("for good?")
	c.press("n\n")
	c.expect("nothing was done")
	c.wait()
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wait waits for the command to end well.
func (c *console) wait() {
	c.t.Helper()
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("%v\n%s", err, c.shown())
	}
}

// ownSequence are the sequences that the program itself sends: colours, and the lines of
// progress and of the editor that are drawn again.
var ownSequence = regexp.MustCompile("\x1b\\[[0-9;]*m|\r\x1b\\[\\d+A\x1b\\[J|\x1b\\[\\?2004[hl]|\x1b\\[[ACDK]|\r\n|\r\x1b\\[K")

var controlSequence = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]|\x1b")

// foreignSequence are sequences of the form of a colour that the program never sends.
var foreignSequence = regexp.MustCompile("\x1b\\[([0-9;]*;)?(8|96|48)[;m]|\x1b\\[2J")

// markRemnant is what a terminal shows of a colour sequence that lost its first byte.
var markRemnant = regexp.MustCompile(`\[([0-9]+;)*48;2;`)

func TestColoursOfTheProgramAreKeptBesideEachOtherAndAnyText(t *testing.T) {
	t.Parallel()
	mark := newColourMark()
	own := mark.style().Bold(true).Foreground(lipgloss.Red)
	red := strings.TrimSuffix(own.Render("x"), "x\x1b[m")
	shown := mark.stripControls(red)
	foreign := "\x1b[31m"
	pieces := map[string]string{red: shown, "\x1b[m": "\x1b[m", "\x1b[0m": "\x1b[0m", foreign: "[31m", "\x1b": "", "text": "text", " ": " ", "": ""}
	if !strings.HasPrefix(shown, "\x1b[1;31") || mark.stripControls(red+"x") != shown+"x" {
		t.Fatalf("a colour of the program is shown as %q", shown)
	}
	for a, wantA := range pieces {
		for b, wantB := range pieces {
			for c, wantC := range pieces {
				if got, want := mark.stripControls(a+b+c), wantA+wantB+wantC; got != want {
					t.Errorf("%q is shown as %q, want %q", a+b+c, got, want)
				}
			}
		}
	}
	block := mark.stripControls(mark.style().Faint(true).Render("two lines\nof text"))
	if markRemnant.MatchString(block) {
		t.Errorf("lines of different lengths are shown as %q", block)
	}
}

const hostileFlow = `
weir: 1
name: evil
description: %[1]s
context: {model: script/script.yaml, system: %[1]s}
inputs: {message: {type: text, required: true, description: %[1]s}}
nodes:
  say: {type: llmRequest, description: %[1]s, in: {message: "{{ run.inputs.message }}"}}
  ask: {type: userInput, after: say, with: {prompt: %[1]s, schema: {type: string, enum: [%[1]s, b]}}}
outputs: {said: "{{ say.text }}", answer: "{{ ask.text }}"}
`

const talkFlow = `
weir: 1
name: talk
context: {model: script/script.yaml}
inputs: {message: {type: text, required: true}}
state: {heard: {scope: session}}
nodes:
  hear: {type: transform, with: {state: {heard: run.inputs.message}}}
  say: {type: llmRequest, in: {message: "{{ run.inputs.message }}"}}
outputs: {said: "{{ say.text }}"}
`

// newHostileDatabase returns a folder with a session, finished and waiting runs, a failed one, and
// memory, all full of hostile texts.
func newHostileDatabase(t *testing.T) (dir, session string) {
	t.Helper()
	dir = t.TempDir()
	quoted, err := json.Marshal(hostileText)
	if err != nil {
		t.Fatal(err)
	}
	flow := fmt.Sprintf(hostileFlow, quoted)
	writeFile(t, dir, "evil.yaml", flow)
	writeFile(t, dir, "wrong.yaml", strings.Replace(flow, "type: llmRequest", "type: "+string(quoted), 1))
	writeFile(t, dir, "talk.yaml", talkFlow)
	writeFile(t, dir, "script.yaml", "say: ["+string(quoted)+"]\n")
	writeFile(t, dir, "fails.yaml", fmt.Sprintf("weir: 1\nname: fails\nnodes: {no: {type: fail, with: {code: no, message: %s}}}\n", quoted))
	writeFile(t, dir, "evil.test.yaml", fmt.Sprintf("flow: evil.yaml\ntests:\n  - name: %[1]s\n    inputs: {message: %[1]s}\n    expect: {outputs: {said: %[1]s}}\n", quoted))
	for _, args := range [][]string{
		{"run", "evil.yaml", "-i", "message=" + hostileText, "--id", "waits", "--no-input"},
		{"run", "evil.yaml", "-i", "message=" + hostileText, "--id", "done", "--no-input"},
		{"answer", "done", "ask", hostileText},
		{"run", "fails.yaml", "--id", "failed"},
		{"fork", "done", "--id", "forked", "--from", "say", "--no-input"},
	} {
		runQuietly(t, dir, "", args...)
	}
	recordHostileAction(t, dir)
	runQuietly(t, dir, hostileText+"\n", "chat", "talk.yaml", "--user", "ada")
	var sessions []app.SessionRow
	if err := json.Unmarshal(runQuietly(t, dir, "", "sessions", "--json"), &sessions); err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	return dir, sessions[0].Session
}

// recordHostileAction adds an entry to the audit log.
func recordHostileAction(t *testing.T, dir string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(dir, ".weir", "weir.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = auditlog.New(s, auditlog.Options{}).Record(t.Context(), auditlog.Entry{
		Via: hostileText, User: hostileText, Token: hostileText, Action: hostileText, Objects: map[string]string{hostileText: hostileText}, Status: 400, Code: hostileText,
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

// runQuietly runs a command outside of a terminal and returns its output; it may fail,
// but not be refused.
func runQuietly(t *testing.T, dir, in string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = append([]string{"weir"}, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "HOME="+dir), strings.NewReader(in)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code == exitUsage || code < 0 {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return out
}

// printingCommands returns the commands that print what is in the world, each with arguments for it.
func printingCommands(session string) map[string][][]string {
	return map[string][][]string{
		"run":                  {{"evil.yaml", "-i", "message=" + hostileText}, {"fails.yaml"}},
		"test":                 {{}},
		"validate":             {{"evil.yaml", "wrong.yaml"}},
		"graph":                {{"evil.yaml"}},
		"runs":                 {{}, {"--stuck", "--idle", "0s"}},
		"eval":                 {{"'" + hostileText + "'"}, {"--json", "'" + hostileText + "'"}, {"['" + hostileText + "']"}, {hostileText}, {"'" + hostileText + "'.gone()"}},
		"show":                 {{"waits"}, {"done"}, {"failed"}, {"done", "--chain"}, {"done", "--node", "say"}, {"done", "--node", "say", "--view"}, {"waits", "--node", "ask"}},
		"answer":               {{"waits", "ask", hostileText + "!"}},
		"resume":               {{"waits"}},
		"cancel":               {{"waits", "--reason", hostileText}},
		"fork":                 {{"done", "--from", "say", "--dry-run"}},
		"rerun":                {{"done"}},
		"diff":                 {{"done", "forked"}},
		"sessions":             {{}},
		"sessions show":        {{session}, {session, "--messages"}},
		"sessions fork":        {{session}},
		"send":                 {{session, hostileText}, {session, hostileText, "--no-wait", "--id", "x"}, {session, hostileText, "--id", hostileText}, {session, hostileText, "--steer"}, {session, hostileText, "--steer", "--node", hostileText}},
		"sessions activate":    {{session}},
		"sessions rename":      {{session, hostileText}, {session, "Harbour"}},
		"sessions label":       {{session, hostileText}, {session, "harbour"}},
		"sessions budget":      {{session}, {session, hostileText}},
		"sessions state show":  {{session}},
		"sessions state set":   {{session, "no=" + hostileText}, {session, hostileText + "=1"}},
		"sessions state reset": {{session, hostileText}},
		"users state show":     {{"ada"}, {hostileText}},
		"users state set":      {{"ada", "no=" + hostileText, "--flow", "flow.yaml"}, {hostileText, hostileText + "=1"}},
		"users state reset":    {{"ada", hostileText, "--flow-name", "talk"}, {hostileText, "--all", "--flow-name", hostileText}},
		"runs cancel":          {{"--all", "--dry-run"}},
		"runs retry":           {{"--all", "--dry-run"}},
		"runs delete":          {{"--all", "--dry-run"}, {"--flow", hostileText, "--dry-run"}},
		"audit":                {{}, {"--json"}},
		"models stop":          {{"none", "--reason", hostileText}, {hostileText}},
		"models stopped":       {{}},
		"models allow":         {{"none"}, {hostileText}},
		"sessions delete":      {{session, "--dry-run"}},
		"sessions prune":       {{"--keep", "1", "--dry-run"}},
		"trajectory":           {{"done"}},
		"verify":               {{"done"}, {"--all"}},
		"export":               {{"done"}},
		"retry":                {{"failed", "no"}},
		"skip":                 {{"failed", "no"}},
		"complete":             {{"failed", "no"}},
	}
}

// commandsWithoutText returns the commands whose output holds no text of a record, each with the reason.
func commandsWithoutText() map[string]string {
	return map[string]string{
		"chat":             "has a terminal test of its own",
		"nodes":            "prints the catalogue",
		"schema":           "prints the schema of flow files",
		"sessions unqueue": "prints an id, which the guard of every command covers",
		"sessions state":   "prints its help",
		"users":            "prints its help; what is below it has cases",
		"users state":      "prints its help",
		"users list":       "prints names that were checked when the record was made, and notes through the same guard",
		"users set":        "prints a checked name and a role",
		"users disable":    "prints a checked name and a role",
		"users enable":     "prints a checked name and a role",
		"models":           "prints its help; what is below it has cases",
		"mcp":              "prints what the protocol says, as JSON",
		"sessions compact": "prints a line of its own",
		"init":             "prints the names of files that it creates",
		"memory":           "tested with the memory commands",
		"code":             "needs learned code; texts of programs pass the same guard",
		"store":            "prints its help",
		"store copy":       "prints counts",
		"store rewrap":     "prints a count",
		"store backup":     "prints a size, and the name of a file that no tampered text reaches",
		"store restore":    "prints counts, and the name of a file that no tampered text reaches",
		"import":           "prints counts and ids",
		"tools":            "needs a server; texts of tools pass the same guard",
		"doctor":           "prints the configuration",
		"serve":            "prints an address and errors, which the guard of every command covers",
		"worker":           "prints the configuration and errors, which the guard of every command covers",
		"tokens":           "prints names that were checked when the token was made",
		"version":          "prints the build",
		"licenses":         "prints licences",
		"completion":       "prints scripts",
		"help":             "prints help",
	}
}

func TestCommandsStripControlSequences(t *testing.T) {
	t.Parallel()
	dir, session := newHostileDatabase(t)
	shown, quiet := printingCommands(session), commandsWithoutText()
	p := &cli{env: os.LookupEnv}
	var leaves []string
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			walk(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
		if c.Runnable() && path != "" {
			leaves = append(leaves, path)
		}
	}
	walk(p.root(), "")
	for _, name := range leaves {
		group, _, _ := strings.Cut(name, " ")
		if shown[name] == nil && quiet[name] == "" && quiet[group] == "" {
			t.Errorf("no case says what `weir %s` shows a terminal", name)
		}
	}
	for name, uses := range shown {
		if !slices.Contains(leaves, name) {
			t.Errorf("there is no command %s", name)
		}
		for _, args := range uses {
			c := consoleWith(t, dir, append(strings.Fields(name), args...)...)
			c.answer(nil)
			seen := c.shown()
			if wrong := wrongOnTerminal(seen); wrong != "" {
				t.Errorf("weir %s %q shows %s", name, args, wrong)
			}
		}
	}
}

// wrongOnTerminal says what a terminal was sent that it should not be, or is empty.
func wrongOnTerminal(seen string) string {
	if rest := ownSequence.ReplaceAllString(seen, ""); controlSequence.MatchString(rest) || foreignSequence.MatchString(seen) {
		return fmt.Sprintf("control sequences: %q", rest)
	}
	if markRemnant.MatchString(seen) {
		return fmt.Sprintf("a colour of its own as text: %q", seen)
	}
	return ""
}
