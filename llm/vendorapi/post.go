package vendorapi

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
	"time"

	"github.com/weir-run/weir/llm"
)

// trailerWait is how long an answer that is whole waits for its usage and the end of the stream: some servers send
// neither and keep the connection open.
const trailerWait = 3 * time.Second

// maxRequestID limits a vendor's request id, in bytes.
const maxRequestID = 100

// AnswerReader reads an answer, its events in order.
type AnswerReader interface {
	// Event reads the JSON of one event and returns true when the answer is complete.
	Event(data []byte) (done bool, err error)
	// Object reads an answer that a server sent as one object instead of a stream.
	Object(data []byte) error
	// Ended reports whether the answer is whole and only its usage or an end mark may follow. Post waits for these for
	// trailerWait, and then calls End as if the server had sent [DONE].
	Ended() bool
	// End is called if the stream ends before Event returned true. marked reports whether the server sent [DONE]; err
	// is the read error, nil if the server ended the stream.
	End(marked bool, err error) error
}

// Endpoint is an address of a vendor's API with the settings of one provider. It is safe for concurrent use once its
// fields are set.
type Endpoint struct {
	// Client sends the requests; see the function Client.
	Client *http.Client
	// Sign adds the headers of every request: the key and the API's version. It is a function so that printing the
	// endpoint does not print the key.
	Sign func(http.Header)
	// Refused converts an unsuccessful answer to an error.
	Refused func(status int, header http.Header, body []byte) *llm.Error
	// Fault returns the error in an event, or in the object, of an answer with a successful status; nil if there is
	// none.
	Fault func(data []byte) *llm.Error
}

// Post sends body, which is JSON, with header added to the headers of Sign, and passes the answer to r. It sends one
// request: nothing is repeated, and redirects are followed only if the client does. The error is that of Refused,
// Fault or r, ErrNotAPI, or the reason why the exchange ended; ErrorFormatter.Failure converts it for other packages.
func (e *Endpoint) Post(ctx context.Context, address string, header http.Header, body []byte, r AnswerReader) error {
	connected, disconnect := context.WithCancel(ctx)
	defer disconnect()
	req, err := http.NewRequestWithContext(connected, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used") // the error's text contains the address
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "weir")
	e.Sign(req.Header)
	maps.Copy(req.Header, header)
	res, err := e.Client.Do(req) //nolint:bodyclose // Refusal or answer closes the body
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return e.refuse(res)
	}
	answer := LimitBody(ctx, res.Body)
	defer func() { _ = answer.Close() }() // nothing remains to be read
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		return e.readWhole(answer, r)
	case err == nil && kind == "text/html":
		return ErrNotAPI
	}
	return e.readEvents(ctx, disconnect, newEvents(answer), r)
}

// Ping sends a GET request that costs nothing, such as one for the list of models. It
// returns nil if the API answers and accepts the key. A server that does not have the
// address (404, 405, 501) does answer: not every compatible server lists its models. The
// error is like that of Post.
func (e *Endpoint) Ping(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return errors.New("the address is not valid") // the error's own text contains it
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "weir")
	e.Sign(req.Header)
	res, err := e.Client.Do(req)
	if err != nil {
		return err
	}
	switch code := res.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		_, err = Refusal(res)
		return err
	case code >= http.StatusMultipleChoices:
		return e.refuse(res)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if _, err := Refusal(res); err != nil {
		return err
	}
	if kind == "text/html" {
		return ErrNotAPI
	}
	return nil
}

func (e *Endpoint) refuse(res *http.Response) error {
	body, err := Refusal(res)
	if err != nil {
		return err
	}
	refused := e.Refused(res.StatusCode, res.Header, body)
	if id := requestID(res.Header); id != "" {
		refused.Message += " (request " + id + ")"
	}
	return refused
}

// requestID returns the vendor's id of the request, which its support needs.
func requestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id"} {
		if id := h.Get(name); id != "" && len(id) <= maxRequestID {
			return id
		}
	}
	return ""
}

func (e *Endpoint) readWhole(body io.Reader, r AnswerReader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if fault := e.Fault(data); fault != nil {
		return fault
	}
	return r.Object(data)
}

// readEvents reads the events of the call of ctx. It calls disconnect when it has waited long enough for what follows
// a whole answer.
func (e *Endpoint) readEvents(ctx context.Context, disconnect func(), events *eventReader, r AnswerReader) error {
	var wait *time.Timer
	defer func() {
		if wait != nil {
			wait.Stop()
		}
	}()
	for {
		data, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			return r.End(false, nil)
		case err != nil && r.Ended() && ctx.Err() == nil:
			return r.End(true, nil)
		case err != nil:
			return r.End(false, fmt.Errorf("read stream: %w", err))
		case isDone(data):
			return r.End(true, nil)
		}
		if fault := e.Fault(data); fault != nil {
			return fault
		}
		if done, err := r.Event(data); err != nil || done {
			return err
		}
		if wait == nil && r.Ended() {
			wait = time.AfterFunc(trailerWait, disconnect)
		}
	}
}

// Encode encodes a request's body. Characters are not escaped for HTML, which would make bodies longer and prompts
// unreadable in a trace.
func Encode(body any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
