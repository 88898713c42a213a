package llmtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/convo"
)

// sameHistory fails unless the newest request has the messages of want, as far as the API can represent them.
func (x *conformanceTest) sameHistory(t *testing.T, want []convo.Message) {
	t.Helper()
	equalJSON(t, "the history", x.plain(x.Last().Messages), x.plain(want))
}

// sameCalls fails unless an answer's calls equal want.
func (x *conformanceTest) sameCalls(t *testing.T, got, want []convo.Call) {
	t.Helper()
	equalJSON(t, "the calls", x.calls(got), x.calls(want))
}

// plain removes from messages what no API transmits, and what the subject's API cannot represent.
func (x *conformanceTest) plain(messages []convo.Message) []convo.Message {
	out := make([]convo.Message, 0, len(messages))
	for _, m := range messages {
		m = convo.Message{Role: m.Role, Text: m.Text, Parts: m.Parts, Calls: x.calls(m.Calls), CallID: m.CallID}
		if x.lacks(Empty) && m.Role != convo.Tool && strings.TrimSpace(m.Text) == "" && len(m.Parts)+len(m.Calls) == 0 {
			continue
		}
		last := len(out) - 1
		if last < 0 || !x.lacks(Separate) || m.Role == convo.Tool || out[last].Role != m.Role || len(out[last].Calls) > 0 {
			out = append(out, m)
			continue
		}
		if out[last].Text != "" && m.Text != "" {
			out[last].Text += "\n"
		}
		out[last].Text += m.Text
		out[last].Parts = append(slices.Clip(out[last].Parts), m.Parts...)
		out[last].Calls = m.Calls
	}
	return out
}

// calls have normalized arguments unless the API transmits them as text.
func (x *conformanceTest) calls(calls []convo.Call) []convo.Call {
	var out []convo.Call
	for _, c := range calls {
		if x.lacks(Verbatim) {
			c.Arguments = sorted(c.Arguments)
		}
		out = append(out, c)
	}
	return out
}

// sorted returns JSON without white space and with sorted keys; other text is unchanged.
func sorted(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	return encode(v)
}
