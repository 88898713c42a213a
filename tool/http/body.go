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

// payload is the body and what type it has.
func (r *request) payload(args map[string]any, secrets *template.Secrets) (io.Reader, string, error) {
	var body any
	switch {
	case r.body != nil:
		var err error
		body, err = fill(r.body, args, secrets)
		if errors.Is(err, errAbsent) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", err
		}
	case r.bodiless():
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

// parseBody makes templates of a value's texts.
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
func eachText(v any, visit func(template.Text)) {
	switch t := v.(type) {
	case template.Text:
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

// errAbsent: the argument that a value consists of is not given.
var errAbsent = errors.New("not given")

// fill writes a body out. The error of a text that is a reference to an
// argument that is not given is errAbsent.
func fill(v any, args map[string]any, secrets *template.Secrets) (any, error) {
	switch t := v.(type) {
	case template.Text:
		if p, ok := t.Only(); ok && p.Kind == template.Args {
			if value, given := p.Value(args); given {
				return value, nil
			}
			return nil, errAbsent
		}
		return t.Expand(args, secrets)
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, e := range t {
			if err := given(e, args, secrets, func(v any) { out[name] = v }); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(t))
		for _, e := range t {
			if err := given(e, args, secrets, func(v any) { out = append(out, v) }); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// given writes a part of a body out and puts it in its place, unless it is an
// argument that is not given.
func given(v any, args map[string]any, secrets *template.Secrets, put func(any)) error {
	value, err := fill(v, args, secrets)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err == nil {
		put(value)
	}
	return err
}
