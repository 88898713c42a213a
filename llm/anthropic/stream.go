package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/weir-run/weir/llm"
)

const (
	// maxAnswer bounds what is read of one answer, in bytes.
	maxAnswer = 128 << 20
	// maxPauses bounds how often one turn is gone on with.
	maxPauses = 16
)

var errAnswerTooLong = errors.New("the answer is longer than any model's")

// generate makes a call. Where the vendor pauses a long turn ("pause_turn") it
// is sent what it said so far and goes on.
func (p *Provider) generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	params, err := p.params(req)
	if err != nil {
		return nil, err
	}
	a := &answer{emit: emit, key: req.Key, asked: req.Model, model: req.Model}
	asked := slices.Clip(params.Messages)
	for pauses := 0; ; pauses++ {
		body, err := encode(params)
		if err != nil {
			return nil, p.refused("%v", err)
		}
		a.stop, a.paused = "", false
		if err := p.ask(ctx, body, newReader(p, a)); err != nil {
			return nil, err
		}
		called := slices.ContainsFunc(a.blocks, func(b *building) bool { return b.call != nil })
		if !a.paused || called || len(a.blocks) == 0 {
			return a.complete(p), nil
		}
		if pauses == maxPauses {
			return nil, &llm.Error{Code: codeUnavailable, Message: "anthropic: the server pauses its turn again and again"}
		}
		sofar := sdk.MessageParam{Role: sdk.MessageParamRoleAssistant}
		for _, raw := range a.raw() {
			sofar.Content = append(sofar.Content, param.Override[sdk.ContentBlockParamUnion](raw))
		}
		params.Messages = append(asked, sofar)
	}
}

// ask sends a body and gives the answer to r. The SDK's own stream is not used:
// its errors carry the request and it cannot tell a cut stream from a finished
// one.
func (p *Provider) ask(ctx context.Context, body []byte, r *reader) error {
	var res *http.Response
	err := p.client.Post(ctx, path, nil, &res, option.WithRequestBody("application/json", body))
	if err != nil {
		return err
	}
	if res == nil || res.Body == nil {
		return errors.New("the server gave no answer")
	}
	res.Body = &bounder{body: res.Body, left: maxAnswer}
	defer func() { _ = res.Body.Close() }() // nothing is left to lose
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/json":
		data, err := io.ReadAll(res.Body)
		if err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		return r.whole(data)
	case err == nil && kind == "text/html":
		return errors.New("the server answered with a web page: is the base URL right?")
	}
	return p.readEvents(ssestream.NewDecoder(res), r)
}

func (p *Provider) readEvents(events ssestream.Decoder, r *reader) error {
	for events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return garbled(err)
		}
		done, err := r.event(&e)
		if err != nil || done {
			return err
		}
	}
	if err := events.Err(); err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	return r.end()
}

// cut is a stream that ended before its answer did.
func cut() *llm.Error {
	return &llm.Error{Code: codeUnavailable, Message: "anthropic: the stream ended before the answer did", Retry: true}
}

// garbled is an event that cannot be read.
func garbled(err error) *llm.Error {
	return &llm.Error{Code: codeUnavailable, Message: "anthropic: the stream holds what is no event: " + err.Error(), Retry: true}
}

// bounder reads no more of a body than an answer may be long.
type bounder struct {
	body io.ReadCloser
	left int
}

// Read reads, and fails with errAnswerTooLong past the bound.
func (b *bounder) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, errAnswerTooLong
	}
	n, err := b.body.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}

// Close closes the body.
func (b *bounder) Close() error { return b.body.Close() }
