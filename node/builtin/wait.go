package builtin

import (
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
)

// waitNode waits for a time.
type waitNode struct {
	For   template `json:"for"`
	Until template `json:"until"`
}

func waitType() node.Type {
	return define[waitNode](&flow.TypeSpec{
		Name:      "wait",
		Category:  "control",
		OnlyWaits: true,
		Summary:   "Waits for a while, or until a moment.",
		Doc: `The wait is durable and costs nothing: the process may end, and whichever process holds the
run continues at that time. A time in the past ends the wait at once.

| setting | what |
|---|---|
| ` + "`for`" + ` | how long, from the node's start: 90s, 5m, 1h30m, or a number of seconds; a template |
| ` + "`until`" + ` | a moment as RFC 3339 writes it, 2030-01-31T09:00:00Z; a template |

Set one of them. The input ` + "`value`" + ` is passed on to the output ` + "`value`" + ` afterwards. Times are kept to the
millisecond.`,
		Ports: flow.Ports{
			In:    []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "Passed on when the wait ends."}},
			Out:   []flow.Port{{Name: "value", Type: flow.TypeAny, Description: "What came in."}},
			AnyIn: true,
		},
		Settings: objectSchema(map[string]any{
			"for":   withRole(durationSchema("How long to wait."), "template"),
			"until": templateSchema("string", "The moment to wait for, RFC 3339."),
		}),
		Check: func(with map[string]any) []flow.Problem {
			if (with["for"] == nil) == (with["until"] == nil) {
				return []flow.Problem{settingProblem("", "expected one of for and until")}
			}
			return nil
		},
		PassThrough: true,
		Examples: []flow.Example{{
			Name: "a moment that is past",
			Flow: `
weir: 1
name: pause
nodes:
  make: {type: template, with: {text: "done"}}
  pause: {type: wait, in: {value: "{{ make.text }}"}, with: {until: "2020-01-01T00:00:00Z"}}
outputs: {word: "{{ pause.value }}"}
`,
			Outputs: map[string]any{"word": "done"},
		}, {
			Name: "a short while",
			Flow: `
weir: 1
name: nap
nodes:
  nap: {type: wait, with: {for: 5ms}}
  wake: {type: template, after: nap, with: {text: "awake"}}
outputs: {word: "{{ wake.text }}"}
`,
			Outputs: map[string]any{"word": "awake"},
		}},
	})
}

// finish refuses a fixed time that cannot be read before the flow runs.
func (n *waitNode) finish() error {
	if v, ok := n.For.literal(); ok {
		if _, err := durationOf(v); err != nil {
			return fmt.Errorf("setting \"for\": %w", err)
		}
	}
	if v, ok := n.Until.literal(); ok {
		if _, err := parseTime(v); err != nil {
			return fmt.Errorf("setting \"until\": %w", err)
		}
	}
	return nil
}

// Run waits and outputs the value.
func (n *waitNode) Run(ctx *node.Ctx) error {
	due, err := n.due(ctx)
	if err != nil {
		return err
	}
	if due.After(ctx.Now()) {
		_, _, err := ctx.Wait("time", engine.Interrupt{Kind: engine.AwaitTimer, Due: due.UnixMilli()})
		if err != nil {
			return err
		}
	}
	return outputValue(ctx)
}

func (n *waitNode) due(ctx *node.Ctx) (time.Time, error) {
	if n.Until.isSet() {
		v, err := n.Until.value(ctx, "until")
		if err != nil {
			return time.Time{}, err
		}
		t, err := parseTime(v)
		if err != nil {
			return time.Time{}, permanentError(CodeExpression, "until: %v", err)
		}
		return t, nil
	}
	v, err := n.For.value(ctx, "for")
	if err != nil {
		return time.Time{}, err
	}
	d, err := durationOf(v)
	if err != nil {
		return time.Time{}, permanentError(CodeExpression, "for: %v", err)
	}
	// A part of a millisecond is waited for too: timers are not early.
	return ctx.Now().Add(d + time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// parseTime reads a moment from a value.
func parseTime(v engine.Value) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, fmt.Errorf("%s is not a moment: write it like 2030-01-31T09:00:00Z", describeValue(v))
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a moment: write it like 2030-01-31T09:00:00Z", excerpt.Bytes(s, maxValueBytes))
	}
	return t, nil
}
