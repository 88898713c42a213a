package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
)

// newCommandModelServer starts a server of models, on the wires of all vendors, that does
// what it is told: to "call TOOL ARGUMENTS" it calls that tool, a line a call,
// to anything else, and to the result of a tool, it says it back. The first time
// that it is told to be busy, it is.
func newCommandModelServer() *llmtest.Server {
	s := llmtest.Start()
	var busy atomic.Bool
	s.Answer(func(r *llmtest.Request) llmtest.Turn {
		last := r.Messages[len(r.Messages)-1]
		if last.Text == "Be busy." && busy.CompareAndSwap(false, true) {
			return llmtest.Turn{Failure: &llmtest.Failure{Status: http.StatusTooManyRequests, Message: "one at a time"}}
		}
		turn := llmtest.Turn{Text: "You said: " + last.Text, Usage: llm.Usage{Input: 1000, Output: 100}}
		if last.Role == convo.Tool {
			turn.Text = "The tool said: " + last.Text
			return turn
		}
		for i, line := range strings.Split(last.Text, "\n") {
			if rest, ok := strings.CutPrefix(line, "call "); ok {
				name, arguments, _ := strings.Cut(rest, " ")
				id := fmt.Sprintf("call_%d_%d", len(r.Messages), i)
				turn.Calls = append(turn.Calls, convo.Call{ID: id, Name: name, Arguments: arguments})
				turn.Text = ""
			}
		}
		return turn
	})
	return s
}

// toolServer is an MCP server over stdio, a program of the tests' own. What its
// tool says of itself is the first argument, or what the file of that name
// holds; it notes each start in the file "started".
func toolServerMain() {
	says := os.Args[1]
	if b, err := os.ReadFile(says); err == nil {
		says = string(b)
	}
	log, err := os.OpenFile("started", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(log, os.Getpid())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "tests", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: strings.TrimSpace(says)},
		func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			text := in.Text + os.Getenv("MARK")
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
