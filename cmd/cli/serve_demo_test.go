package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTheDemoAnswersInEveryProtocol starts weir serve --demo and uses what it prints.
func TestTheDemoAnswersInEveryProtocol(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	p := &cli{terminal: terminal{in: strings.NewReader(""), out: io.Discard, err: write}, env: func(string) (string, bool) { return "", false }}
	ended := make(chan int, 1)
	go func() {
		ended <- p.command(ctx, []string{"serve", "--demo", "--addr", "127.0.0.1:0"})
		_ = write.Close() // never fails
	}()
	defer func() {
		stop()
		_, _ = io.Copy(io.Discard, read) // until the command has ended
		if code := <-ended; code != 0 {
			t.Errorf("exit %d", code)
		}
	}()
	var url, token, said string
	lines := bufio.NewScanner(read)
	for lines.Scan() && !strings.Contains(lines.Text(), "AG-UI") {
		said += lines.Text() + "\n"
		if m := regexp.MustCompile(`page and API +(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
		if m := regexp.MustCompile(`token +(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			token = m[1]
		}
	}
	if url == "" || token == "" {
		t.Fatal(said)
	}
	for path, x := range map[string]struct{ body, want string }{
		"/v1/chat/completions": {`{"model":"talk","messages":[{"role":"user","content":"x"}]}`, "Berth 4 is free until noon."},
		"/v1/runs?wait=60":     {`{"flow":"order","inputs":{"message":"40 chairs"}}`, "Approve the order?"},
		"/agui/order":          {`{"threadId":"t","runId":"1","messages":[{"id":"1","role":"user","content":"40 chairs"}]}`, `"outcome":{"interrupts":[`},
		"/mcp":                 {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","arguments":{"message":"x"}}}`, "Berth 4 is free until noon."},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		q.Header.Set("Authorization", "Bearer "+token)
		a, err := new(http.Client).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close() // it was read
		if err != nil || a.StatusCode >= 300 || !strings.Contains(string(text), x.want) {
			t.Errorf("%s: %d %s (%v)", path, a.StatusCode, text, err)
		}
	}
}

// TestFlowsAreToolsOnStandardInput has the SDK's client start weir mcp.
func TestFlowsAreToolsOnStandardInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flow := `weir: 1
name: ask
nodes:
  ask: {type: userInput, with: {prompt: "Approve?", schema: {type: string, enum: [approve, reject]}}}
outputs: {decision: "{{ ask.text }}"}
`
	if err := os.WriteFile(filepath.Join(dir, "ask.yaml"), []byte(flow), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("weir") // of the scripts' tests: this program
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "mcp", "ask.yaml")
	c.Dir = dir
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "approve"}}, nil
		},
	})
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the program has ended
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(r)
	if !strings.Contains(string(text), `"decision":"approve"`) {
		t.Error(string(text))
	}
}
