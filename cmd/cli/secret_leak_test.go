package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
)

// secretTest is a key that must be seen nowhere, and a place to look for it.
type secretTest struct {
	*testing.T
	key   string
	dir   string // all that the command writes
	env   []string
	model *llmtest.Server
	found int // how often a place was looked at
}

func newSecretTest(t *testing.T) *secretTest {
	t.Helper()
	c := &secretTest{T: t, key: "wk-" + rand.Text() + rand.Text(), dir: t.TempDir(), model: newCommandModelServer()}
	t.Cleanup(c.model.Close)
	c.model.APIKey = c.key
	c.env = []string{"GORACE=" + os.Getenv("GORACE"), "PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "USER=ada"}
	if err := os.Mkdir(filepath.Join(c.dir, ".weir"), 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *secretTest) write(name, text string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// weir runs the command, requires the exit code and looks for the key in all that
// was written.
func (c *secretTest) weir(code int, args ...string) string {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "weir", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else if err != nil {
		c.Fatal(err)
	}
	c.search("the output of weir "+strings.Join(args, " "), out.Bytes())
	c.searchFiles()
	if got != code {
		c.Errorf("weir %s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, out.String())
	}
	return out.String()
}

func (c *secretTest) search(place string, data []byte) {
	c.Helper()
	c.found++
	// A part of a key is too much as well: texts are cut somewhere.
	for _, form := range []string{c.key[:12], c.key[len(c.key)-12:], base64.StdEncoding.EncodeToString([]byte(c.key))} {
		if i := bytes.Index(data, []byte(form)); i >= 0 {
			c.Errorf("the key is in %s: ...%q", place, data[max(i-200, 0):min(i+80, len(data))])
			return
		}
	}
}

// searchFiles looks into every file that the command has written.
func (c *secretTest) searchFiles() {
	c.Helper()
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the database's own, gone meanwhile
			return nil
		}
		c.search(path, data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Error(err)
	}
}

// echoingTurns are answers of servers that give the key away: refusals and broken
// streams that hold it.
func (c *secretTest) echoingTurns() map[string][]llmtest.Turn {
	refusal := func(status int, code string) llmtest.Turn {
		t := refusalOf(status, "Your key "+c.key+" is not good enough.")
		t.Failure.Code, t.Failure.Header = code, http.Header{"X-Echo": {c.key}}
		return t
	}
	return map[string][]llmtest.Turn{
		"refused":   {refusal(http.StatusUnauthorized, "invalid_api_key")},
		"bad":       {refusal(http.StatusBadRequest, "invalid_request_error")},
		"page":      {{Failure: &llmtest.Failure{Status: http.StatusForbidden, Body: "<html>" + c.key + "</html>"}}},
		"flood":     {{Failure: &llmtest.Failure{Status: http.StatusForbidden, Body: strings.Repeat(c.key, 3000)}}},
		"long":      {refusalOf(http.StatusForbidden, strings.Repeat("x"+c.key, 3000))},
		"malformed": {{Raw: []string{"data: {\"" + c.key + "\": \n\n"}}},
		"no stream": {{Raw: []string{"<html>" + c.key}, Type: "text/html"}},
		"cut":       {{Text: "It was", Break: &llmtest.Break{After: 2, Fault: &llmtest.Failure{Status: 400, Message: c.key}}}},
	}
}

func refusalOf(status int, message string) llmtest.Turn {
	return llmtest.Turn{Failure: &llmtest.Failure{Status: status, Message: message}}
}

const secretFlow = `
weir: 1
name: canary
context: {model: %s, system: Be brief.}
inputs: {say: {type: text, required: true}}
nodes:
  say: {type: llmRequest, in: {message: "{{ run.inputs.say }}"}}
  again: {type: llmRequest, after: say, in: {message: "And again."}}
outputs: {text: "{{ again.text }}"}
`

// exercise runs flows well and badly, in every form of output, and tells of
// them in every way.
func (c *secretTest) exercise(model string) {
	c.write("flow.yaml", fmt.Sprintf(secretFlow, model))
	run := func(code int, id string, more ...string) {
		c.weir(code, append([]string{"run", "flow.yaml", "-i", "say=Hello", "--id", id, "-v"}, more...)...)
	}
	run(0, "good", "--json", "--record", "calls.jsonl")
	if len(c.model.Requests()) != 2 {
		c.Fatalf("%d requests", len(c.model.Requests()))
	}
	run(0, "same", "--events", "--replay", "calls.jsonl")
	// A passing failure is logged, and tried again.
	c.model.Script(llmtest.Turn{Failure: &llmtest.Failure{Status: 500, Message: "Oh " + c.key}})
	run(0, "passing", "--events", "--record", "calls.jsonl")
	for name, turns := range c.echoingTurns() {
		if testing.Short() && name != "refused" && name != "long" && name != "malformed" {
			continue
		}
		c.model.Script(turns...)
		id := strings.ReplaceAll(name, " ", "-")
		if name == "malformed" || name == "no stream" || name == "cut" { // some of these are tried again
			c.weirIgnoringCode("run", "flow.yaml", "-i", "say=Hello", "--id", id, "-v", "--json", "--record", "calls.jsonl")
		} else {
			run(1, id, "--json", "--record", "calls.jsonl")
		}
		c.weir(0, "show", id, "--json")
		c.weir(0, "show", id, "--events")
		c.weir(0, "show", id, "--node", "say", "--view")
	}
	c.readRun("good")
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"runs"}, {"runs", "--json"}, {"validate", "flow.yaml"}} {
		c.weirIgnoringCode(args...)
	}
}

// weirIgnoringCode is weir where the exit code does not matter.
func (c *secretTest) weirIgnoringCode(args ...string) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "weir", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		c.Fatal(err)
	}
	c.search("the output of weir "+strings.Join(args, " "), out)
	c.searchFiles()
}

// readRun shows a run in every way.
func (c *secretTest) readRun(id string) {
	for _, args := range [][]string{
		{},
		{"--json"},
		{"--events"},
		{"--node", "say"},
		{"--node", "say", "--json"},
		{"--node", "say", "--view"},
		{"--node", "say", "--view", "--json"},
		{"--chain"},
		{"--chain", "--json"},
		{"--node", "say", "--diff"},
	} {
		c.weir(0, append([]string{"show", id}, args...)...)
	}
	c.weir(0, "verify", id, "--json")
	c.weir(0, "export", id, "-o", "run.weir")
	c.weir(0, "export", id, "-o", "-")
}

func TestProviderKeysAreNeverWrittenOrPrinted(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(*secretTest) string{
		"openai by the environment": func(c *secretTest) string {
			c.env = append(c.env, "OPENAI_API_KEY="+c.key, "OPENAI_BASE_URL="+c.model.URL)
			return "openai/gpt-4o"
		},
		"anthropic by the environment": func(c *secretTest) string {
			c.env = append(c.env, "ANTHROPIC_API_KEY="+c.key, "ANTHROPIC_BASE_URL="+c.model.Root)
			return "anthropic/claude-sonnet-4-5"
		},
		"gemini by the environment": func(c *secretTest) string {
			c.env = append(c.env, "GOOGLE_API_KEY="+c.key, "GOOGLE_GEMINI_BASE_URL="+c.model.Root)
			return "gemini/gemini-2.5-flash"
		},
		"responses by a variable of its own": func(c *secretTest) string {
			c.env = append(c.env, "WORK_KEY="+c.key)
			c.write(".weir/config.yaml", "providers: {work: {type: openai, api: responses, baseURL: '"+c.model.URL+"', apiKeyEnv: WORK_KEY}}")
			return "work/gpt-4o"
		},
		"a compatible server by a file": func(c *secretTest) string { return c.runFromFile("openai-compatible", c.model.URL, "llama") },
		"anthropic by a file":           func(c *secretTest) string { return c.runFromFile("anthropic", c.model.Root, "claude-sonnet-4-5") },
		"gemini by a file":              func(c *secretTest) string { return c.runFromFile("gemini", c.model.Root, "gemini-2.5-flash") },
	} {
		// Under the race detector each client once.
		if testing.Short() && name != "openai by the environment" && name != "anthropic by a file" && name != "gemini by a file" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSecretTest(t)
			c.exercise(setup(c))
			if c.found < 80 {
				t.Errorf("only %d places were looked at", c.found)
			}
		})
	}
}

// runFromFile keeps the key in a file elsewhere.
func (c *secretTest) runFromFile(kind, base, model string) string {
	file := filepath.Join(c.TempDir(), "key")
	if err := os.WriteFile(file, []byte(c.key+"\n"), 0o600); err != nil {
		c.Fatal(err)
	}
	c.write(".weir/config.yaml", fmt.Sprintf("providers: {work: {type: %s, baseURL: %q, key: {file: %q}}}", kind, base, file))
	return "work/" + model
}

func TestKeyIsNotInDatabaseDuringCall(t *testing.T) {
	t.Parallel()
	c := newSecretTest(t)
	c.env = append(c.env, "OPENAI_API_KEY="+c.key, "OPENAI_BASE_URL="+c.model.URL)
	c.write("flow.yaml", fmt.Sprintf(secretFlow, "openai/gpt-4o"))
	logged := false
	c.model.Answer(func(*llmtest.Request) llmtest.Turn {
		c.searchFiles()
		info, err := os.Stat(filepath.Join(c.dir, ".weir", "weir.db-wal"))
		logged = logged || err == nil && info.Size() > 0
		return llmtest.Text("Yes.")
	})
	c.weir(0, "run", "flow.yaml", "-i", "say=Hello", "--record", "calls.jsonl")
	if !logged {
		t.Error("the log of the database was never there to be looked at")
	}
}

func TestToolKeysAreNeverWrittenOrPrinted(t *testing.T) {
	t.Parallel()
	c := newSecretTest(t)
	c.model.APIKey = ""
	// A server that says back what it is sent, as servers do when they are wrong.
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "you sent %v", r.Header)
	}))
	t.Cleanup(mirror.Close)
	c.env = append(c.env, "CRM="+c.key)
	c.write("says", "Says it again.")
	c.write(".weir/config.yaml", fmt.Sprintf(`
providers: {local: {baseURL: %q}}
http: {allowPrivate: ["127.0.0.1"]}
secrets: {crm: {env: CRM}}
tools:
  http:
    - {name: mirror, url: %q, headers: {Authorization: "Bearer {{ secrets.crm }}"}}
  mcp:
    files: {command: toolserver, args: [says], env: {MARK: {env: CRM}}, tools: [echo]}
`, c.model.URL, mirror.URL))
	c.write("flow.yaml", `
weir: 1
name: tools
context: {model: local/llama}
nodes:
  pick: {type: tools}
  say: {type: llmRequest, in: {tools: "{{ pick.tools }}", message: "call mirror {}"}}
  and: {type: llmRequest, after: say, in: {tools: "{{ pick.tools }}", message: "call mcp__files__echo {\"text\": \"mark: \"}"}}
outputs: {first: "{{ say.text }}", second: "{{ and.text }}"}
`)
	c.weirIgnoringCode("tools")
	c.weir(0, "tools", "accept", "files")
	out := c.weir(0, "run", "flow.yaml", "--id", "r", "-v", "--record", "calls.jsonl")
	for _, want := range []string{"Bearer [secret crm]", "mark: [secret"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	c.readRun("r")
	c.weir(0, "show", "r", "--node", "and", "--view")
	c.weir(0, "tools", "--json")
	c.weirIgnoringCode("doctor")
}
