package otel

import (
	"strings"

	"github.com/weir-run/weir/llm"
)

// SchemaURL names the version of the semantic conventions whose attributes the spans have.
const SchemaURL = "https://opentelemetry.io/schemas/1.42.0"

// The names of attributes. Those under gen_ai and error are of the semantic conventions of
// the version in SchemaURL, in which those under gen_ai are in development; those under weir
// are Weir's own.
const (
	attrOperation      = "gen_ai.operation.name"
	attrProvider       = "gen_ai.provider.name"
	attrConversation   = "gen_ai.conversation.id"
	attrRequestModel   = "gen_ai.request.model"
	attrResponseModel  = "gen_ai.response.model"
	attrResponseID     = "gen_ai.response.id"
	attrFinishReasons  = "gen_ai.response.finish_reasons"
	attrInputTokens    = "gen_ai.usage.input_tokens"            //nolint:gosec // the name of an attribute
	attrCachedTokens   = "gen_ai.usage.cache_read.input_tokens" //nolint:gosec // the name of an attribute
	attrOutputTokens   = "gen_ai.usage.output_tokens"           //nolint:gosec // the name of an attribute
	attrOutputMessages = "gen_ai.output.messages"
	attrWorkflow       = "gen_ai.workflow.name"
	attrTool           = "gen_ai.tool.name"
	attrToolType       = "gen_ai.tool.type"
	attrToolCall       = "gen_ai.tool.call.id"
	attrToolArguments  = "gen_ai.tool.call.arguments"
	attrToolResult     = "gen_ai.tool.call.result"
	attrError          = "error.type"

	attrRun         = "weir.run.id"
	attrStatus      = "weir.status"
	attrFingerprint = "weir.flow.fingerprint"
	attrRound       = "weir.session.round"
	attrNode        = "weir.node.path"
	attrNodeType    = "weir.node.type"
	attrAttempt     = "weir.node.attempt"
	attrEffect      = "weir.effect.key"
	attrCalls       = "weir.usage.calls"
	attrReasoning   = "weir.usage.reasoning_tokens"
	attrCost        = "weir.usage.cost_micros"
	attrCached      = "weir.node.cached"
	attrWait        = "weir.wait.kind"
	attrInputs      = "weir.run.inputs"
	attrOutputs     = "weir.run.outputs"
)

// operation is what a span does, and how it is shown.
type operation struct {
	name string // gen_ai.operation.name; "" for spans that the conventions do not know
	kind Kind
	// verb begins the name of the span; what follows is the flow, node, model, tool or effect.
	verb string
}

// The operations of spans: the mapping from what journals have to the conventions.
func runOperation() operation    { return operation{"invoke_workflow", Internal, "invoke_workflow"} }
func nodeOperation() operation   { return operation{"", Internal, "node"} }
func chatOperation() operation   { return operation{"chat", Client, "chat"} }
func toolOperation() operation   { return operation{"execute_tool", Internal, "execute_tool"} }
func effectOperation() operation { return operation{"", Internal, "effect"} }

// codeTool is the name of the tool that an execution of code counts as.
const codeTool = "code"

// finishReason returns the word of the conventions for the reason why an answer ended.
func finishReason(stop string) string {
	switch stop {
	case llm.StopEnd:
		return "stop"
	case llm.StopCalls:
		return "tool_call"
	case llm.StopFilter:
		return "content_filter"
	}
	return stop
}

// providerName returns the word of the conventions for a provider: a vendor's, or else the
// name in the configuration. "_OTHER" is a provider that the journal does not name.
func providerName(provider string) string {
	switch provider {
	case "":
		return "_OTHER"
	case "gemini":
		return "gcp.gemini"
	}
	return provider
}

// literal returns a setting of a node if it is a text without templates.
func literal(with map[string]any, name string) string {
	s, _ := with[name].(string)
	if strings.Contains(s, "{{") {
		return ""
	}
	return s
}
