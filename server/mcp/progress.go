package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
)

// A call sends its first notifications at once, and more than manyNotifications at most every notificationPause.
const (
	manyNotifications = 100
	notificationPause = 100 * time.Millisecond
)

// wantsProgress reports whether a request asks for notifications, which need a stream as the answer. The body is read and put back.
func wantsProgress(r *http.Request) bool {
	data, err := io.ReadAll(r.Body)
	r.Body = &readBody{io.MultiReader(bytes.NewReader(data), failing{err}), r.Body}
	var q struct {
		Params struct {
			Meta struct {
				Token any `json:"progressToken"`
			} `json:"_meta"`
		} `json:"params"`
	}
	return err == nil && json.Unmarshal(data, &q) == nil && q.Params.Meta.Token != nil
}

// readBody is a body of which a part was read before.
type readBody struct {
	io.Reader
	io.Closer
}

// failing is what follows a part of a body: the error with which reading it ended, or its end.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// progress notifies the client of the nodes that start and end, until the run rests, if it asked for that. The run had so many events
// before the call: the answer to a question continues a run.
func (t *flowTool) progress(ctx context.Context, r *sdk.CallToolRequest, run string, before int64) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return
	}
	sent, last := 0, time.Time{}
	for it, err := range t.itemsOf(ctx, run, before) {
		if err != nil { // the result of the call says what happened to the run
			return
		}
		text := nodeText(&it)
		if text == "" || it.PathPrefix == "" && it.Number <= before || sent >= manyNotifications && time.Since(last) < notificationPause {
			continue
		}
		sent, last = sent+1, time.Now()
		p := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(before) + float64(sent), Message: text}
		if r.Session.NotifyProgress(ctx, p) != nil { // the client has gone; the call ends with its context
			return
		}
	}
}

// itemsOf yields what a run does after so many of its events until it rests.
func (t *flowTool) itemsOf(ctx context.Context, run string, before int64) iter.Seq2[weir.Item, error] {
	if x := t.c.App().ActiveRun(run); x != nil {
		return x.EventsAfter(ctx, before)
	}
	row, err := t.c.App().Store.Run(ctx, run)
	if err != nil || !row.Head.Status.Ended() {
		return func(func(weir.Item, error) bool) {}
	}
	return t.c.App().Follow(ctx, run, "")
}

// nodeText says what an item means for a node, "" for nothing.
func nodeText(it *weir.Item) string {
	switch e := it.Event.(type) {
	case *engine.NodeStarted:
		return it.PathPrefix + e.Path + " started"
	case *engine.NodeCompleted:
		return it.PathPrefix + e.Path + " completed"
	case *engine.NodeFailed:
		return it.PathPrefix + e.Path + " failed"
	}
	return ""
}
