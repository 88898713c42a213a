package proof

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
	"github.com/weir-run/weir/tool"
)

// biased answers as a vendor does whose tokens are more than what is estimated,
// and reports them.
type biased struct {
	*host
	vendor vendor
	more   int // per cent of the counter's tokens
	real   []int
	cuts   []bool // that request's view cut again
}

func (b *biased) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	resp, err := b.host.ModelCall(req, do)
	if err != nil {
		return nil, err
	}
	v := b.vendor
	v.factor = b.more
	resp.Usage.Input = v.tokens(req)
	b.real = append(b.real, resp.Usage.Input)
	b.cuts = append(b.cuts, req.Manifest != nil && req.Manifest.Reason != "")
	return resp, nil
}

// converse holds a conversation in a context, turn by turn.
func (b *biased) converse(t *testing.T, main *convo.Manager, tools []*tool.Tool, ms []convo.Message) {
	t.Helper()
	s := serviceOf(b.vendor)
	for i, m := range ms {
		if m.Role != convo.User {
			continue
		}
		end := i + 1
		for end < len(ms) && ms[end].Role != convo.User {
			end++
		}
		b.host = newHost(ms[i+1 : end])
		b.textOnly = true
		if _, err := s.Turn(t.Context(), b, llm.Turn{Context: main, Message: &m, Tools: tools, MaxSteps: 100}); err != nil {
			t.Fatal(err)
		}
	}
}

// overflows returns the first request with a cut, how many had one, and how many were
// over the room before the first and after.
func (b *biased) overflows(room int) (first, cuts, before, after int) {
	first = -1
	for i, n := range b.real {
		if b.cuts[i] {
			if cuts++; first < 0 {
				first = i
			}
		}
		switch {
		case n <= room:
		case first < 0:
			before++
		default:
			after++
		}
	}
	return first, cuts, before, after
}

// TestHigherTokenCountOfProviderIsUsed: the server counts 30 % more than is
// estimated at first. From the cut on that follows its first reports, every
// request is under the window as the vendor counts.
func TestHigherTokenCountOfProviderIsUsed(t *testing.T) {
	t.Parallel()
	data := read(t)
	ms := data.longest(600)
	for _, v := range vendors(t)[1:] {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			more := v.factor * 130 / 100
			main := convo.NewManager(convo.Context{ID: "main", Settings: convo.Settings{
				System: data.system, Model: v.name + "/" + v.model, Window: window, Reserve: 2000,
			}}, true)
			b := &biased{vendor: v, more: more}
			b.converse(t, main, data.runnable(), ms)
			first, cuts, before, over := b.overflows(window - 2000)
			marks := main.Get().Marks
			t.Logf("%d requests, %d cuts, the first at %d; %d over the room before it, %d after; factor %d, true %d",
				len(b.real), cuts, first, before, over, marks.Factor, more)
			if over > 0 || cuts < 3 {
				t.Errorf("%d requests are over the room after the first cut, %d cuts", over, cuts)
			}
			if before == 0 {
				t.Error("no request was over the room before the first cut: the test says nothing")
			}
			if d := marks.Factor - more; d < -6 || d > 6 {
				t.Errorf("the factor is %d, and %d is true", marks.Factor, more)
			}
		})
	}
}

// caller makes the calls, by the provider.
type caller struct{ *host }

func (c caller) ModelCall(req *llm.Request, do func(context.Context, string) (*llm.Response, error)) (*llm.Response, error) {
	c.sent = append(c.sent, req)
	return do(context.Background(), fmt.Sprint("key", len(c.sent)))
}

// TestOverlongViewIsReduced: a server has a smaller window than
// it is known for, and says so by its wire. The request is made smaller until
// the server takes it.
func TestOverlongViewIsReduced(t *testing.T) {
	t.Parallel()
	data := read(t)
	v := vendors(t)[0]
	v.name = "local"
	whole := 0
	ms := data.longest(150)
	for _, m := range ms {
		whole += v.message(m)
	}
	for _, window := range []int{whole * 9 / 10, whole * 6 / 10, whole * 4 / 10} {
		s := llmtest.New(t)
		s.Answer(func(req *llmtest.Request) llmtest.Turn {
			n := 0
			for _, m := range req.Messages {
				n += v.message(m)
			}
			if n <= window {
				return llmtest.Text("Done.")
			}
			return llmtest.Turn{Failure: &llmtest.Failure{
				Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "context_length_exceeded",
				Message: fmt.Sprintf("This model's maximum context length is %d tokens.", window),
			}}
		})
		service := llm.NewService(llm.Options{Providers: map[string]llm.Provider{
			"local": openai.New(openai.Options{BaseURL: s.URL, API: openai.Chat}),
		}})
		main := convo.Context{ID: "main", Settings: convo.Settings{Model: "local/some-model"}}
		main.History = main.History.Append(ms...)
		h := caller{newHost(nil)}
		r, err := service.Turn(t.Context(), h, llm.Turn{
			Context: convo.NewManager(main, true), Message: &convo.Message{Role: convo.User, Text: "Well?"}, Tools: []*tool.Tool{{Name: "look"}},
		})
		if err != nil || r.Text != "Done." {
			t.Errorf("a server takes %d of %d tokens: %v", window, whole, err)
			continue
		}
		var sizes []string
		for _, req := range h.sent {
			sizes = append(sizes, fmt.Sprint(v.tokens(req)))
		}
		t.Logf("a server takes %d tokens, was sent %s", window, strings.Join(sizes, ", "))
	}
}
