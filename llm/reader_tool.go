package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/convo"
)

// ReaderTool is the name of the built-in tool with which a model reads tool results that
// its view shows cleared or shortened. It is offered together with a turn's own tools when
// there are such results.
const ReaderTool = "weir_result"

// readerPage is the maximum result of one call, in bytes.
const readerPage = 8000

func readerTool() Tool {
	return Tool{
		Name: ReaderTool,
		Description: "Reads an earlier tool result that is not shown in full, by the number its place holder gives. " +
			"Returns a part of the text; give from to go on where the last part ended.",
		Parameters: map[string]any{
			"type": "object", "required": []any{"result"}, "additionalProperties": false,
			"properties": map[string]any{
				"result": map[string]any{"type": "integer", "description": "The number of the result."},
				"from":   map[string]any{"type": "integer", "description": "Where to begin, in bytes. Default: 0."},
			},
		},
	}
}

// readResult answers a call of the tool from the history, which is not an effect.
func (t *turn) readResult(arguments string) (text string, failed bool) {
	var in struct {
		Result *int
		From   int
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil || in.Result == nil {
		return `Give the number of the result: {"result": 12}.`, true
	}
	pos := *in.Result
	if pos < t.lane.Epoch || pos >= t.lane.History.Len() {
		return fmt.Sprintf("There is no result %d.", pos), true
	}
	m, err := t.lane.History.Read(pos)
	if newest, at, lost := t.lane.History.Lookup(m.ID); err == nil && m.ID != "" && (at > pos || lost != nil) {
		m, err = newest, lost
	}
	if err != nil || m.Role != convo.Tool {
		return fmt.Sprintf("There is no result %d.", pos), true
	}
	if in.From < 0 || in.From >= max(len(m.Text), 1) {
		return fmt.Sprintf("The result has %d bytes; from %d there is nothing.", len(m.Text), in.From), true
	}
	from := in.From
	for from > 0 && !utf8.RuneStart(m.Text[from]) {
		from--
	}
	to := min(from+t.readerPageSize(), len(m.Text))
	for to < len(m.Text) && !utf8.RuneStart(m.Text[to]) {
		to--
	}
	if to == len(m.Text) {
		return m.Text[from:], false
	}
	return fmt.Sprintf("%s\n[bytes %d to %d of %d; go on with {\"result\": %d, \"from\": %d}]",
		m.Text[from:to], from, to, len(m.Text), pos, to), false
}

// readerPageSize returns the number of bytes that are read at once: few enough that a view
// shows them in full.
func (t *turn) readerPageSize() int {
	limit := t.window.viewSettings.MaxResult
	if limit <= 0 {
		limit = t.window.room / 8
	}
	return min(max(limit, 200), readerPage)
}
