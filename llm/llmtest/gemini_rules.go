package llmtest

import (
	"encoding/json"
	"slices"
	"strings"
)

// unsigned is the signature that Google documents for calls of other models.
const unsigned = "skip_thought_signature_validator"

// check checks a body against the API's rules. With model "" rules of single models are skipped, and with known nil
// any signature is accepted.
func (w geminiAPI) check(body []byte, model string, known issuedIDs) (*geminiBody, []string) {
	r := &rules{}
	r.shape(w.schema, body)
	b := &geminiBody{}
	if len(r.problems) == 0 {
		if err := json.Unmarshal(body, b); err != nil {
			r.broken("%v", err)
		}
	}
	if len(r.problems) > 0 {
		return b, r.problems
	}
	r.geminiRoles(b.Contents)
	for n := range b.Contents {
		r.geminiParts(n, &b.Contents[n], known)
		r.geminiTurn(n, b.Contents)
	}
	if strings.HasPrefix(model, "gemini-3") {
		r.geminiSigned(b.Contents)
	}
	r.geminiTools(b)
	r.geminiConfig(b, strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2"))
	return b, r.problems
}

// geminiRoles: "multiturn requests alternate between user and model", and
// begin and end with the user.
func (r *rules) geminiRoles(contents []geminiContent) {
	for n, c := range contents {
		if n > 0 && c.Role == contents[n-1].Role {
			r.broken("contents[%d]: multiturn requests alternate between user and model; two are of the role %q", n, c.Role)
		}
	}
	if contents[0].Role != "user" {
		r.broken("contents[0]: the first content is of the role %q; it must be the user's", contents[0].Role)
	}
	if last := contents[len(contents)-1]; last.Role != "user" {
		r.broken("the last content is of the role %q; requests end with the user or a function response", last.Role)
	}
}

// geminiParts checks the parts that each role may contain.
func (r *rules) geminiParts(n int, c *geminiContent, known issuedIDs) {
	other := false
	for k, p := range c.Parts {
		switch {
		case c.Role == "user" && p.Call != nil:
			r.broken("contents[%d].parts[%d]: a function call is the model's", n, k)
		case c.Role == "model" && p.Response != nil:
			r.broken("contents[%d].parts[%d]: a function response is the user's", n, k)
		case c.Role == "user" && (p.Thought || p.Signature != ""):
			r.broken("contents[%d].parts[%d]: thoughts and their signatures are the model's", n, k)
		case p.Response != nil && other:
			r.broken("contents[%d].parts[%d]: function responses come before all else", n, k)
		}
		other = other || p.Response == nil
		if p.Text != nil && *p.Text == "" && p.Signature == "" {
			r.broken("contents[%d].parts[%d]: the text is empty", n, k)
		}
		if p.Inline != nil {
			r.geminiMIME(n, p.Inline.MIME)
		}
		if known != nil && p.Signature != "" && p.Signature != unsigned {
			if _, ok := known["signature:"+p.Signature]; !ok {
				r.broken("contents[%d].parts[%d]: Thought signature is not valid", n, k)
			}
		}
	}
}

// geminiMIME checks the documented types of images; other media are accepted.
func (r *rules) geminiMIME(n int, mime string) {
	kind, _, _ := strings.Cut(mime, "/")
	switch kind {
	case "image":
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, mime) {
			r.broken("contents[%d]: Unsupported MIME type: %s", n, mime)
		}
	case "text", "audio", "video":
	case "application":
		if mime == "application/octet-stream" {
			r.broken("contents[%d]: Unsupported MIME type: %s", n, mime)
		}
	default:
		r.broken("contents[%d]: Unsupported MIME type: %s", n, mime)
	}
}

// geminiTurn checks that a function response turn directly follows a function call turn and has one response for each
// call, with its name and id, or in its position if there are no ids.
func (r *rules) geminiTurn(n int, contents []geminiContent) {
	var calls []*geminiCall
	if n > 0 {
		calls, _ = contents[n-1].calling()
	}
	open, responses := contents[n].calling()
	if n+1 == len(contents) && len(open) > 0 {
		r.broken("contents[%d]: the call of %s has no response", n, open[0].Name)
	}
	if len(calls) != len(responses) {
		r.broken("contents[%d]: the number of function response parts (%d) must equal the number of function call parts "+
			"of the function call turn before it (%d)", n, len(responses), len(calls))
		return
	}
	seen := map[string]bool{}
	for k, c := range calls {
		if c.ID != "" && seen[c.ID] {
			r.broken("contents[%d]: two calls have the id %q", n-1, c.ID)
		}
		seen[c.ID] = true
		at := k
		if c.ID != "" {
			at = slices.IndexFunc(responses, func(f *geminiResponse) bool { return f.ID == c.ID })
		}
		switch {
		case at < 0:
			r.broken("contents[%d]: no function response has the id %q of its call", n, c.ID)
		case c.ID == "" && responses[at].ID != "":
			r.broken("contents[%d]: a function response has the id %q, which no call has", n, responses[at].ID)
		case responses[at].Name != c.Name:
			r.broken("contents[%d]: the response of %s answers a call of %s", n, responses[at].Name, c.Name)
		}
	}
}

// calling returns the calls and the responses of a content.
func (c *geminiContent) calling() (calls []*geminiCall, responses []*geminiResponse) {
	for _, p := range c.Parts {
		if p.Call != nil {
			calls = append(calls, p.Call)
		}
		if p.Response != nil {
			responses = append(responses, p.Response)
		}
	}
	return calls, responses
}

// geminiSigned checks that in the current turn, which begins with the last user content with text, the first call of
// each step has a signature.
func (r *rules) geminiSigned(contents []geminiContent) {
	from := 0
	for n, c := range contents {
		if c.Role == "user" && slices.ContainsFunc(c.Parts, func(p geminiPart) bool { return p.Response == nil }) {
			from = n
		}
	}
	for n, c := range contents[from:] {
		at := slices.IndexFunc(c.Parts, func(p geminiPart) bool { return p.Call != nil })
		if at >= 0 && c.Parts[at].Signature == "" {
			r.broken("contents[%d]: Function call is missing a thought_signature in functionCall parts: %s", from+n, c.Parts[at].Call.Name)
		}
	}
}

func (r *rules) geminiTools(b *geminiBody) {
	declared := map[string]bool{}
	for _, t := range b.Tools {
		for _, f := range t.Functions {
			if declared[f.Name] {
				r.broken("Duplicate function declaration found: %s", f.Name)
			}
			declared[f.Name] = true
			r.schema("the function "+f.Name, f.Parameters, false)
		}
	}
	if b.ToolConfig == nil {
		return
	}
	c := b.ToolConfig.Calling
	if len(declared) == 0 {
		r.broken("Function calling config is set without function_declarations")
	}
	if len(c.Allowed) > 0 && c.Mode != "ANY" && c.Mode != "VALIDATED" {
		r.broken("allowed_function_names should only be set when the function calling mode is ANY")
	}
	for _, name := range c.Allowed {
		if !declared[name] {
			r.broken("allowed_function_names has %q, which is not declared", name)
		}
	}
}

// geminiConfig checks settings that only some answers and models support.
func (r *rules) geminiConfig(b *geminiBody, older bool) {
	g := b.Generation
	if g.Schema != nil {
		if _, err := compile("weir:answer", []byte(encode(g.Schema))); err != nil {
			r.broken("response_json_schema is no schema: %v", err)
		}
	}
	if g.Schema != nil && g.Old != nil {
		r.broken("response_schema and response_json_schema are both set")
	}
	if (g.Schema != nil || g.Old != nil) && g.MIME != "application/json" {
		r.broken("response_mime_type must be application/json when a response schema is set")
	}
	if !older {
		return
	}
	if g.MIME == "application/json" && len(b.Tools) > 0 {
		r.broken("Function calling with a response mime type: 'application/json' is unsupported")
	}
	if g.Thinking != nil && g.Thinking.Level != "" {
		r.broken("Thinking level is not supported for this model.")
	}
}
