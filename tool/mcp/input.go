package mcptool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
)

// maxBusyCalls is how often a call is made to a server that answers that it is busy.
const maxBusyCalls = 4

// input is what a call returns to the server that required it.
type input struct {
	state     string
	responses mcp.InputResponseMap
}

// inputOf converts a person's answers to what the server is sent.
func (r *remoteTool) inputOf(given *tool.Input) (in input, err error) {
	if given == nil {
		return in, nil
	}
	in.state, in.responses = given.State, make(mcp.InputResponseMap, len(given.Answers))
	for name, a := range given.Answers {
		if a.Declined {
			in.responses[name] = &mcp.ElicitResult{Action: "decline"}
			continue
		}
		content, ok := a.Value.(map[string]any)
		if !ok {
			return in, fmt.Errorf("the answer to the question %q is no object", name)
		}
		in.responses[name] = &mcp.ElicitResult{Action: "accept", Content: content}
	}
	return in, nil
}

// required returns what the server requires as a *tool.InputRequired. A server may ask people
// to fill in forms, and for nothing else.
func (r *remoteTool) required(result *mcp.CallToolResult) error {
	need := &tool.InputRequired{State: result.RequestState}
	if r.client.secrets.Scrub(need.State) != need.State {
		return errors.New("the server asks for input with a state that contains a secret, which would be recorded")
	}
	for _, name := range slices.Sorted(maps.Keys(result.InputRequests)) {
		form, ok := result.InputRequests[name].(*mcp.ElicitParams)
		if !ok || form.Mode != "" && form.Mode != "form" {
			return fmt.Errorf("the server asks for input that it is not given: %q is no form for a person", name)
		}
		schema, ok := form.RequestedSchema.(map[string]any)
		if !ok {
			return fmt.Errorf("the server asks for input with a form that is no JSON Schema: %q", name)
		}
		need.Questions = append(need.Questions, tool.Question{
			Name: name, Prompt: r.client.secrets.Scrub(form.Message), Schema: schema,
		})
	}
	return need
}

// callUntilAccepted makes the call. A result that requires input and asks nothing says that
// the server is busy: the call is made again with the state of that result, after a while.
func (r *remoteTool) callUntilAccepted(ctx context.Context, conn *connection, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	for wait := time.Second; ; wait *= 2 {
		result, err := conn.session.CallTool(ctx, p)
		if err != nil || !result.NeedsInput() || len(result.InputRequests) > 0 {
			return result, err
		}
		if wait >= time.Second<<(maxBusyCalls-1) {
			return nil, fmt.Errorf("the server was busy %d times", maxBusyCalls)
		}
		p.RequestState = result.RequestState
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
