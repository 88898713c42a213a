package httptool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/tool/template"
)

// maxFailure is the maximum length, in bytes, of a failure response in an error.
const maxFailure = 2000

// sendRequest sends the request and reads the response.
func (c *requestTool) sendRequest(ctx context.Context, call tool.Call, args map[string]any, secrets *template.Secrets) (string, error) {
	out := httpcall.Call{Client: c.http, MaxBody: int64(c.maxBody)}
	if !c.request.isReadOnly() {
		out.IdempotencyKey = call.Key
	}
	var address string
	resp, err := out.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := c.request.build(ctx, args, secrets)
		if err == nil {
			address = req.URL.String()
		}
		return req, err
	})
	if missing, ok := errors.AsType[*httpcall.NoResponseError](err); ok {
		return "", c.unansweredError(missing)
	}
	if err != nil {
		return "", tool.NotMade(err)
	}
	text, err := c.result(resp, secrets)
	if err == nil && c.request.method != http.MethodHead {
		c.declare(call, address, resp, secrets)
	}
	return text, err
}

// declare declares a response that is a file, for the trajectory.
func (c *requestTool) declare(call tool.Call, address string, resp *httpcall.Response, secrets *template.Secrets) {
	size := int64(len(resp.Body))
	if size > int64(c.maxBody) { // the rest was not read
		size = resp.Length
	}
	f, ok := tool.Download{
		URL: secrets.Scrub(address), Size: size,
		Type: secrets.Scrub(resp.Header.Get("Content-Type")), Disposition: secrets.Scrub(resp.Header.Get("Content-Disposition")),
	}.File()
	if ok {
		_ = call.Declare(f) // the model gets the result even if it cannot be declared
	}
}

// unansweredError returns the error of a request without a response.
func (c *requestTool) unansweredError(err *httpcall.NoResponseError) error {
	if err.Sent && !c.request.isReadOnly() {
		return fmt.Errorf("no answer came, and the request may have been acted on: %w; %w", err, tool.ErrOutcomeUnknown)
	}
	failed := fmt.Errorf("no answer came: %w", err)
	if err.Sent {
		return failed
	}
	return tool.NotMade(failed)
}

// result returns a response as text for the model.
func (c *requestTool) result(resp *httpcall.Response, secrets *template.Secrets) (string, error) {
	body := resp.Body
	text := secrets.Scrub(string(body))
	if len(body) > c.maxBody {
		text = secrets.ScrubCut(string(body[:c.maxBody]))
		text = trimPartialRune(text) + fmt.Sprintf("\n[the answer is longer than %d bytes; the rest was not read]", c.maxBody)
	}
	if !utf8.ValidString(text) && !isText(resp.Header.Get("Content-Type")) {
		text = fmt.Sprintf("[%s, %d bytes, not text]", firstNonEmpty(resp.Header.Get("Content-Type"), "of unknown type"), len(body))
	}
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch {
	case resp.StatusCode >= 300:
		return "", responseError(resp, status, text)
	case c.request.method == http.MethodHead:
		return secrets.Scrub(status + "\n" + headerLines(resp.Header)), nil
	case strings.TrimSpace(text) == "":
		return "The server answered " + status + ", without a body.", nil
	}
	return text, nil
}

// trimPartialRune removes an incomplete character at the end.
func trimPartialRune(s string) string {
	for end := len(s) - 1; end >= 0 && end > len(s)-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			if !utf8.FullRuneInString(s[end:]) {
				return s[:end]
			}
			break
		}
	}
	return s
}

// responseError returns the error of a failure response.
func responseError(resp *httpcall.Response, status, text string) error {
	hint := ""
	if after := resp.Header.Get("Retry-After"); after != "" {
		hint = " (Retry-After: " + after + ")"
	}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < 400 {
		hint = " (Location: " + to + ")"
	}
	return fmt.Errorf("the server answered %s%s: %s", status, hint,
		firstNonEmpty(strings.TrimSpace(excerpt.Bytes(text, maxFailure)), "no body"))
}

// headerLines returns the headers of a response, one on a line.
func headerLines(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(h[name], ", "))
	}
	return b.String()
}

// isText reports whether a content type is text of any encoding.
func isText(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasPrefix(t, "text/") || t == "application/json" || t == "application/xml" ||
		strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml"))
}

// build expands the templates.
func (r *compiledSpec) build(ctx context.Context, args map[string]any, secrets *template.Secrets) (*http.Request, error) {
	u, err := r.url.expand(args)
	if err != nil {
		return nil, err
	}
	query, err := r.params(args, secrets)
	if err != nil {
		return nil, err
	}
	u.RawQuery = strings.Trim(u.RawQuery+"&"+query.Encode(), "&")
	body, contentType, err := r.buildBody(args, secrets)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be built: %w", err)
	}
	req.Header.Set("User-Agent", "weir")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		t := r.headers[name]
		if p, ok := t.SingleReference(); ok && p.Kind == template.Args {
			if _, given := p.Value(args); !given {
				continue
			}
		}
		value, err := t.Expand(args, secrets)
		if err != nil {
			return nil, err
		}
		if !httpcall.IsHeaderValue(value) {
			return nil, fmt.Errorf("the value of header %s holds a line break or control character", name)
		}
		req.Header.Set(name, value)
	}
	return req, nil
}

// params returns the parameters added to the URL.
func (r *compiledSpec) params(args map[string]any, secrets *template.Secrets) (url.Values, error) {
	q := url.Values{}
	add := func(name string, v any) {
		if list, ok := v.([]any); ok {
			for _, e := range list {
				q.Add(name, template.FormatValue(e))
			}
			return
		}
		q.Add(name, template.FormatValue(v))
	}
	for name, t := range r.query {
		if p, ok := t.SingleReference(); ok && p.Kind == template.Args {
			if v, given := p.Value(args); given {
				add(name, v)
			}
			continue
		}
		s, err := t.Expand(args, secrets)
		if err != nil {
			return nil, err
		}
		q.Add(name, s)
	}
	if r.hasNoBody() {
		for _, name := range r.others(args) {
			if v := args[name]; v != nil {
				add(name, v)
			}
		}
	}
	return q, nil
}
