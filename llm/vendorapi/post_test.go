package vendorapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/weir-run/weir/internal/httpcall"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/vendorapi"
)

// heard records what a reader is given.
type heard struct {
	events []string
	whole  string
	ended  bool
	marked bool
	err    error
}

// Event records an event; "last" ends the answer.
func (h *heard) Event(data []byte) (bool, error) {
	h.events = append(h.events, string(data))
	return string(data) == `"last"`, nil
}

// Ended reports whether the last event was "finish", or followed it.
func (h *heard) Ended() bool { return slices.Contains(h.events, `"finish"`) }

// Object records an answer that is not streamed.
func (h *heard) Object(data []byte) error {
	h.whole = string(data)
	return nil
}

// End records the end.
func (h *heard) End(marked bool, err error) error {
	h.ended, h.marked, h.err = true, marked, err
	return err
}

// TestAWholeAnswerDoesNotWaitForTheEndOfItsStream has a server that sends no more after an answer is whole, or breaks
// the connection; before that, either is a failure.
func TestAWholeAnswerDoesNotWaitForTheEndOfItsStream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent  string
		open  bool
		whole bool
	}{
		{"data: 1\n\ndata: \"finish\"\n\n", true, true},
		{"data: \"finish\"\n\ndata: 2\n\n", true, true},
		{"data: \"finish\"\n\ndata: 2\n\n", false, true},
		{"data: 1\n\n", false, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, c.sent) // the test finds what is missing
			_ = http.NewResponseController(w).Flush()
			if c.open {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler)
		}))
		h := &heard{}
		e := (&answers{}).endpoint()
		e.Client = vendorapi.Client(s.Client())
		err := e.Post(t.Context(), s.URL, nil, []byte("{}"), h)
		if (err == nil) != c.whole || h.marked != c.whole || !h.ended {
			t.Errorf("%q, open %t: %v, %+v", c.sent, c.open, err, h)
		}
		s.Close()
	}
}

// answers is a server that gives one answer, and keeps the request.
type answers struct {
	status int
	header http.Header
	body   io.Reader
	asked  *http.Request
	sent   []byte
}

// RoundTrip answers.
func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	var err error
	if a.sent, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	a.asked = req
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(a.body), Request: req}, nil
}

func (a *answers) endpoint() *vendorapi.Endpoint {
	return &vendorapi.Endpoint{
		Client: vendorapi.Client(&http.Client{Transport: a}),
		Sign:   func(h http.Header) { h.Set("X-Key", key) },
		Refused: func(status int, header http.Header, body []byte) *llm.Error {
			return &llm.Error{Code: "refused", Status: status, RetryAfter: httpcall.RetryAfter(header), Message: string(body)}
		},
		Fault: func(data []byte) *llm.Error {
			if bytes.Contains(data, []byte("wrong")) {
				return &llm.Error{Code: "fault"}
			}
			return nil
		},
	}
}

func stream(body string) *answers {
	return &answers{status: 200, header: http.Header{"Content-Type": {"text/event-stream"}}, body: strings.NewReader(body)}
}

func listen(tb testing.TB, a *answers) (*heard, error) {
	tb.Helper()
	h := &heard{}
	return h, a.endpoint().Post(tb.Context(), "http://api.test/v1/x?y=1", http.Header{"X-More": {"2"}}, []byte(`{"a":1}`), h)
}

func TestARequestIsPostedOnceWithItsHeaders(t *testing.T) {
	t.Parallel()
	a := stream("data: 1\n\n")
	if _, err := listen(t, a); err != nil {
		t.Fatal(err)
	}
	if a.asked.Method != http.MethodPost || a.asked.URL.String() != "http://api.test/v1/x?y=1" || string(a.sent) != `{"a":1}` {
		t.Errorf("%s %s with %s was sent", a.asked.Method, a.asked.URL, a.sent)
	}
	want := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"weir"}, "X-Key": {key}, "X-More": {"2"},
	}
	if fmt.Sprint(a.asked.Header) != fmt.Sprint(want) {
		t.Errorf("the headers are %v, want %v", a.asked.Header, want)
	}
	if text := fmt.Sprintf("%+v %#v", a.endpoint(), *a.endpoint()); strings.Contains(text, key) {
		t.Errorf("printing an endpoint prints the key: %s", text)
	}
}

func TestEventsAreReadAsTheStandardHasThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body    string
		events        []string
		ended, marked bool
	}{
		{"LF", "data: 1\n\ndata: 2\n\n", []string{"1", "2"}, true, false},
		{"CR LF", "data: 1\r\n\r\ndata: 2\r\n\r\n", []string{"1", "2"}, true, false},
		{"CR", "data: 1\r\rdata: 2\r\r", []string{"1", "2"}, true, false},
		{"a byte order mark", "\ufeffdata: 1\n\n", []string{"1"}, true, false},
		{"a mark later is part of its line", "data: 1\n\n\ufeffdata: 2\n\n", []string{"1"}, true, false},
		{"comments and other fields", ": ping\n\nevent: x\nid: 7\nretry: 10\ndata:1\n\nevent: y\n\n", []string{"1"}, true, false},
		{"several lines", "data: [1,\ndata: 2]\n\n", []string{"[1,\n2]"}, true, false},
		{"one space is dropped, and white space at the ends", "data:   1  \n\n", []string{"1"}, true, false},
		{"a field of another name", "database: 1\ndata: 2\n\n", []string{"2"}, true, false},
		{"no value", "data\ndata\n\ndata: 1\n\n", []string{"1"}, true, false},
		{"letters of several bytes", "data: \"é 🏞️\"\n\n", []string{`"é 🏞️"`}, true, false},
		{"the mark of the end", "data: 1\n\ndata: [DONE]\n\ndata: 2\n\n", []string{"1"}, true, true},
		{"the mark without its empty line", "data: [DONE]", nil, true, true},
		{"a whole event without its empty line", "data: {\"a\":1}", []string{`{"a":1}`}, true, false},
		{"an event that is cut", "data: 1\n\ndata: {\"a\":", []string{"1"}, true, false},
		{"a field that is cut", "data: 1\n\ndat", []string{"1"}, true, false},
		{"nothing", "", nil, true, false},
		{"nothing behind the last", "data: \"last\"\n\ndata: 2\n\n", []string{`"last"`}, false, false},
	} {
		for _, body := range []io.Reader{strings.NewReader(c.body), iotest.OneByteReader(strings.NewReader(c.body))} {
			a := stream("")
			a.body = body
			h, err := listen(t, a)
			if err != nil || !slices.Equal(h.events, c.events) || h.ended != c.ended || h.marked != c.marked {
				t.Errorf("%s: %q, ended %v, marked %v: %v", c.name, h.events, h.ended, h.marked, err)
			}
		}
	}
}

// TestAnyEventsAreReadHoweverTheyAreWritten writes any events with any line ends,
// in pieces of any size.
func TestAnyEventsAreReadHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var want []string
		var body strings.Builder
		for range rapid.IntRange(0, 5).Draw(r, "events") {
			end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(r, "end")
			lines := rapid.SliceOfN(rapid.StringMatching(`[a-zé"{}:,🏞]{1,9}`), 1, 3).Draw(r, "lines")
			for _, line := range lines {
				body.WriteString(rapid.SampledFrom([]string{"", ": hi\n", "event: data\n"}).Draw(r, "other"))
				body.WriteString("data: " + line + end)
			}
			body.WriteString(end)
			want = append(want, strings.Join(lines, "\n"))
		}
		a := stream("")
		a.body = &pieces{rest: body.String(), size: func() int { return rapid.IntRange(1, 40).Draw(r, "size") }}
		h := &heard{}
		if err := a.endpoint().Post(context.Background(), "http://api.test", nil, nil, h); err != nil || !slices.Equal(h.events, want) {
			r.Fatalf("%q is read as %q: %v", body.String(), h.events, err)
		}
	})
}

// pieces is a body that arrives in pieces.
type pieces struct {
	rest string
	size func() int
}

// Read reads one piece.
func (p *pieces) Read(to []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), p.size())], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func TestAnEventHasABound(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"a line": strings.Repeat("x", 1<<20), "lines": strings.Repeat("x", 1<<20) + "\ndata: "} {
		a := stream("")
		a.body = io.MultiReader(strings.NewReader("data: "), &again{text: line})
		h, err := listen(t, a)
		if err == nil || !strings.Contains(err.Error(), "too long") || len(h.events) > 0 {
			t.Errorf("%s without end: %d events, %v", name, len(h.events), err)
		}
	}
}

// again is a text without end.
type again struct {
	text string
	at   int
}

// Read reads as much as it can.
func (a *again) Read(to []byte) (int, error) {
	n := copy(to, a.text[a.at:])
	a.at = (a.at + n) % len(a.text)
	return n, nil
}

func TestBrokenStreamEndsWithItsCause(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for _, body := range []string{"data: 1\n\n", "data: 1\n\ndata: {}"} {
		a := stream("")
		a.body = io.MultiReader(strings.NewReader(body), iotest.ErrReader(broken))
		if h, err := listen(t, a); !errors.Is(err, broken) || !errors.Is(h.err, broken) || !slices.Equal(h.events, []string{"1"}) {
			t.Errorf("%q: %v, %v, events %q", body, err, h.err, h.events)
		}
	}
}

func TestAnAnswerIsReadByItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, whole, fails string }{
		{"application/json; charset=utf-8", `{"a":1}`, `{"a":1}`, ""},
		{"application/json", `{"error":"wrong"}`, "", "fault"},
		{"text/html; charset=utf-8", "<html>", "", "web page"},
		{"text/plain", "data: wrong\n\n", "", "fault"},
		{"", "data: 1\n\n", "", ""},
	} {
		a := stream(c.body)
		a.header = http.Header{"Content-Type": {c.kind}}
		h, err := listen(t, a)
		if h.whole != c.whole || (err == nil) != (c.fails == "") || (err != nil && !strings.Contains(fmt.Sprintf("%+v", err), c.fails)) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.body, h, err)
		}
	}
}

func TestRefusalUsesTheVendorsNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"X-Request-Id": "no (request req_1)", "Request-Id": "no (request req_1)", "X-Other": "no",
	} {
		a := stream("no")
		a.status, a.header = 429, http.Header{name: {"req_1"}, "Retry-After": {"2"}}
		_, err := listen(t, a)
		var e *llm.Error
		if !errors.As(err, &e) || e.Message != want || e.Status != 429 || e.RetryAfter.Seconds() != 2 {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

func TestARedirectIsARefusal(t *testing.T) {
	t.Parallel()
	a := stream("")
	a.status, a.header = 307, http.Header{"Location": {"http://elsewhere.test"}}
	var e *llm.Error
	if _, err := listen(t, a); !errors.As(err, &e) || e.Status != 307 || a.asked.URL.Host != "api.test" {
		t.Errorf("a redirect gave %v, and %s was asked", err, a.asked.URL)
	}
}

func TestRequestBodyIsSentUnchanged(t *testing.T) {
	t.Parallel()
	body, err := vendorapi.Encode(map[string]any{"a": "<b> & é", "n": json.Number("9007199254740993"), "r": json.RawMessage(`{"b": "<", "a":1e2}`)})
	if want := `{"a":"<b> & é","n":9007199254740993,"r":{"b":"<","a":1e2}}`; err != nil || string(body) != want {
		t.Errorf("%s, %v, want %s", body, err, want)
	}
	if _, err := vendorapi.Encode(func() {}); err == nil {
		t.Error("a function was written")
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("\ufeffdata: 1\r\ndata: 2\r\r\n: x\n\ndata: [DONE]")
	f.Fuzz(func(t *testing.T, body string) {
		all, err := listen(t, stream(body))
		if err != nil && !strings.Contains(body, "wrong") {
			t.Fatal(err)
		}
		one := stream("")
		one.body = iotest.OneByteReader(strings.NewReader(body))
		if slow, _ := listen(t, one); !slices.Equal(all.events, slow.events) || all.marked != slow.marked {
			t.Errorf("%q at once is %q, byte by byte %q", body, all.events, slow.events)
		}
		for _, e := range all.events {
			if strings.TrimSpace(e) == "" || strings.ContainsRune(e, '\r') {
				t.Errorf("%q holds the event %q", body, e)
			}
		}
	})
}
