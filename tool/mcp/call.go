package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
)

// remoteTool is one tool of a server, with its accepted definition.
type remoteTool struct {
	client    *Client
	name      string
	pin       Pin
	readOnly  bool
	arguments *tool.Arguments // nil: only the server checks the arguments
}

// call makes one call. It waits for a slot, connects if necessary, and refuses the call if
// the definition is no longer the accepted one.
func (r *remoteTool) call(ctx context.Context, call tool.Call) (string, error) {
	args, err := r.read(call.Arguments)
	if err != nil {
		return "", tool.NotMade(err)
	}
	select {
	case r.client.slots <- struct{}{}:
		defer func() { <-r.client.slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	in, err := r.inputOf(call.Input)
	if err != nil {
		return "", tool.NotMade(err)
	}
	conn, result, err := r.attempt(ctx, args, in)
	var refused *RefusedError
	if err != nil && (r.readOnly || isUnknownSession(err)) && conn != nil && ctx.Err() == nil && !isServerAnswer(err) {
		conn, result, err = r.attempt(ctx, args, in)
	}
	switch {
	case err == nil && result.NeedsInput():
		return "", r.required(result)
	case err == nil:
		text, failed := textOf(result)
		if text = r.client.secrets.Scrub(text); failed {
			return "", errors.New(text)
		}
		r.declare(call, result)
		r.returnValue(call, result)
		return text, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &refused):
		return "", tool.NotMade(refused)
	case conn == nil:
		return "", tool.NotMade(r.client.secrets.Error(err))
	case isServerAnswer(err):
		return "", r.client.secrets.Error(err)
	}
	if !r.readOnly && !isUnknownSession(err) {
		err = fmt.Errorf("%w; the call may have been acted on: %w", err, tool.ErrOutcomeUnknown)
	}
	if isUnknownSession(err) {
		return "", tool.NotMade(r.client.failure("call "+r.name, conn, err))
	}
	return "", r.client.failure("call "+r.name, conn, err)
}

// returnValue passes on the structured content of a result, without secrets.
func (r *remoteTool) returnValue(call tool.Call, result *mcp.CallToolResult) {
	if result.StructuredContent == nil || call.OnValue == nil {
		return
	}
	b, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return
	}
	d := json.NewDecoder(strings.NewReader(r.client.secrets.Scrub(string(b))))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		call.Return(v)
	}
}

// read checks the arguments.
func (r *remoteTool) read(arguments string) (map[string]any, error) {
	if r.arguments != nil {
		return r.arguments.Read(arguments)
	}
	args := map[string]any{}
	if strings.TrimSpace(arguments) == "" {
		return args, nil
	}
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	return args, nil
}

// attempt makes the call once, and again if a busy server asks for that. The connection is nil
// if the call was not sent; one that failed without an answer is closed.
func (r *remoteTool) attempt(ctx context.Context, args map[string]any, in input) (*connection, *mcp.CallToolResult, error) {
	conn, err := r.client.connection(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := r.verify(ctx, conn); err != nil {
		return nil, nil, err
	}
	result, err := r.callUntilAccepted(ctx, conn, &mcp.CallToolParams{Name: r.name, Arguments: args, InputResponses: in.responses, RequestState: in.state})
	if err != nil && ctx.Err() == nil && !isServerAnswer(err) {
		conn.endOnce.Do(func() { close(conn.ended) })
		go conn.close()
	}
	return conn, result, err
}

// verify refuses the call if the server's definition differs from the accepted one.
func (r *remoteTool) verify(ctx context.Context, conn *connection) error {
	offered, err := conn.definitions(ctx)
	if err != nil {
		return r.client.failure("list its tools", conn, err)
	}
	refusal := Refusal{Server: r.client.server.Name, Tool: r.name, Reason: ReasonMissing}
	if d, ok := offered[r.name]; ok {
		_, now := r.client.checkDefinition(d, map[string]Pin{r.name: r.pin})
		if now == nil {
			return nil
		}
		refusal = *now
	}
	return &RefusedError{Refusals: []Refusal{refusal}}
}

// isServerAnswer reports whether an error is the server's answer.
func isServerAnswer(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e)
}

// isUnknownSession reports whether an error means that the call was not accepted because
// its session is unknown.
func isUnknownSession(err error) bool { return errors.Is(err, mcp.ErrSessionMissing) }

// textOf returns a result as text for the model, and whether it is a failure.
func textOf(r *mcp.CallToolResult) (text string, failed bool) {
	parts := make([]string, 0, len(r.Content)+1)
	structured := r.StructuredContent != nil
	for _, c := range r.Content {
		s := contentText(c)
		structured = structured && !sameJSON(s, r.StructuredContent)
		parts = append(parts, s)
	}
	if structured {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	return strings.Join(parts, "\n"), r.IsError
}

// sameJSON reports whether a text is the JSON of a value: servers repeat their structured
// content as text, and a model needs it once.
func sameJSON(s string, v any) bool {
	var parsed any
	return json.Unmarshal([]byte(s), &parsed) == nil && reflect.DeepEqual(parsed, v)
}

// contentText returns one piece of a result: text verbatim, anything else as a description.
func contentText(c mcp.Content) string {
	switch t := c.(type) {
	case *mcp.TextContent:
		return t.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", t.MIMEType, len(t.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", t.MIMEType, len(t.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s, %s: %s]", t.Name, t.MIMEType, t.URI)
	case *mcp.EmbeddedResource:
		if t.Resource == nil {
			return "[resource]"
		}
		if t.Resource.Text != "" {
			return fmt.Sprintf("[resource %s, %s]\n%s", t.Resource.URI, t.Resource.MIMEType, t.Resource.Text)
		}
		return fmt.Sprintf("[resource %s, %s, %d bytes]", t.Resource.URI, t.Resource.MIMEType, len(t.Resource.Blob))
	}
	return fmt.Sprintf("[content of a kind that is not known here: %T]", c)
}
