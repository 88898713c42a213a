package openai

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-run/weir/server"
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
