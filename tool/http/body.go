package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weir-run/weir/tool/template"
)

// buildBody returns the body and its content type.
func (r *compiledSpec) buildBody(args map[string]any, secrets *template.Secrets) (io.Reader, string, error) {
	var body any
	switch {
	case r.body != nil:
		var err error
		body, err = expandBody(r.body, args, secrets)
		if errors.Is(err, errArgumentAbsent) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", err
		}
	case r.hasNoBody():
		return nil, "", nil
	default:
		rest := make(map[string]any, len(args))
		for _, name := range r.others(args) {
			if v, ok := args[name]; ok {
				rest[name] = v
			}
		}
		body = rest
	}
	if text, ok := body.(string); ok {
		return strings.NewReader(text), "text/plain; charset=utf-8", nil
	}
	b, err := json.Marshal(body)
	if err != nil {
		return nil, "", fmt.Errorf("the body cannot be written as JSON: %w", err)
	}
	return bytes.NewReader(b), "application/json", nil
}

// parseBody converts a value's texts to templates.
func parseBody(v any) (any, error) {
	switch t := v.(type) {
	case string:
		return template.Parse(t)
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, e := range t {
			p, err := parseBody(e)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[name] = p
		}
		return out, nil
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			p, err := parseBody(e)
			if err != nil {
				return nil, err
			}
			out[i] = p
		}
		return out, nil
	}
	return v, nil
}

// eachText visits the templates of a body.
func eachText(v any, visit func(template.Template)) {
	switch t := v.(type) {
	case template.Template:
		visit(t)
	case map[string]any:
		for _, e := range t {
			eachText(e, visit)
		}
	case []any:
		for _, e := range t {
			eachText(e, visit)
		}
	}
}

// errArgumentAbsent means that the argument that a value consists of is not given.
var errArgumentAbsent = errors.New("not given")

// expandBody expands a body. The error for a text that is only a reference to a missing
// argument is errArgumentAbsent.
func expandBody(v any, args map[string]any, secrets *template.Secrets) (any, error) {
	switch t := v.(type) {
	case template.Template:
		if p, ok := t.SingleReference(); ok && p.Kind == template.Args {
			if value, given := p.Value(args); given {
				return value, nil
			}
			return nil, errArgumentAbsent
		}
		return t.Expand(args, secrets)
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, e := range t {
			if err := expandMember(e, args, secrets, func(v any) { out[name] = v }); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(t))
		for _, e := range t {
			if err := expandMember(e, args, secrets, func(v any) { out = append(out, v) }); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// expandMember expands a part of a body and stores it, unless it is a missing argument.
func expandMember(v any, args map[string]any, secrets *template.Secrets, put func(any)) error {
	value, err := expandBody(v, args, secrets)
	if errors.Is(err, errArgumentAbsent) {
		return nil
	}
	if err == nil {
		put(value)
	}
	return err
}
