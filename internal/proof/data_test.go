package proof

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/internal/shareddata"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
	"github.com/weir-run/weir/tool"
)

// corpus is the recorded conversations with the tools that were called in them.
type corpus struct {
	system string
	all    []conversation
	tools  []llm.Tool
}

// conversation is one of them without its system message.
type conversation struct {
	id       string
	messages []convo.Message
}

// read reads the corpus, or skips. Every other conversation has its calls, made
// one at a time, put together to up to three at once; of two in three some
// messages are pinned.
func read(tb testing.TB) corpus {
	tb.Helper()
	p, err := recorded.FromConversations(shareddata.Open(tb, shareddata.Airline))
	if err != nil {
		tb.Fatal(err)
	}
	c := corpus{}
	for n, r := range p.Conversations() {
		c.system = r.Messages[0].Text
		ms := slices.Clone(r.Messages[1:])
		c.declare(tb, ms)
		if n%2 == 1 {
			ms = mergeParallel(ms)
		}
		if n%3 > 0 {
			pinFirst(ms)
		}
		c.all = append(c.all, conversation{r.ID, ms})
	}
	return c
}

// declare adds the tools that messages call, with a schema of their arguments.
func (c *corpus) declare(tb testing.TB, ms []convo.Message) {
	tb.Helper()
	for _, m := range ms {
		for _, call := range m.Calls {
			if slices.ContainsFunc(c.tools, func(t llm.Tool) bool { return t.Name == call.Name }) {
				continue
			}
			var arguments map[string]any
			if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
				tb.Fatal(err)
			}
			properties := map[string]any{}
			for name, v := range arguments {
				properties[name] = schemaOf(v)
			}
			c.tools = append(c.tools, llm.Tool{
				Name: call.Name, Description: "Does what the name says, by the airline's policy.",
				Parameters: map[string]any{"type": "object", "properties": properties},
			})
		}
	}
}

func schemaOf(v any) map[string]any {
	switch v := v.(type) {
	case string:
		return map[string]any{"type": "string", "description": "As the customer said it."}
	case float64:
		return map[string]any{"type": "number"}
	case []any:
		return map[string]any{"type": "array", "items": schemaOf(v[0])}
	case map[string]any:
		properties := map[string]any{}
		for name, e := range v {
			properties[name] = schemaOf(e)
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	return map[string]any{"type": "boolean"}
}

// runnable returns the tools as a turn takes them; the host answers for them.
func (c *corpus) runnable() []*tool.Tool {
	var out []*tool.Tool
	for _, t := range c.tools {
		out = append(out, &tool.Tool{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters, EndsTurn: t.Name == "transfer_to_human_agents",
		})
	}
	return out
}

// mergeParallel makes calls that follow each other calls of one answer.
func mergeParallel(ms []convo.Message) []convo.Message {
	var out []convo.Message
	var calls []convo.Call
	var results []convo.Message
	flush := func() {
		if len(calls) > 0 {
			out = append(append(out, convo.Message{Role: convo.Assistant, Calls: calls}), results...)
		}
		calls, results = nil, nil
	}
	for _, m := range ms {
		switch {
		case len(m.Calls) > 0 && m.Text == "":
			if len(calls) == 3 {
				flush()
			}
			for _, c := range m.Calls {
				c.ID += "_" + strconv.Itoa(len(out)+len(calls)) // some ids come twice
				calls = append(calls, c)
			}
		case m.Role == convo.Tool && len(calls) > len(results):
			m.CallID = calls[len(results)].ID
			results = append(results, m)
		default:
			flush()
			out = append(out, m)
		}
	}
	flush()
	return out
}

// pinFirst pins the second thing that the customer says, and the first call.
func pinFirst(ms []convo.Message) {
	users, calls := 0, 0
	for i, m := range ms {
		switch {
		case m.Role == convo.User:
			users++
			ms[i].Pinned = users == 2
		case len(m.Calls) > 0:
			calls++
			ms[i].Pinned = calls == 1
		}
	}
}

// messageSource gives the messages of a context back as a store does, from JSON.
type messageSource []byte

// Load decodes the messages from up to to.
func (s messageSource) Load(_ string, from, to int) ([]convo.Message, error) {
	var all []convo.Message
	if err := json.Unmarshal(s, &all); err != nil {
		return nil, err
	}
	return all[from:to], nil
}

// restored returns a context as another process would find it.
func restored(tb testing.TB, c convo.Context) convo.Context {
	tb.Helper()
	messages, err := json.Marshal(c.History)
	if err != nil {
		tb.Fatal(err)
	}
	marks, err := json.Marshal(c.Marks)
	if err != nil {
		tb.Fatal(err)
	}
	n, versions := c.History.Len(), c.History.Versions()
	c.Marks = convo.Marks{}
	if err := json.Unmarshal(marks, &c.Marks); err != nil {
		tb.Fatal(err)
	}
	return convo.Restore(c, n, versions, messageSource(messages))
}
