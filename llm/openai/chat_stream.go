package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

func (p *Provider) chatReader(req *llm.Request, a *answerBuilder) *chatReader {
	return &chatReader{p: p, asked: req.Model, answer: a, calls: map[int]*convo.Call{}}
}

// chunk has the fields of a Chat Completions chunk that Weir reads. It is not a type of OpenAI's SDK, because
// compatible servers add reasoning under other names and send null, or nothing, where OpenAI's types require a value.
// A whole completion has the same form, with message in place of delta.
type chunk struct {
	ID      string     `json:"id"`
	Model   string     `json:"model"`
	Choices []choice   `json:"choices"`
	Usage   *chatUsage `json:"usage"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	Message      delta  `json:"message"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          content     `json:"content"`
	Refusal          string      `json:"refusal"`
	ReasoningContent string      `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	Reasoning        string      `json:"reasoning"`         // OpenRouter, Ollama
	ToolCalls        []callDelta `json:"tool_calls"`
}

// content is text, null, or (for Mistral's reasoning models) a list of parts.
type content struct{ text, thoughts string }

// UnmarshalJSON reads all three forms.
func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, &c.text)
	}
	var parts []struct {
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var text, thoughts strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
		for _, t := range p.Thinking {
			thoughts.WriteString(t.Text)
		}
	}
	c.text, c.thoughts = text.String(), thoughts.String()
	return nil
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	// CacheHit is DeepSeek's name for cached tokens.
	CacheHit      int `json:"prompt_cache_hit_tokens"`
	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chatReader reads the chunks of a Chat Completions stream.
type chatReader struct {
	p       *Provider
	asked   string
	answer  *answerBuilder
	calls   map[int]*convo.Call // the newest call with an index
	chosen  bool                // a choice came
	refused bool
	native  bool // reasoning was sent as reasoning_content
}

// Event reads a chunk. Usage may follow the finish reason, so no chunk ends the answer.
func (r *chatReader) Event(data []byte) (bool, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, vendorapi.UnreadableAnswer(name, err)
	}
	a := r.answer
	a.id, a.model = cmp.Or(c.ID, a.id), cmp.Or(c.Model, a.model)
	if c.Usage != nil {
		a.usage = llm.Usage{
			Input: c.Usage.Prompt, Cached: max(c.Usage.PromptDetails.Cached, c.Usage.CacheHit),
			Output: c.Usage.Completion, Reasoning: c.Usage.CompletionDetails.Reasoning,
		}
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		r.chosen = true
		r.addChoice(ch.Delta)
		r.addChoice(ch.Message)
		if ch.FinishReason == "" {
			continue
		}
		stop, err := finish(ch.FinishReason)
		if err != nil {
			return false, err
		}
		a.stop = stop
	}
	return false, nil
}

// Ended reports whether a finish reason came.
func (r *chatReader) Ended() bool { return r.answer.stop != "" }

// addChoice adds a delta. A server that sends reasoning under both names sends it once.
func (r *chatReader) addChoice(d delta) {
	r.native = r.native || d.ReasoningContent != ""
	r.answer.AddReasoning(cmp.Or(d.ReasoningContent, d.Reasoning))
	r.answer.AddReasoning(d.Content.thoughts)
	r.answer.AddText(d.Content.text)
	if d.Refusal != "" {
		r.refused = true
		r.answer.AddText(d.Refusal)
	}
	for n, c := range d.ToolCalls {
		r.addCallDelta(c, n)
	}
}

// addCallDelta adds a piece of a call. Pieces belong together by index; a new id at an index starts a new call,
// because some servers number every call 0.
func (r *chatReader) addCallDelta(d callDelta, position int) {
	index := position
	if d.Index != nil {
		index = *d.Index
	}
	c := r.calls[index]
	if c == nil || (d.ID != "" && c.ID != "" && d.ID != c.ID) {
		c = &convo.Call{}
		r.calls[index] = c
		r.answer.calls = append(r.answer.calls, c)
	}
	c.ID = cmp.Or(c.ID, d.ID)
	c.Name = cmp.Or(c.Name, d.Function.Name)
	c.Arguments += vendorapi.ScalarText(d.Function.Arguments)
	r.answer.announce(c, len(r.answer.calls)-1)
}

// finish maps a finish_reason. An undocumented one counts as a normal end, because the server completed the answer
// properly.
func finish(reason string) (string, error) {
	switch reason {
	case "length", "max_tokens":
		return llm.StopLength, nil
	case "tool_calls", "function_call", "tool_use":
		return llm.StopCalls, nil
	case "content_filter":
		return llm.StopFilter, nil
	case "error", "abort", "insufficient_system_resource": // OpenRouter; vLLM; DeepSeek
		return "", &llm.Error{Code: engine.CodeModelOverloaded, Retry: true, Message: "openai: the server ended the answer early: " + reason}
	}
	return llm.StopEnd, nil
}

// End is called at the end of every chat stream. Without a finish_reason only [DONE] shows that the answer is
// complete, and only if there is one: a stream without a choice answers nothing.
func (r *chatReader) End(marked bool, err error) error {
	a := r.answer
	switch {
	case err != nil:
		return err
	case a.stop == "" && (!marked || !r.chosen):
		return vendorapi.StreamCut(name)
	case a.stop == "":
		a.stop = llm.StopEnd
	}
	if r.refused {
		a.stop = llm.StopFilter
	}
	if r.native && !r.p.vendor && len(a.calls) > 0 {
		a.native = r.p.pack(native{API: Chat, Host: r.p.host, Model: r.asked, Reasoning: a.Reasoning()})
	}
	return nil
}

// Object reads a completion that was not streamed.
func (r *chatReader) Object(data []byte) error {
	if _, err := r.Event(data); err != nil {
		return err
	}
	return r.End(false, nil)
}
