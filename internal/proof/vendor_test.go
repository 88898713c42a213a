package proof

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/anthropic"
	"github.com/weir-run/weir/llm/gemini"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/llm/openai"
	"github.com/weir-run/weir/token"
)

// unreachableURL is where no request is to go.
const unreachableURL = "http://127.0.0.1:1"

// api is one API of a vendor: how a request is written and what it must keep to.
type api struct {
	name  string
	body  func(*llm.Request) ([]byte, error)
	check func([]byte) []string
}

// vendor is a provider with its wires and how it counts.
type vendor struct {
	name, model string
	provider    llm.Provider
	counter     token.Counter
	factor      int
	models      *llm.Catalogue
	apis        []api
}

func vendors(tb testing.TB) []vendor {
	tb.Helper()
	c := llmtest.NewChecker()
	responses := openai.New(openai.Options{BaseURL: unreachableURL, API: openai.Responses})
	chat := openai.New(openai.Options{BaseURL: unreachableURL, API: openai.Chat})
	claude := anthropic.New(anthropic.Options{BaseURL: unreachableURL})
	google := gemini.New(gemini.Options{BaseURL: unreachableURL})
	out := []vendor{
		{
			name: "openai", model: "gpt-4o", provider: responses,
			apis: []api{{"responses", responses.Body, c.Responses}, {"chat", chat.Body, c.Chat}},
		},
		{
			name: "anthropic", model: "claude-sonnet-4-5", provider: claude,
			apis: []api{{"anthropic", claude.Body, c.Anthropic}},
		},
		{
			name: "gemini", model: "gemini-3-pro", provider: google,
			apis: []api{{"gemini", google.Body, func(b []byte) []string { return c.Gemini("gemini-3-pro", b) }}},
		},
	}
	models := llm.NewCatalogue()
	for i := range out {
		v := &out[i]
		v.models = models
		m, known := models.Find(v.name, v.model)
		if !known {
			tb.Fatalf("%s is not in the catalogue", v.model)
		}
		var err error
		if v.counter, err = token.NewCounter(m.Encoding, v.name); err != nil {
			tb.Fatal(err)
		}
		v.factor = int(v.counter.PriorFactor())
	}
	return out
}

// corrected is tokens of the counter as the service takes them, rounded up.
func (v *vendor) corrected(n int) int { return (n*v.factor + 99) / 100 }

// message returns what a message counts that this vendor is sent.
func (v *vendor) message(m convo.Message) int {
	if m.Provider != v.name {
		m.Native = nil
	}
	return v.corrected(v.counter.Message(m))
}

// besides is what a request takes besides its messages.
func (v *vendor) beside(system string, tools []llm.Tool) int {
	n := v.counter.System(system) + v.counter.RequestOverhead(system != "", len(tools))
	for _, t := range tools {
		n += v.counter.Tool(t.Name, t.Description, t.Parameters)
	}
	return v.corrected(n)
}

// tokens returns what a request takes, counted again.
func (v *vendor) tokens(req *llm.Request) int {
	n := v.beside(req.System, req.Tools)
	for _, m := range req.Messages {
		n += v.message(m)
	}
	return n
}

// bodies returns those of a request by all wires.
func (v *vendor) bodies(req *llm.Request) ([][]byte, error) {
	var out [][]byte
	for _, w := range v.apis {
		body, err := w.body(req)
		if err != nil {
			return nil, fmt.Errorf("%s cannot write it: %w", w.name, err)
		}
		out = append(out, body)
	}
	return out, nil
}

// written returns the bodies of a request, checked, one after another.
func (v *vendor) written(req *llm.Request) ([]byte, error) {
	bodies, err := v.bodies(req)
	if err != nil {
		return nil, err
	}
	for i, w := range v.apis {
		if problems := w.check(bodies[i]); len(problems) > 0 {
			return nil, fmt.Errorf("%s refuses it: %s\n%s", w.name, strings.Join(problems, "; "), bodies[i])
		}
	}
	return slices.Concat(bodies...), nil
}

// least returns the fewest tokens that the messages which must stay can be shown
// in: those of the system, pinned ones, the person's newest and the last group.
func (v *vendor) least(c convo.Context, strategy convo.Strategy) (int, error) {
	ms, err := c.Messages()
	if err != nil {
		return 0, err
	}
	asked := -1
	for i, m := range ms {
		if m.Role == convo.User {
			asked = i
		}
	}
	n, group := 0, 0
	for i := 0; i < len(ms); i = group {
		for group = i + 1; group < len(ms) && ms[group].Role == convo.Tool && ms[i].Role == convo.Assistant; {
			group++
		}
		stays := strategy == convo.All || i <= asked && asked < group || group == len(ms)
		for _, m := range ms[i:group] {
			stays = stays || m.Pinned || m.Role == convo.System
		}
		if stays {
			n += v.smallest(ms[i:group], c.Epoch+i, strategy)
		}
	}
	return n, nil
}

// smallest returns the fewest tokens a group can be shown in.
func (v *vendor) smallest(group []convo.Message, at int, strategy convo.Strategy) int {
	n := 0
	for _, m := range convo.Repair(group) {
		size := v.message(m)
		if m.Role == convo.Tool && strategy != convo.All {
			if m.Name == llm.ReaderTool && m.Text == "" {
				size = 10_000 // the host has not seen it; it is longer than its place holder
			}
			m.Text = fmt.Sprintf("[This result was cleared to save room: %d tokens. To read it, call weir_result with {\"result\": %d}.]", size, at)
			size = min(size, v.message(m))
		}
		n += size
	}
	return n
}
