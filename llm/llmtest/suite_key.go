package llmtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// canary is the key of every provider under test, which must not be revealed. It has characters that URLs and JSON
// escape.
const canary = `wk-canary/31415+92653=58979&32384"62643\38327%95028`

const (
	// revealsKey is the length of the shortest piece of the key that counts as revealed.
	revealsKey = 8
	// cutAt is where providers cut a server's message, maxBodyRead where they stop reading an error body.
	cutAt       = 600
	maxBodyRead = 1 << 20
)

// encodedForms returns the forms in which a server may repeat the key.
func encodedForms() map[string]string {
	quoted, err := json.Marshal(canary)
	if err != nil {
		panic("llmtest: " + err.Error())
	}
	twice, err := json.Marshal(string(quoted))
	if err != nil {
		panic("llmtest: " + err.Error())
	}
	var points []byte
	for _, b := range []byte(canary) {
		points = fmt.Appendf(points, `\u%04x`, b)
	}
	return map[string]string{
		"as it is": canary, "in a header": "Authorization: Bearer " + canary,
		"in a query": "https://host/v1?key=" + url.QueryEscape(canary) + "&alt=sse", "in a path": url.PathEscape(canary),
		"in a query's query": url.QueryEscape(url.QueryEscape(canary)),
		"in JSON":            string(quoted), "in JSON in JSON": string(twice), "by code points": string(points),
		"in base64":     base64.StdEncoding.EncodeToString([]byte(canary)),
		"in URL base64": base64.RawURLEncoding.EncodeToString([]byte(canary)),
		"as a password": base64.StdEncoding.EncodeToString([]byte("user:" + canary)),
		"after one":     base64.StdEncoding.EncodeToString([]byte("x" + canary + "y")),
		"quoted by Go":  strconv.Quote(canary), "twice": canary + canary,
	}
}

// tells returns the part of the key that a text contains, "" if there is none.
func tells(text string) string {
	var pieces []string
	for i := range len(canary) - revealsKey + 1 {
		pieces = append(pieces, canary[i:i+revealsKey])
	}
	for before := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			// In 8 characters from the middle all bits are the key's.
			coded := e.EncodeToString(append(make([]byte, before), canary...))
			for i := 4; i+revealsKey < len(coded); i++ {
				pieces = append(pieces, coded[i:i+revealsKey])
			}
		}
	}
	for range 4 {
		for _, p := range pieces {
			if strings.Contains(text, p) {
				return p
			}
		}
		text = unescape(text)
	}
	return ""
}

var escaped = regexp.MustCompile(`%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\.`)

// unescape decodes escapes of URLs, JSON and Go.
func unescape(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(s string) string {
		digits := strings.TrimLeft(s, `%\ux`)
		if len(s) < 3 {
			return s[1:]
		}
		n, err := strconv.ParseUint(digits, 16, 32)
		if err != nil {
			return s
		}
		return string(rune(n))
	})
}

// silent makes a call and fails the test if its result reveals the key. It reports whether the call failed.
func (x *conformanceTest) silent(t *testing.T, what string) bool {
	t.Helper()
	h, err := x.try(t.Context(), say("Hello."))
	texts := []string{fmt.Sprintf("%+v", h.chunks)}
	if h.Response != nil {
		texts = append(texts, fmt.Sprintf("%+v", *h.Response))
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		texts = append(texts, e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e))
	}
	for _, text := range texts {
		if piece := tells(text); piece != "" {
			t.Errorf("%s: %q of the key is shown: %.2000s", what, piece, text)
		}
	}
	return err != nil
}

// mustFail is silent for a call that cannot succeed.
func (x *conformanceTest) mustFail(t *testing.T, what string) {
	t.Helper()
	if !x.silent(t, what) {
		t.Errorf("%s: a failure was an answer", what)
	}
}

// testKeyRefused refuses requests with the key in each form and place.
func testKeyRefused(t *testing.T, x *conformanceTest) {
	for name, form := range encodedForms() {
		for _, f := range []Failure{
			{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided: " + form + "."},
			{Status: 400, Message: "No.", Code: form, Type: form, Param: form},
			{Status: 500, Body: form},
			{Status: 503, Body: `{"error":` + encode(form) + `}`},
			{Status: 429, Body: `{"message":` + encode(form) + `}`},
			{Status: 400, Body: `{"detail":[{"loc":["` + form + `"],"msg":` + encode(form) + `}]}`},
			{Status: 400, Body: `{"error":{"code":400,"status":` + encode(form) + `,"message":{"a":` + encode(form) +
				`},"type":` + encode(form) + `,"details":[{"reason":` + encode(form) + `}]}}`},
			{Status: 502, Body: "<html>" + form + "</html>", Header: http.Header{"Content-Type": {"text/html"}}},
			{Status: 404, Message: "The interaction " + form + " was not found."},
		} {
			x.Script(Turn{Failure: &f})
			x.mustFail(t, fmt.Sprintf("%s, status %d", name, f.Status))
		}
	}
}

// testKeyAtCuts places each byte of the key at each limit of reading and passing on.
func testKeyAtCuts(t *testing.T, x *conformanceTest) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for name, form := range map[string]string{"as it is": canary, "in JSON": encodedForms()["in JSON"], "in base64": encodedForms()["in base64"]} {
		for pad := cutAt - len(form) - 1; pad <= cutAt; pad += step {
			x.Script(Turn{Failure: &Failure{Status: 400, Message: strings.Repeat("p", pad) + form + " is wrong."}})
			x.mustFail(t, fmt.Sprintf("%s after %d bytes", name, pad))
		}
	}
	// The read limit is inside the key, and the body has nothing else.
	for into := 0; into <= len(canary); into += 5 * step {
		x.Script(Turn{Failure: &Failure{Status: 500, Body: strings.Repeat(" ", maxBodyRead-into) + canary}})
		x.mustFail(t, fmt.Sprintf("%d bytes at the end of a huge body", into))
	}
	x.Script(Turn{Failure: &Failure{Status: 400, Message: strings.Repeat(canary, 1<<14)}})
	x.mustFail(t, "a huge body full of the key")
}

// testKeyInStream sends the key in place of an answer and in the middle of one.
func testKeyInStream(t *testing.T, x *conformanceTest) {
	for name, form := range encodedForms() {
		kinds := []string{"", "application/json", "text/html"}
		if testing.Short() && name != "as it is" {
			kinds = kinds[:1]
		}
		for _, after := range []int{0, 5} {
			fault := Failure{Code: form, Type: form, Param: form, Message: strings.Repeat("p", 50*after) + form}
			x.Script(Turn{Text: "A long answer that fails", Break: &Break{After: after, Fault: &fault}})
			x.mustFail(t, name+", a fault in the stream")
		}
		for _, raw := range []string{
			form, frame("", form), frame("error", form),
			frame("", `{"error":{"message":`+encode(form)+`,"status":`+encode(form)+`}}`),
			frame("", `{"error":`+encode(form)+`}`), frame("", `{"`+strings.Trim(encode(form), `"`)+`":`),
			frame("", `{"choices":[{"delta":{"tool_calls":[{"id":`+encode(form)+`}]},"finish_reason":"stop"}]}`),
			frame("", `{"choices":`+encode(form)+`}`), frame("", `{"type":"response.completed","response":`+encode(form)+`}`),
			frame("", `{"type":"response.completed","response":{"object":"response","status":`+encode(form)+`}}`),
			frame("", `{"type":"response.failed","response":{"object":"response","status":"failed","error":{"code":"x","message":`+encode(form)+`}}}`),
			frame("", `{"type":"content_block_start","index":0,"content_block":`+encode(form)+`}`),
			frame("", `{"event_type":"interaction.completed","interaction":{"status":`+encode(form)+`}}`),
			frame("", `{"candidates":[{"finishReason":`+encode(form)+`,"finishMessage":`+encode(form)+`}]}`),
			frame("", `{"promptFeedback":{"blockReason":`+encode(form)+`,"blockReasonMessage":`+encode(form)+`}}`),
		} {
			for _, kind := range kinds {
				x.Script(Turn{Raw: []string{raw}, Type: kind})
				x.mustFail(t, name+", instead of an answer: "+raw)
			}
		}
	}
}

// failingTransport is a transport that fails with an error that contains the key.
type failingTransport struct{ err error }

// RoundTrip fails.
func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// through creates the provider again with connections made by c.
func (x *conformanceTest) through(t *testing.T, c http.RoundTripper) {
	t.Helper()
	x.Client = &http.Client{Transport: c}
	x.subject = x.factory(t, x.Server)
}

// testKeyOfConnection puts the key into the error of a transport, and into an invalid HTTP answer, which net/http
// repeats.
func testKeyOfConnection(t *testing.T, x *conformanceTest) {
	for name, form := range encodedForms() {
		said := errors.New("dial https://host/v1?key=" + form + ": refused")
		inside := &url.Error{Op: "Get", URL: "https://host/v1?key=" + form, Err: said}
		for _, err := range []error{said, inside, &net.OpError{Op: "dial", Net: form, Err: inside}, fmt.Errorf("proxy %s: %w", form, inside)} {
			x.through(t, failingTransport{err})
			x.mustFail(t, name+", a transport that fails")
		}
		line := strings.NewReplacer("\r", "", "\n", "").Replace(form)
		for _, answer := range []string{
			line, "HTTP/1.1 " + line, "HTTP/1.1 200 OK\r\n" + line, "HTTP/1.1 200 OK\r\nContent-Length: " + line,
			"HTTP/1.1 307 Elsewhere\r\nContent-Length: 0\r\nLocation: http://[" + line + "/?key=" + line,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + line,
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + line,
		} {
			x.through(t, &http.Transport{DialContext: answering(answer), DisableKeepAlives: true})
			x.mustFail(t, name+", no HTTP: "+answer)
		}
	}
}

// answering returns connections on which every request is answered with text.
func answering(text string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			var request bytes.Buffer
			part := make([]byte, 64<<10)
			for !bytes.Contains(request.Bytes(), []byte("\r\n\r\n")) {
				n, err := there.Read(part)
				request.Write(part[:n])
				if err != nil {
					break
				}
			}
			go func() {
				_, _ = there.Write([]byte(text + "\r\n\r\n")) // the client may have disconnected
				_ = there.Close()
			}()
			for {
				if _, err := there.Read(part); err != nil {
					return
				}
			}
		}()
		return here, nil
	}
}

// testKeyRedirected redirects calls, with the provider's own client and a given one: no other server may receive the
// key.
func testKeyRedirected(t *testing.T, x *conformanceTest) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got the request %s %s with the headers %v", r.Method, r.URL, r.Header)
	}))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for _, client := range []*http.Client{nil, {}} {
		x.Client = client
		x.subject = x.factory(t, x.Server)
		for _, status := range []int{301, 302, 303, 307, 308} {
			x.Script(Turn{Failure: &Failure{
				Status: status, Message: "Moved for " + canary,
				Header: http.Header{"Location": {elsewhere + "/v1?key=" + url.QueryEscape(canary)}},
			}})
			if e := x.fail(t, say("Hello.")); e.Code != "model_invalid_request" || e.Status != status || tells(e.Error()) != "" {
				t.Errorf("status %d is %v", status, e)
			}
		}
	}
}
