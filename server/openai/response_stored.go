package openai

import (
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/livetext"
)

// streamQuery reads whether a stored response is to be streamed, and the number of the last
// event that the client has, -1 for none.
func streamQuery(r *http.Request) (stream bool, after int, err error) {
	query := r.URL.Query()
	after = -1
	switch value := query.Get("stream"); value {
	case "", "false":
		return false, after, nil
	case "true":
	default:
		return false, after, server.InvalidRequest("query.stream", "expected true or false")
	}
	if text := query.Get("starting_after"); text != "" {
		if after, err = strconv.Atoi(text); err != nil || after < 0 {
			return false, after, server.InvalidRequest("query.starting_after", "expected the number of an event")
		}
	}
	return true, after, nil
}

// streamStored sends the events of a stored response after one of them. The text is one piece,
// so that each reader gets the same events under the same numbers; a response whose round runs
// is sent when the round rests. open returns the exchange of that round.
func streamStored(w http.ResponseWriter, c *server.Caller, rec *responseRecord, after int, open func() (*exchange, error)) {
	begun := maps.Clone(rec.Object)
	begun["status"], begun["output"], begun["usage"], begun["error"] = "in_progress", []any{}, nil, nil
	delete(begun, "completed_at")
	s := &responseStream{out: c.Events(w), object: begun, item: messageItem(begun, "", "in_progress"), after: after}
	defer s.out.Close()
	if s.lifecycle("created") != nil || s.lifecycle("in_progress") != nil || !s.awaitStored(rec, open) {
		return
	}
	s.object = rec.Object
	kind := "failed"
	if rec.Object["status"] == "completed" {
		kind = "completed"
		text := outputText(rec.Object)
		output, _ := rec.Object["output"].([]any)
		if s.say(text) != nil || s.end(text) != nil || s.sendCalls(output) != nil {
			return
		}
	}
	_ = s.lifecycle(kind) // the client has gone if it fails
}

// awaitStored waits until the round of a response rests, and completes the record. It returns
// false if the client has gone or the server stops; the client comes back then.
func (s *responseStream) awaitStored(rec *responseRecord, open func() (*exchange, error)) bool {
	if status := rec.Object["status"]; status != "in_progress" && status != "queued" {
		return true
	}
	x, err := open()
	if err != nil {
		return false
	}
	ctx := x.c.UntilDrain()
	err = livetext.Forward(ctx, x.reply.Items(ctx), func(*weir.Item) error { return nil }, func() error { return s.out.Send(": waiting\n\n") })
	return err == nil && x.finish(&responseBody{}, rec) == nil
}

// outputText returns the text of a complete response.
func outputText(object map[string]any) string {
	var text strings.Builder
	list, _ := object["output"].([]any)
	for _, v := range list {
		item, _ := v.(map[string]any)
		parts, _ := item["content"].([]any)
		for _, v := range parts {
			part, _ := v.(map[string]any)
			piece, _ := part["text"].(string)
			text.WriteString(piece)
		}
	}
	return text.String()
}

// listInputItems lists the messages of the request for a response.
func listInputItems(w http.ResponseWriter, r *http.Request, c *server.Caller) {
	id := r.PathValue("response")
	_, rec, err := responseOf(c, id)
	if err != nil {
		handle(w, c, err)
		return
	}
	writePage(w, r, itemsOf(strings.TrimPrefix(id, "resp_")+"_in", 0, rec.Input))
}
