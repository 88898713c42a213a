package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/session"
)

// chatBody is a request for a chat completion. Raw members are refused unless they say the
// same as none, or are hints that change no answer.
type chatBody struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Stream        bool          `json:"stream"`
	StreamOptions struct {
		IncludeUsage       bool `json:"include_usage"`
		IncludeObfuscation bool `json:"include_obfuscation"`
	} `json:"stream_options"`
	caller
	settings
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ReasoningEffort     string          `json:"reasoning_effort"`
	Metadata            json.RawMessage `json:"metadata"`
	Store               json.RawMessage `json:"store"`
	ServiceTier         json.RawMessage `json:"service_tier"`
	PromptCacheKey      json.RawMessage `json:"prompt_cache_key"`
	ParallelToolCalls   json.RawMessage `json:"parallel_tool_calls"`
	N                   json.RawMessage `json:"n"`
	TopP                json.RawMessage `json:"top_p"`
	Stop                json.RawMessage `json:"stop"`
	Seed                json.RawMessage `json:"seed"`
	FrequencyPenalty    json.RawMessage `json:"frequency_penalty"`
	PresencePenalty     json.RawMessage `json:"presence_penalty"`
	LogitBias           json.RawMessage `json:"logit_bias"`
	Logprobs            json.RawMessage `json:"logprobs"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
}

// caller is who the end user is, as a client says.
type caller struct {
	User             string `json:"user"`
	SafetyIdentifier string `json:"safety_identifier"`
}

// settings are those of the model that a client may set for a round.
type settings struct {
	Temperature *float64 `json:"temperature"`
}

// check refuses what would have no effect.
func (b *chatBody) check() error {
	for _, x := range []struct {
		name    string
		value   json.RawMessage
		neutral []string
	}{
		{"n", b.N, []string{"1"}},
		{"top_p", b.TopP, []string{"1", "1.0"}},
		{"stop", b.Stop, []string{"[]"}},
		{"seed", b.Seed, nil},
		{"frequency_penalty", b.FrequencyPenalty, []string{"0", "0.0"}},
		{"presence_penalty", b.PresencePenalty, []string{"0", "0.0"}},
		{"logit_bias", b.LogitBias, []string{"{}"}},
		{"logprobs", b.Logprobs, []string{"false"}},
	} {
		if err := refuse(x.name, x.value, x.neutral...); err != nil {
			return err
		}
	}
	if len(b.Messages) == 0 {
		return server.InvalidRequest("body.messages", "there are no messages")
	}
	return nil
}

// request is what a client asks of a flow, in either protocol.
type request struct {
	flow *app.ServedFlow
	// system adds to the system instructions of the flow.
	system string
	// history is what the client has of the conversation before the message.
	history []convo.Message
	message convo.Message
	temper  *float64
	max     int
	effort  string
	who     endUser
	// named is the session that the request names, nil for none, and seed what it begins
	// with if it is new.
	named *weir.Session
	seed  []convo.Message
	// tools are those of the client, outputs those of calls that the round waits for, in place of message.
	tools   *convo.ClientTools
	outputs []convo.Message
	place   string // of the messages in the request
	// demands are those on the answer, nil for none.
	demands     *convo.AnswerDemands
	formatPlace string // of the form of the answer in the request
	// usedBy records the session that got the content of uploaded files.
	usedBy func(session string) error
}

// request checks and converts the body.
func (b *chatBody) request(c *server.Caller, r *http.Request) (*request, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	f, err := flowOf(c, b.Model)
	if err != nil {
		return nil, err
	}
	q := &request{flow: f, temper: b.Temperature, max: max(b.MaxTokens, b.MaxCompletionTokens), effort: b.ReasoningEffort}
	if q.who, err = endUserOf(c, r, b.caller, b.Model); err != nil {
		return nil, err
	}
	if err := q.takeTools(b.Tools, b.ToolChoice); err != nil {
		return nil, err
	}
	if err := q.takeFormat("body.response_format", b.ResponseFormat); err != nil {
		return nil, err
	}
	for i := range b.Messages {
		m, err := b.Messages[i].message("body.messages." + itoa(i))
		if err != nil {
			return nil, err
		}
		if m.Role == convo.System {
			q.addSystem(m.Text)
			continue
		}
		q.history = append(q.history, m)
	}
	if q.usedBy, err = loadFiles(c, "body.messages", q.history); err != nil {
		return nil, err
	}
	if err := q.takeMessage("body.messages"); err != nil {
		return nil, err
	}
	return q, q.checkDemands()
}

func (q *request) addSystem(text string) {
	if q.system != "" && text != "" {
		q.system += "\n\n"
	}
	q.system += text
}

// takeMessage takes the newest message from the end of the history.
func (q *request) takeMessage(place string) error {
	q.place = strings.TrimPrefix(place, "body.")
	if q.takeOutputs(); len(q.outputs) > 0 {
		return nil
	}
	n := len(q.history)
	if n == 0 || q.history[n-1].Role != convo.User {
		return server.InvalidRequest(place, "the last message must be one of the user")
	}
	q.message, q.history = q.history[n-1], q.history[:n-1]
	in, _ := session.MessageInput(q.flow.Flow)
	if len(q.message.Parts) > 0 && in.Type == flow.TypeText {
		return server.InvalidRequest(place, "the flow "+q.flow.Name+" takes text alone: its input "+in.Name+" has the type text, and message would take images and files")
	}
	return nil
}

// content returns the message as the session takes it.
func (q *request) content() any {
	if len(q.message.Parts) == 0 {
		return q.message.Text
	}
	return q.message
}

// createChat answers a chat completion.
func createChat(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	var b chatBody
	err := decode(r, &b)
	var q *request
	if err == nil {
		q, err = b.request(c, r)
	}
	if err != nil {
		handle(w, c, err)
		return
	}
	if isTask(r, q) {
		q.history, q.who.known = nil, false
	}
	x, err := q.send(c, r)
	if err != nil {
		handle(w, c, err)
		return
	}
	defer x.forget()
	if b.Stream {
		x.streamChat(w, b.StreamOptions.IncludeUsage)
		return
	}
	c.Wait(w)
	state, err := x.wait()
	if err != nil {
		handle(w, x.c, err) // of the person for whom it waits
		return
	}
	x.headers(w)
	text := x.textOf(state)
	if _, err := x.remember(text, x.calls(state)); err != nil {
		handle(w, c, err)
		return
	}
	writeJSON(w, http.StatusOK, x.completion(state, text))
}
