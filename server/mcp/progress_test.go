package mcp_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server/servertest"
)

// notified is what a client got of notifications, by token.
type notified struct {
	mu    sync.Mutex
	texts map[any][]string
	// latest is the progress of the newest notification.
	latest float64
	news   chan string
}

func (n *notified) take(p *sdk.ProgressNotificationParams) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts[p.ProgressToken] = append(n.texts[p.ProgressToken], p.Message)
	if p.Progress <= n.latest || p.Total != 0 {
		n.texts[p.ProgressToken] = append(n.texts[p.ProgressToken], "progress that does not ascend")
	}
	n.latest = p.Progress
	n.news <- p.Message
}

const progressFlow = `weir: 1
name: slow
context: {model: fake/m}
nodes:
  first: {type: template, with: {text: x}}
  answer: {type: llmRequest, in: {message: "{{ first.text }}"}}
  ask: {type: userInput, after: answer, with: {prompt: Name?, schema: {type: object, properties: {name: {type: string}}, required: [name]}}}
  last: {type: template, in: {name: "{{ ask.value.name }}"}, with: {text: "{{ inputs.name }}"}}
outputs: {text: "{{ last.text }}"}
`

// TestACallReportsItsProgress has a model wait until the client has been notified of the nodes before it, answers a question in the
// same call, and asks for no notifications in another.
func TestACallReportsItsProgress(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := open(t, servertest.Options{
		Flows: map[string]string{"slow.yaml": progressFlow},
		Answer: func(*llmtest.Request) llmtest.Turn {
			<-release
			return llmtest.Turn{Text: "x"}
		},
	})
	n := &notified{texts: map[any][]string{}, news: make(chan string, 64)}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { n.take(r.Params) },
	})
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: p.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer("")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may be gone
	params := &sdk.CallToolParams{Name: "slow"}
	params.SetProgressToken("t1")
	ended := make(chan string)
	go func() {
		r, err := s.CallTool(t.Context(), params)
		if err != nil {
			t.Error(err)
		}
		ended <- textOf(r)
	}()
	for text := range n.news { // while the model waits
		if text == "answer started" {
			break
		}
	}
	close(release)
	if text := <-ended; text != "Ada" {
		t.Errorf("the result is %q", text)
	}
	for text := range n.news { // notifications are handled on a goroutine of the client
		if text == "last completed" {
			break
		}
	}
	n.mu.Lock()
	got := slices.Clone(n.texts["t1"])
	n.mu.Unlock()
	want := "answer completed,answer started,ask completed,ask started,first completed,first started,last completed,last started"
	slices.Sort(got)
	if text := strings.Join(slices.Compact(got), ","); text != want {
		t.Errorf("%s, expected %s", text, want)
	}
	if r := call(t, s, &sdk.CallToolParams{Name: "slow"}); textOf(r) != "Ada" {
		t.Errorf("without a token: %+v", r)
	}
	if len(n.news) > 0 {
		t.Errorf("notifications without a token: %v", <-n.news)
	}
}
