package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// generateReader reads the chunks of a GenerateContent answer.
type generateReader struct {
	p             *Provider
	answer        *answerBuilder
	finish        string
	finishMessage string // the finish message
}

// generateChunk has the fields of a chunk that Weir reads.
type generateChunk struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []generatedPart `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason        string `json:"blockReason"`
		BlockReasonMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		ToolUse    int `json:"toolUsePromptTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	ModelVersion string `json:"modelVersion"`
	ResponseID   string `json:"responseId"`
}

type generatedPart struct {
	Text      *string `json:"text"`
	Thought   bool    `json:"thought"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Inline *struct {
		MIME string `json:"mimeType"`
		Data []byte `json:"data"`
	} `json:"inlineData"`
}

// Object reads an answer that was not streamed as events: one object, or the list that the API returns without
// alt=sse.
func (r *generateReader) Object(data []byte) error {
	if list, ok := asList(data); ok {
		return r.p.readList(list, r)
	}
	if _, err := r.Event(data); err != nil {
		return err
	}
	return r.End(false, nil)
}

// Event reads a chunk. Usage may follow the finish reason, so no chunk ends the answer.
func (r *generateReader) Event(data []byte) (bool, error) {
	var g generateChunk
	if err := json.Unmarshal(data, &g); err != nil {
		return false, vendorapi.UnreadableAnswer(name, err)
	}
	a := r.answer
	a.id, a.model = cmp.Or(g.ResponseID, a.id), cmp.Or(g.ModelVersion, a.model)
	if u := g.Usage; u != nil { // cumulative: the last one counts
		a.usage = llm.Usage{
			Input: u.Prompt + u.ToolUse, Cached: u.Cached, Output: u.Candidates + u.Thoughts, Reasoning: u.Thoughts,
		}
	}
	if why := g.PromptFeedback.BlockReason; why != "" {
		message := "the prompt was blocked: " + why
		if g.PromptFeedback.BlockReasonMessage != "" {
			message += ": " + g.PromptFeedback.BlockReasonMessage
		}
		return false, &llm.Error{Code: engine.CodeModelFiltered, Message: "gemini: " + message}
	}
	for _, c := range g.Candidates {
		if c.Index != 0 {
			continue // only one candidate is requested
		}
		for _, part := range c.Content.Parts {
			if err := r.part(part); err != nil {
				return false, err
			}
		}
		r.finish, r.finishMessage = cmp.Or(c.FinishReason, r.finish), cmp.Or(c.FinishMessage, r.finishMessage)
	}
	return false, nil
}

// Ended reports whether a finish reason came.
func (r *generateReader) Ended() bool { return r.finish != "" }

func (r *generateReader) part(part generatedPart) error {
	a := r.answer
	switch {
	case part.Call != nil:
		if part.Call.Name == "" {
			return vendorapi.UnreadableAnswer(name, fmt.Errorf("a tool call has no name"))
		}
		c := a.addCall(part.Call.ID, part.Call.Name, string(part.Call.Args))
		a.addPart(nativePart{
			Call: &nativeCall{ID: part.Call.ID, Name: c.Name, Args: c.Arguments}, Signature: part.Signature,
		})
	case part.Inline != nil && len(part.Inline.Data) > 0:
		kind := "file"
		if strings.HasPrefix(part.Inline.MIME, "image/") {
			kind = "image"
		}
		a.media = append(a.media, convo.Part{Kind: kind, MIME: part.Inline.MIME, Data: part.Inline.Data})
		a.addPart(nativePart{Media: len(a.media), Signature: part.Signature})
	case part.Text != nil || part.Signature != "":
		text := ""
		if part.Text != nil {
			text = *part.Text
		}
		if part.Thought {
			a.AddReasoning(text)
		} else {
			a.AddText(text)
		}
		a.addPart(nativePart{Text: &text, Thought: part.Thought, Signature: part.Signature})
	}
	return nil
}

// End completes the answer. A stream that breaks after the finish reason is complete.
func (r *generateReader) End(_ bool, err error) error {
	if r.finish == "" {
		if err != nil {
			return err
		}
		return vendorapi.StreamCut(name)
	}
	stop, ok := stopReason(r.finish)
	if ok {
		r.answer.stop = stop
		return nil
	}
	return r.failed()
}

// stopReason maps the finish reasons of usable answers; CONTINUATION is an answer that the vendor would continue.
func stopReason(finish string) (string, bool) {
	switch finish {
	case "STOP":
		return llm.StopEnd, true
	case "MAX_TOKENS", "CONTINUATION":
		return llm.StopLength, true
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return llm.StopFilter, true
	}
	return "", false
}

// failed returns the error of an unusable answer. Most of the reasons are not permanent.
func (r *generateReader) failed() *llm.Error {
	message := "the model stopped with " + r.finish
	if r.finishMessage != "" {
		message += ": " + r.finishMessage
	}
	e := &llm.Error{
		Code: engine.CodeModelUnavailable, Retry: true, Status: http.StatusOK, Message: "gemini: " + message,
	}
	if r.finish == "MISSING_THOUGHT_SIGNATURE" {
		e.Code, e.Retry = engine.CodeModelRequest, false
	}
	return e
}
