package llm

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// isForced reports whether the model must call one of certain tools and has not done so.
func (t *turn) isForced() bool { return len(t.MustCall) > 0 && !t.callsForced(t.result.Calls) }

func (t *turn) callsForced(calls []convo.Call) bool {
	return slices.ContainsFunc(calls, func(c convo.Call) bool { return slices.Contains(t.MustCall, c.Name) })
}

// force makes a request one for a call of the tools that must be called.
func (t *turn) force(req *Request) {
	req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(tl Tool) bool { return !slices.Contains(t.MustCall, tl.Name) })
	req.ToolChoice, req.Schema = "required", nil
	if len(t.MustCall) == 1 {
		req.ToolChoice = t.MustCall[0]
	}
}

// checkForced returns the error of an answer without a call that the model must make.
func (t *turn) checkForced(resp *Response) error {
	if t.callsForced(resp.Message.Calls) {
		return nil
	}
	return &Error{Code: engine.CodeModelAnswer, Message: "it must call " + strings.Join(t.MustCall, " or ")}
}
