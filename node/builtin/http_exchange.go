package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/expr"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin/safehttp"
)

// outgoingRequest is a request with its templates filled in.
type outgoingRequest struct {
	method  string
	url     string
	query   engine.Value
	headers engine.Value
	body    engine.Value
	hasBody bool
}

// evaluate evaluates the templates; vars decides which texts secrets evaluate to.
func (n *httpRequestNode) evaluate(ctx *node.Ctx, vars expr.Vars) (outgoingRequest, error) {
	o := outgoingRequest{method: n.Method, hasBody: n.Body.isSet()}
	var err error
	if o.url, err = n.URL.text(ctx, "url"); err != nil {
		return o, err
	}
	if o.query, err = n.Query.value(vars, "query"); err != nil {
		return o, err
	}
	if o.headers, err = n.Headers.value(vars, "headers"); err != nil {
		return o, err
	}
	o.body, err = n.Body.value(vars, "body")
	return o, err
}

// identity identifies the request.
func (o outgoingRequest) identity() engine.Value {
	return map[string]any{"method": o.method, "url": o.url, "query": o.query, "headers": o.headers, "body": o.body}
}

// request builds the HTTP request. It refuses a request that cannot or must not be sent.
func (o outgoingRequest) request(ctx context.Context) (*http.Request, error) {
	u, err := o.address()
	if err != nil {
		return nil, err
	}
	body, contentType, err := o.payload()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, o.method, u.String(), body)
	if err != nil {
		return nil, permanentError(CodeHTTPRequest, "the request cannot be built: %v", err)
	}
	req.Header.Set("User-Agent", "weir")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req, o.setHeaders(req.Header)
}

// address returns the URL with the query.
func (o outgoingRequest) address() (*url.URL, error) {
	u, err := url.Parse(o.url)
	if err != nil {
		return nil, permanentError(CodeHTTPRequest, "url: %v", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, permanentError(CodeHTTPRequest, "url: %q does not begin with http:// or https://", excerpt.Bytes(o.url, maxValueBytes))
	case u.Hostname() == "":
		return nil, permanentError(CodeHTTPRequest, "url: %q names no host", excerpt.Bytes(o.url, maxValueBytes))
	case u.User != nil:
		return nil, withHint(permanentError(CodeHTTPRequest, "url: a user name or password cannot stand in a URL"),
			"send an authorization header made of secrets")
	}
	u.Fragment, u.RawFragment = "", ""
	params, err := objectSetting(o.query, "query")
	if err != nil {
		return nil, err
	}
	if len(params) > 0 {
		q := url.Values{}
		for _, name := range slices.Sorted(maps.Keys(params)) {
			for _, text := range textValues(params[name]) {
				q.Add(name, text)
			}
		}
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+q.Encode(), "&")
	}
	return u, nil
}

// payload returns the body and its content type.
func (o outgoingRequest) payload() (io.Reader, string, error) {
	if !o.hasBody {
		return nil, "", nil
	}
	if text, ok := o.body.(string); ok {
		return strings.NewReader(text), "text/plain; charset=utf-8", nil
	}
	b, err := engine.AppendValue(nil, o.body)
	if err != nil {
		return nil, "", permanentError(CodeHTTPRequest, "body: %v", err)
	}
	return bytes.NewReader(b), "application/json", nil
}

// setHeaders sets the headers of the settings.
func (o outgoingRequest) setHeaders(h http.Header) error {
	params, err := objectSetting(o.headers, "headers")
	if err != nil {
		return err
	}
	for name, v := range params {
		canonical := http.CanonicalHeaderKey(name)
		if !httpcall.IsHeaderName(name) || httpcall.IsConnectionHeader(canonical) {
			return permanentError(CodeHTTPRequest, "headers: %q cannot be set", name)
		}
		h.Del(canonical)
		for _, text := range textValues(v) {
			if !httpcall.IsHeaderValue(text) {
				return permanentError(CodeHTTPRequest, "headers: the value of %s holds a line break or control character", name)
			}
			h.Add(canonical, text)
		}
	}
	return nil
}

// objectSetting reads a setting that is an object.
func objectSetting(v engine.Value, setting string) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, permanentError(CodeHTTPRequest, "%s: expected an object, got %s", setting, describeValue(v))
	}
	return m, nil
}

// textValues returns what a parameter or header is sent as: one text, several for a
// list, none for null.
func textValues(v engine.Value) []string {
	switch t := v.(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, e := range t {
			all = append(all, node.TextOf(e))
		}
		return all
	}
	return []string{node.TextOf(v)}
}

// exchange makes the request with its secrets and reads the response.
func (n *httpRequestNode) exchange(c context.Context, ctx *node.Ctx, named outgoingRequest, key string) (node.Outcome, error) {
	secrets := newUsedSecrets(ctx)
	o, err := n.evaluate(ctx, secrets)
	if err != nil {
		return node.Outcome{}, err
	}
	secrets.addDerived(o.identity(), named.identity())
	limited, cancel := context.WithTimeout(c, n.Timeout.Duration)
	defer cancel()
	call := httpcall.Call{Client: ctx.HTTP(), MaxBody: n.MaxBytes}
	if !n.isSafeMethod() {
		call.IdempotencyKey = key
	}
	resp, err := call.Do(limited, o.request)
	if missing, ok := errors.AsType[*httpcall.NoResponseError](err); ok {
		err = n.noResponseError(c, missing)
	}
	if err != nil {
		return node.Outcome{}, scrubError(err, secrets)
	}
	if err := n.checkResponse(resp); err != nil {
		return node.Outcome{}, scrubError(err, secrets)
	}
	return node.Outcome{Value: recordedResponse(resp.StatusCode, flatHeaders(resp.Header, secrets), resp.Body, secrets)}, nil
}

// checkResponse refuses a body that is too long and a status that is not expected.
func (n *httpRequestNode) checkResponse(resp *httpcall.Response) error {
	status, body := resp.StatusCode, resp.Body
	if int64(len(body)) > n.MaxBytes {
		return withHint(permanentError(CodeHTTPTooLarge, "the answer is longer than %d bytes", n.MaxBytes), "raise maxBytes")
	}
	if n.Expect.has(status) {
		return nil
	}
	e := permanentError(CodeHTTPStatus, "the server answered %d %s: %s", status, http.StatusText(status),
		excerpt.Bytes(strings.ToValidUTF8(string(body), "�"), 300))
	e.Permanent = status < 500 && status != 408 && status != 425 && status != 429
	e.RetryAfter = httpcall.RetryAfter(resp.Header).Milliseconds()
	return withHint(e, "add the status to expect if the flow can use such an answer")
}

// noResponseError returns the failure of the node for a request without a response.
func (n *httpRequestNode) noResponseError(c context.Context, err *httpcall.NoResponseError) error {
	switch {
	case c.Err() != nil: // the run's, not the request's own limit
		return context.Cause(c)
	case errors.Is(err, safehttp.ErrBlocked):
		return withHint(permanentError(CodeHTTPBlocked, "%v", err), "the operator of Weir can allow private addresses")
	case err.Sent && n.OnUnknown != "retry":
		return withHint(permanentError(CodeHTTPUnknown, "no answer came, and the request may have been acted on: %v", err),
			"see on the other side what became of it; onUnknown: retry makes it again with the same Idempotency-Key")
	case errors.Is(err, context.DeadlineExceeded):
		return transientError(CodeHTTPTimeout, "no answer came within %v", n.Timeout.Duration)
	}
	return transientError(CodeHTTPFailed, "no answer came: %v", err)
}

// scrubError removes secrets from the texts of an error.
func scrubError(err error, secrets *usedSecrets) error {
	var e *engine.Error
	if !errors.As(err, &e) {
		return err
	}
	clean := *e
	clean.Message, clean.Hint = secrets.scrub(e.Message), secrets.scrub(e.Hint)
	return &clean
}

// flatHeaders returns a header as an object.
func flatHeaders(h http.Header, secrets *usedSecrets) map[string]any {
	flat := make(map[string]any, len(h))
	for name, values := range h {
		flat[strings.ToLower(name)] = secrets.scrub(strings.ToValidUTF8(strings.Join(values, ", "), "�"))
	}
	return flat
}

// isJSON reports whether a content type is JSON's or based on it (RFC 6839).
func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json"))
}

// expectedStatus is a set of statuses; the zero value is 2xx.
type expectedStatus struct {
	any     bool
	codes   []int
	classes []int // 2 for 2xx
}

// UnmarshalJSON reads "any" or a list of codes and classes.
func (e *expectedStatus) UnmarshalJSON(raw []byte) error {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if word != "any" {
			return fmt.Errorf("expected any or a list of statuses")
		}
		e.any = true
		return nil
	}
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	for _, v := range list {
		switch t := v.(type) {
		case float64:
			e.codes = append(e.codes, int(t))
		case string:
			if len(t) != 3 || t[0] < '2' || t[0] > '5' || t[1:] != "xx" {
				return fmt.Errorf("%q is not a class of statuses: write 2xx, 3xx, 4xx or 5xx", t)
			}
			e.classes = append(e.classes, int(t[0]-'0'))
		default:
			return fmt.Errorf("%v is not a status", v)
		}
	}
	return nil
}

func (e expectedStatus) has(status int) bool {
	if e.any || slices.Contains(e.codes, status) || slices.Contains(e.classes, status/100) {
		return true
	}
	return e.codes == nil && e.classes == nil && status/100 == 2
}
