package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/mcp"
	"github.com/weir-run/weir/server/servertest"
)

// TestQuestionsOfFlowsThatAModelCallsAreFormsOfTheClient answers the questions of two flows that a model has called at the same time.
func TestQuestionsOfFlowsThatAModelCallsAreFormsOfTheClient(t *testing.T) {
	t.Parallel()
	o := servertest.AskingTool()
	o.Faces, o.Server.RequireToken = []func(*server.Server){func(s *server.Server) { mcp.Register(s, mcp.Options{}) }}, true
	p := servertest.Open(t, o)
	token := p.Token("ada", server.Read, server.Start, server.Answer)
	names := map[string]string{"Who takes EC9?": "Ada", "Who takes IC5?": "Bert"}
	s := connect(t, p, token, func(r *sdk.ElicitRequest) *sdk.ElicitResult {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": names[r.Params.Message]}}
	})
	r := call(t, s, &sdk.CallToolParams{Name: "desk", Arguments: map[string]any{"message": "EC9 IC5"}})
	if r.IsError || textOf(r) != "Booked: Ada in EC9, Bert in IC5" {
		t.Errorf("%v: %s", r.IsError, textOf(r))
	}
}
