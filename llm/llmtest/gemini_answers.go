package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-run/weir/llm"
)

// geminiAnswer creates the parts of one answer, each in a chunk of its own.
type geminiAnswer struct {
	turn   *Turn
	ask    *parsedRequest
	number int
	parts  []map[string]any
}

func (w geminiAPI) whole(t *Turn, a *parsedRequest, number int) []byte {
	g := &geminiAnswer{turn: t, ask: a, number: number}
	g.write(func(text string) []string { return []string{text} })
	return []byte(encode(g.chunk(g.parts, t.geminiFinish())))
}

func (w geminiAPI) stream(t *Turn, a *parsedRequest, number int) []string {
	g := &geminiAnswer{turn: t, ask: a, number: number}
	g.write(func(text string) []string { return pieces(text, t.Piece) })
	var events []string
	for n, part := range g.parts {
		finish := ""
		if n+1 == len(g.parts) {
			finish = t.geminiFinish()
		}
		events = append(events, frame("", encode(g.chunk([]map[string]any{part}, finish))))
	}
	return events
}

// write creates the parts: thoughts, text, calls, and a part that only has a signature or ends the answer.
func (g *geminiAnswer) write(split func(string) []string) {
	t := g.turn
	if g.ask.summary && t.Reasoning != "" {
		for _, piece := range split(t.Reasoning) {
			g.parts = append(g.parts, map[string]any{"text": piece, "thought": true})
		}
	}
	if text := t.Text + t.Refusal; text != "" {
		for _, piece := range split(text) {
			g.parts = append(g.parts, map[string]any{"text": piece})
		}
	}
	signature := t.geminiSignature(g.ask.Model, g.number)
	for n, c := range t.Calls {
		call := map[string]any{"name": c.Name}
		if c.ID != "" {
			call["id"] = c.ID
		}
		if c.Arguments != "" {
			if !json.Valid([]byte(c.Arguments)) {
				continue // a call that the limit cut off is not sent
			}
			call["args"] = json.RawMessage(c.Arguments)
		}
		part := map[string]any{"functionCall": call}
		if n == 0 && signature != "" {
			part["thoughtSignature"] = signature
		}
		g.parts = append(g.parts, part)
	}
	last := map[string]any{"text": ""}
	if len(t.Calls) == 0 && signature != "" {
		last["thoughtSignature"] = signature
	}
	g.parts = append(g.parts, last)
}

// geminiSignature returns the signature of a thinking model's answer.
func (t *Turn) geminiSignature(model string, number int) string {
	signs := t.thinks() || (strings.HasPrefix(model, "gemini-3") && len(t.Calls) > 0)
	if !signs {
		return ""
	}
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "signature %d", number))
}

func (g *geminiAnswer) chunk(parts []map[string]any, finish string) map[string]any {
	candidate := map[string]any{"content": map[string]any{"parts": parts, "role": "model"}, "index": 0}
	out := map[string]any{
		"candidates": []any{candidate}, "modelVersion": g.ask.Model, "responseId": fmt.Sprintf("resp-%d", g.number),
		"usageMetadata": map[string]any{"promptTokenCount": g.turn.Usage.Input},
	}
	if finish != "" {
		candidate["finishReason"] = finish
		out["usageMetadata"] = geminiUsage(g.turn.Usage)
	}
	return out
}

func geminiUsage(u llm.Usage) map[string]any {
	return map[string]any{
		"promptTokenCount": u.Input, "cachedContentTokenCount": u.Cached, "thoughtsTokenCount": u.Reasoning,
		"candidatesTokenCount": u.Output - u.Reasoning, "totalTokenCount": u.Input + u.Output,
	}
}

func (t *Turn) geminiFinish() string {
	switch {
	case t.Stop == "length":
		return "MAX_TOKENS"
	case t.Stop == "filter" || t.Refusal != "":
		return "SAFETY"
	}
	return "STOP"
}

// issue stores the signature.
func (w geminiAPI) issue(t *Turn, a *parsedRequest, number int, known issuedIDs) {
	if signature := t.geminiSignature(a.Model, number); signature != "" {
		known["signature:"+signature] = ""
	}
}

func (w geminiAPI) fault(f *Failure) string { return frame("", w.refusal(f)) }

// refusal returns a google.rpc.Status. Where OpenAI has a code and Google only a message, it uses Google's message,
// followed by that of the Failure.
func (w geminiAPI) refusal(f *Failure) string {
	status, name, message := f.Status, "", f.Message
	var reason string
	switch f.Code {
	case "context_length_exceeded":
		status = first0(status, http.StatusBadRequest)
		message = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576). " + message
	case "content_policy_violation":
		reason = "PROHIBITED_CONTENT"
	case "invalid_api_key":
		reason = "API_KEY_INVALID"
	case "rate_limit_exceeded":
		status = first0(status, http.StatusTooManyRequests)
	}
	status = first0(status, http.StatusInternalServerError)
	name = googleStatus(status)
	fault := map[string]any{"code": status, "message": message, "status": name}
	if reason != "" {
		fault["details"] = []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com",
		}}
	}
	return encode(map[string]any{"error": fault})
}

func first0(n, other int) int {
	if n == 0 {
		return other
	}
	return n
}

// googleStatus returns the name of the google.rpc.Code for an HTTP status.
func googleStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusInternalServerError:
		return "INTERNAL"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	return "UNKNOWN"
}
