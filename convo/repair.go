package convo

import (
	"errors"
	"fmt"
	"slices"
)

// ErrUnpaired means that a tool call has no result, or a result no call.
var ErrUnpaired = errors.New("tool calls and results do not pair")

// Repair returns ms without what all providers reject: tool calls without a result directly
// after their message, results without such a call, second results of a call, and empty
// assistant messages. Native blocks are removed together with a call, because they contain
// it. Nothing else changes; if there is nothing to repair, it returns ms itself.
func Repair(ms []Message) []Message {
	if Validate(ms) == nil {
		return ms
	}
	out := make([]Message, 0, len(ms))
	for i := 0; i < len(ms); {
		if ms[i].Role != Assistant {
			if ms[i].Role != Tool {
				out = append(out, ms[i])
			}
			i++
			continue
		}
		end := groupEnd(ms, i)
		out = appendGroup(out, ms[i], ms[i+1:end])
		i = end
	}
	return out
}

// groupEnd returns the position after the tool messages that follow an assistant message.
func groupEnd(ms []Message, i int) int {
	for i++; i < len(ms) && ms[i].Role == Tool; {
		i++
	}
	return i
}

// appendGroup appends a message with those of its calls that have a result, and these
// results.
func appendGroup(out []Message, m Message, results []Message) []Message {
	var calls []Call
	for _, c := range m.Calls {
		answered := slices.ContainsFunc(results, func(r Message) bool { return r.CallID == c.ID })
		if c.ID != "" && answered && !hasCall(calls, c.ID) {
			calls = append(calls, c)
		}
	}
	if len(calls) != len(m.Calls) {
		m.Calls, m.Native, m.Provider = calls, nil, ""
	}
	if m.empty() {
		return out
	}
	out = append(out, m)
	for _, r := range results {
		i := slices.IndexFunc(calls, func(c Call) bool { return c.ID == r.CallID })
		if i >= 0 {
			out = append(out, r)
			calls = slices.Delete(slices.Clone(calls), i, i+1)
		}
	}
	return out
}

func hasCall(calls []Call, id string) bool {
	return slices.ContainsFunc(calls, func(c Call) bool { return c.ID == id })
}

// empty reports whether an assistant message has no content to send.
func (m Message) empty() bool {
	return m.Text == "" && len(m.Parts) == 0 && len(m.Calls) == 0 && len(m.Native) == 0
}

// Validate returns the first thing that Repair would change: ErrUnpaired, an empty
// assistant message, or ErrUnknownRole, with its position counted from 1.
func Validate(ms []Message) error {
	for i := 0; i < len(ms); {
		m := ms[i]
		switch m.Role {
		case System, User:
			i++
			continue
		case Assistant:
		case Tool:
			return fmt.Errorf("message %d: %w: no message before it makes the call %q of this result", i+1, ErrUnpaired, m.CallID)
		default:
			return fmt.Errorf("message %d: %w %q", i+1, ErrUnknownRole, m.Role)
		}
		if m.empty() {
			return fmt.Errorf("message %d: an assistant message without content", i+1)
		}
		end := groupEnd(ms, i)
		if err := validateGroup(m.Calls, ms[i+1:end]); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		i = end
	}
	return nil
}

func validateGroup(calls []Call, results []Message) error {
	open := make([]string, 0, len(calls))
	for _, c := range calls {
		if c.ID == "" || slices.Contains(open, c.ID) {
			return fmt.Errorf("%w: the id %q of a call is empty or used twice", ErrUnpaired, c.ID)
		}
		open = append(open, c.ID)
	}
	for _, r := range results {
		i := slices.Index(open, r.CallID)
		if i < 0 {
			return fmt.Errorf("%w: the result of call %q has no call or is its second", ErrUnpaired, r.CallID)
		}
		open = slices.Delete(open, i, i+1)
	}
	if len(open) > 0 {
		return fmt.Errorf("%w: call %q has no result", ErrUnpaired, open[0])
	}
	return nil
}
