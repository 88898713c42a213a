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

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/wire"
)

// maxPauses bounds how often one turn is gone on with.
const maxPauses = 16

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
			return nil, p.speaker.Refused("%v", err)
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
			return nil, &llm.Error{Code: engine.CodeModelUnavailable, Message: "anthropic: the server pauses its turn again and again"}
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
	res.Body = wire.Bound(res.Body)
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
		return wire.ErrPage
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
			return wire.Garbled(name, err)
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
