package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Ability is a feature that not every vendor's API has.
type Ability string

// The abilities. The suite skips the tests of abilities that a subject lacks.
const (
	// Thinking: reasoning is streamed and stored as text.
	Thinking Ability = "thinking"
	// Native: blocks that only the vendor can read are returned to it unchanged.
	Native Ability = "native"
	// Idempotency: the request's key is sent.
	Idempotency Ability = "idempotency"
	// Images and Files: user messages may contain them.
	Images Ability = "images"
	Files  Ability = "files"
	// ToolParts: tool results may contain images.
	ToolParts Ability = "tool parts"
	// Empty: messages without text are sent unchanged. Other APIs refuse them; they are then omitted.
	Empty Ability = "empty messages"
	// Separate: consecutive messages of one role are not merged.
	Separate Ability = "separate messages"
	// Sessions: the vendor stores conversations on request.
	Sessions Ability = "sessions"
	// Verbatim: the arguments of calls are text, and not a JSON object whose white space and order of keys are
	// insignificant.
	Verbatim Ability = "verbatim arguments"
)

// Subject is a provider under test.
type Subject struct {
	Provider llm.Provider
	// Model is the name of a reasoning model.
	Model string
	Lacks []Ability
}

// Factory creates a provider that calls s, with s.APIKey as its key and s.Client as its HTTP client if these are set.
// Each test has its own.
type Factory func(t *testing.T, s *Server) Subject

// patience is the time limit for operations that should be immediate, on a loaded machine.
const patience = 10 * time.Second

// Run runs the suite, which every provider must pass unchanged.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, *conformanceTest)
	}{
		{"text streams in pieces that make the whole", testText},
		{"usage is reported once and in the answer", testUsage},
		{"reasoning is streamed apart from text", testReasoning},
		{"a tool call and its result make a round trip", testRoundTrip},
		{"native blocks come back verbatim", testNative},
		{"native blocks are dropped from a message that was changed", testNativeChanged},
		{"native blocks of another provider are dropped", testNativeForeign},
		{"parallel calls keep their order", testParallel},
		{"a call without arguments has an empty object", testNoArguments},
		{"a call that the token limit cut is left out", testCutCall},
		{"the choice of tools is sent", testChoice},
		{"an answer can follow a schema", testSchema},
		{"the reason for the end of an answer is reported", testStop},
		{"a history of all roles arrives as it is", testHistory},
		{"any text survives both ways", testUnicode},
		{"empty texts are sent and received", testEmpty},
		{"images arrive", testImages},
		{"files arrive", testFiles},
		{"images in a tool's result arrive", testToolParts},
		{"the request is not changed", testUntouched},
		{"the idempotency key is sent", testKey},
		{"a conversation that the vendor keeps goes on with what is new", testSession},
		{"a conversation that the vendor lost is reported and sent again", testSessionLost},
		{"nothing is kept unasked", testSessionUnasked},
		{"calls at the same time do not mix", testConcurrent},
		{"failures have their code and say whether to retry", testFailures},
		{"the requested wait is reported", testRetryAfter},
		{"a failure is asked for once", testNoRetry},
		{"a failure inside the stream is reported", testStreamFault},
		{"a stream that is cut can be retried", testCut},
		{"an answer is whole though the connection stays open", testOpen},
		{"a server that is not there can be retried", testUnreachable},
		{"cancelling stops a stream at once", testCancel},
		{"cancelling stops a call that waits", testCancelWaiting},
		{"a deadline is a timeout", testDeadline},
		{"an impossible request is refused before it is sent", testRefused},
		{"nothing is left running", testLeaks},
		{"no refusal tells the key", testKeyRefused},
		{"no cut of a refusal tells a part of the key", testKeyAtCuts},
		{"no broken stream tells the key", testKeyInStream},
		{"no broken connection tells the key", testKeyOfConnection},
		{"the key goes to no other server", testKeyRedirected},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(t)
			s.APIKey = canary
			c.test(t, &conformanceTest{Server: s, factory: factory, subject: factory(t, s)})
		})
	}
}

// conformanceTest is the server and subject of one test.
type conformanceTest struct {
	*Server
	factory Factory
	subject Subject
}

// needs skips a test if the subject lacks an ability.
func (x *conformanceTest) needs(t *testing.T, a Ability) {
	t.Helper()
	if x.lacks(a) {
		t.Skipf("the provider lacks the ability %q", a)
	}
}

func (x *conformanceTest) lacks(a Ability) bool { return slices.Contains(x.subject.Lacks, a) }

// chunkRecorder collects the chunks of one call.
type chunkRecorder struct {
	*llm.Response
	chunks []llm.Chunk
}

func (h *chunkRecorder) text() string {
	var b strings.Builder
	for _, c := range h.chunks {
		b.WriteString(c.Text)
	}
	return b.String()
}

func (h *chunkRecorder) reasoning() string {
	var b strings.Builder
	for _, c := range h.chunks {
		b.WriteString(c.Reasoning)
	}
	return b.String()
}

// ask makes a call that must succeed.
func (x *conformanceTest) ask(t *testing.T, req *llm.Request) *chunkRecorder {
	t.Helper()
	h, err := x.try(t.Context(), req)
	if err != nil {
		t.Fatalf("generate: %v", err)
	}
	if h.Message.Role != convo.Assistant {
		t.Errorf("the answer has the role %q", h.Message.Role)
	}
	if h.text() != h.Message.Text {
		t.Errorf("the pieces make %q, the answer says %q", h.text(), h.Message.Text)
	}
	if h.reasoning() != h.Message.Reasoning {
		t.Errorf("the pieces of reasoning make %q, the answer says %q", h.reasoning(), h.Message.Reasoning)
	}
	return h
}

func (x *conformanceTest) try(ctx context.Context, req *llm.Request) (*chunkRecorder, error) {
	if req.Model == "" {
		req.Model = x.subject.Model
	}
	h := &chunkRecorder{}
	res, err := x.subject.Provider.Generate(ctx, req, func(c llm.Chunk) { h.chunks = append(h.chunks, c) })
	h.Response = res
	return h, err
}

// fail makes a call that must fail with an *llm.Error.
func (x *conformanceTest) fail(t *testing.T, req *llm.Request) *llm.Error {
	t.Helper()
	h, err := x.try(t.Context(), req)
	if err == nil {
		t.Fatalf("the call gave %q and no error", h.Message.Text)
	}
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is a %T: %v", err, err)
	}
	if h.Response != nil {
		t.Errorf("a failed call gave an answer as well")
	}
	return e
}

// say returns a request with one message.
func say(text string) *llm.Request {
	return &llm.Request{Messages: []convo.Message{{Role: convo.User, Text: text}}}
}

// weather returns a tool.
func weather() llm.Tool {
	return llm.Tool{
		Name: "weather", Description: "Tells the weather of a city.",
		Parameters: map[string]any{
			"type":       "object",
			"properties": map[string]any{"city": map[string]any{"type": "string", "minLength": 1}},
			"required":   []any{"city"},
		},
	}
}

func equalJSON(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("%s is\n%s\nwant\n%s", what, g, w)
	}
}
