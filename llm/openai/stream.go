package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/weir-run/weir/llm/wire"
)

// reader takes a stream's events in order.
type reader interface {
	// event takes one event's JSON; it returns true once the answer is whole.
	event(data []byte) (done bool, err error)
	// whole takes an answer that a server gave as one object instead.
	whole(data []byte) error
	// end is the stream's end without event having returned true; marked says
	// that the server wrote [DONE].
	end(marked bool) error
}

// ask sends a request by send and gives the answer to r. The SDK's own stream
// is not used: it ends on "error": null and cannot tell a cut stream from a
// finished one.
func (p *Provider) ask(ctx context.Context, key string, send func(context.Context, ...option.RequestOption) error, r reader) error {
	var res *http.Response
	options := []option.RequestOption{option.WithResponseBodyInto(&res)}
	if key != "" {
		options = append(options, option.WithHeader("Idempotency-Key", key))
	}
	if err := send(ctx, options...); err != nil {
		return err
	}
	if res == nil || res.Body == nil {
		return errors.New("the server gave no answer")
	}
	res.Body = wire.Bound(res.Body)
	defer func() { _ = res.Body.Close() }() // nothing is left to lose
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		return p.readWhole(res.Body, r)
	case err == nil && kind == "text/html":
		return wire.ErrPage
	}
	return p.readEvents(ssestream.NewDecoder(res), r)
}

func (p *Provider) readWhole(body io.Reader, r reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if f, ok := streamFault(data); ok {
		return p.classify(0, f)
	}
	return r.whole(data)
}

func (p *Provider) readEvents(events ssestream.Decoder, r reader) error {
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			return r.end(true)
		}
		if len(data) == 0 {
			continue
		}
		if f, ok := streamFault(data); ok {
			return p.classify(0, f)
		}
		done, err := r.event(data)
		if err != nil || done {
			return err
		}
	}
	if err := events.Err(); err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	return r.end(false)
}

// streamFault finds an error said inside a successful answer: {"error": ...},
// or the Responses API's event of type error.
func streamFault(data []byte) (fault, bool) {
	var top struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
		// A Response that failed carries its error beside its object.
		Object string `json:"object"`
	}
	if json.Unmarshal(data, &top) != nil || top.Object == "response" {
		return fault{}, false
	}
	switch {
	case wire.Given(top.Error):
		return decodeFault(top.Error), true
	case top.Type == "error":
		f := decodeFault(data)
		f.Type = ""
		return f, true
	}
	return fault{}, false
}
