package convo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/convo"
)

// parseSketch writes messages as "u", "s", "a" (with text), "a1,2" (with text and
// calls 1 and 2), "-1" (calls only), "-" (nothing) and "t1" (result of call 1).
func parseSketch(s string) []convo.Message {
	var ms []convo.Message
	for i, f := range strings.Fields(s) {
		m := convo.Message{ID: fmt.Sprint(i)}
		switch kind, rest := f[:1], f[1:]; kind {
		case "u":
			m.Role, m.Text = convo.User, "hi"
		case "s":
			m.Role, m.Text = convo.System, "be kind"
		case "t":
			m.Role, m.CallID, m.Text = convo.Tool, rest, "done"
		case "a", "-":
			m.Role = convo.Assistant
			if kind == "a" {
				m.Text = "well"
			}
			for _, id := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
				m.Calls = append(m.Calls, convo.Call{ID: strings.Trim(id, "?"), Name: "f", Arguments: "{}"})
			}
		}
		ms = append(ms, m)
	}
	return ms
}

func formatSketch(ms []convo.Message) string {
	var out []string
	for _, m := range ms {
		switch m.Role {
		case convo.Tool:
			out = append(out, "t"+m.CallID)
		case convo.Assistant:
			s := "-"
			if m.Text != "" {
				s = "a"
			}
			var ids []string
			for _, c := range m.Calls {
				ids = append(ids, c.ID)
			}
			out = append(out, s+strings.Join(ids, ","))
		default:
			out = append(out, string(m.Role[:1]))
		}
	}
	return strings.Join(out, " ")
}

func TestRepairDropsInvalidMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"nothing wrong", "s u a1,2 t2 t1 a u -3 t3 a", "s u a1,2 t2 t1 a u -3 t3 a"},
		{"call without result", "u a1", "u a"},
		{"nothing but such a call", "u -1 u", "u u"},
		{"one of two calls", "u a1,2 t2 a", "u a2 t2 a"},
		{"result without call", "u t1 a", "u a"},
		{"result of another call", "u a1 t9", "u a"},
		{"result too late", "u a1 u t1", "u a u"},
		{"second result", "u a1 t1 t1", "u a1 t1"},
		{"second call of one id", "u a1,1 t1", "u a1 t1"},
		{"call without id", "u a?,1 t1", "u a1 t1"},
		{"ids used again later", "u a1 t1 a1 t1", "u a1 t1 a1 t1"},
		{"empty answer", "u - u", "u u"},
	} {
		in := parseSketch(c.in)
		before := slices.Clone(in)
		out := convo.Repair(in)
		if got := formatSketch(out); got != c.want {
			t.Errorf("%s: %q is repaired to %q, want %q", c.name, c.in, got, c.want)
		}
		if err := convo.Validate(out); err != nil {
			t.Errorf("%s: what is repaired is still wrong: %v", c.name, err)
		}
		if (convo.Validate(in) == nil) != (c.in == c.want) {
			t.Errorf("%s: %q is said to be %v", c.name, c.in, convo.Validate(in))
		}
		if !sameMessages(in, before) {
			t.Errorf("%s: repairing changed its input to %q", c.name, formatSketch(in))
		}
	}
}

func TestRepairIsValidAndIdempotent(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"s", "u", "a", "-", "a1", "-1,2", "a2,3", "-1,1", "t1", "t2", "t3", "a?"})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "messages"), " ")
		out := convo.Repair(parseSketch(in))
		if err := convo.Validate(out); err != nil {
			t.Fatalf("%q is repaired to %q: %v", in, formatSketch(out), err)
		}
		if again := convo.Repair(out); !sameMessages(again, out) {
			t.Fatalf("%q is repaired to %q and then to %q", in, formatSketch(out), formatSketch(again))
		}
		i := 0
		for _, m := range parseSketch(in) {
			if i < len(out) && out[i].ID == m.ID {
				i++
			} else if m.Role == convo.User || m.Role == convo.System || m.Text != "" && m.Role == convo.Assistant {
				t.Fatalf("%q is repaired to %q: words were lost", in, formatSketch(out))
			}
		}
		if i != len(out) {
			t.Fatalf("%q is repaired to %q: not in order", in, formatSketch(out))
		}
	})
}

func TestNativeBlocksAreDroppedWithTheirCall(t *testing.T) {
	t.Parallel()
	ms := parseSketch("u a1,2 t1")
	ms[1].Native, ms[1].Provider = []byte(`[1]`), "openai"
	out := convo.Repair(ms)
	if out[1].Native != nil || out[1].Provider != "" {
		t.Error("native blocks still hold the call without result")
	}
	ms = append(ms, parseSketch("t2 t9")...)
	if out = convo.Repair(ms); out[1].Native == nil || out[1].Provider != "openai" {
		t.Error("native blocks were lost though all calls stay")
	}
}

func TestValidateReportsPositionAndCause(t *testing.T) {
	t.Parallel()
	err := convo.Validate(parseSketch("u a1 u"))
	if !errors.Is(err, convo.ErrUnpaired) || err.Error() != `message 2: tool calls and results do not pair: call "1" has no result` {
		t.Errorf("the error is %v", err)
	}
	if err := convo.Validate([]convo.Message{{Role: "robot"}}); !errors.Is(err, convo.ErrUnknownRole) {
		t.Errorf("the error is %v", err)
	}
}
