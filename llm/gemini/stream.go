package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"

	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// reader takes an answer's events in order.
type reader interface {
	// event takes one event's JSON; it returns true once the answer is whole.
	event(data []byte) (done bool, err error)
	// whole takes an answer that a server gave as one object instead.
	whole(data []byte) error
	// end is the answer's end without event having returned true. err is why
	// reading ended, nil where the server ended it.
	end(err error) error
}

// receive reads x's answer.
func (p *Provider) receive(req *llm.Request, x *exchange, emit func(llm.Chunk)) (*llm.Response, error) {
	a := newAnswer(req, emit)
	var r reader = &generateReader{p: p, answer: a}
	if interacts(req) {
		r = &interactionReader{p: p, answer: a, steps: map[int]*step{}, keep: req.Keep}
	}
	if x.res == nil || x.res.Body == nil {
		return nil, errors.New("the server gave no answer")
	}
	body := wire.Bound(x.res.Body)
	defer func() { _ = body.Close() }() // nothing is left to lose
	kind, _, err := mime.ParseMediaType(x.res.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		err = p.readWhole(body, r)
	case err == nil && kind == "text/html":
		err = wire.ErrPage
	default:
		err = p.readEvents(body, r)
	}
	if err != nil {
		return nil, err
	}
	return a.complete(p)
}

// readWhole reads one object, or a list of what would be the events.
func (p *Provider) readWhole(body io.Reader, r reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		if f, ok := streamFault(data); ok {
			return p.classify(0, f)
		}
		return r.whole(data)
	}
	for _, data := range list {
		if done, err := p.take(data, r); err != nil || done {
			return err
		}
	}
	return r.end(nil)
}

func (p *Provider) readEvents(body io.Reader, r reader) error {
	events := &events{in: bufio.NewReader(body)}
	for {
		data, err := events.next()
		if len(data) > 0 {
			if bytes.Equal(data, []byte("[DONE]")) {
				return r.end(nil)
			}
			if done, err := p.take(data, r); err != nil || done {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return r.end(nil)
		}
		if err != nil {
			return r.end(fmt.Errorf("read stream: %w", err))
		}
	}
}

func (p *Provider) take(data []byte, r reader) (bool, error) {
	if f, ok := streamFault(data); ok {
		return false, p.classify(0, f)
	}
	return r.event(data)
}

// streamFault finds an error said inside a successful answer.
func streamFault(data []byte) (fault, bool) {
	var top struct {
		Error json.RawMessage `json:"error"`
		// An interaction that failed carries its errors among its fields.
		Object string `json:"object"`
	}
	if json.Unmarshal(data, &top) != nil || top.Object == "interaction" || !wire.Given(top.Error) {
		return fault{}, false
	}
	return decodeFault(top.Error), true
}

// events reads server-sent events: their data, whatever their names. An event
// that the end of the stream cuts is given too, since servers leave out the
// last empty line.
type events struct {
	in *bufio.Reader
}

// next is the data of the next event that has some, and the error that ended
// the stream behind it.
func (e *events) next() ([]byte, error) {
	var data []byte
	for {
		line, err := e.in.ReadBytes('\n')
		line = bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), []byte("\ufeff"))
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		if err != nil || (len(line) == 0 && data != nil) {
			return bytes.TrimSpace(data), err
		}
	}
}
