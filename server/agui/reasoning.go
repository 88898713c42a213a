package agui

import (
	"strconv"
	"strings"

	"github.com/weir-run/weir"
)

// thought is the reasoning of a model call that is being sent.
type thought struct {
	key   string // of the effect
	id    string // of the message, "" while none is open
	sent  string
	count int // of messages
}

// reason sends the reasoning of nodes that speak, while it is made. The reasoning of a call that is made again ends, and that of the
// new call is another message.
func (e *events) reason(it *weir.Item) error {
	if it.PathPrefix != "" || !e.speakers[it.Path] {
		return nil
	}
	key := it.Path + " " + it.Effect
	if it.Retracted && key == e.thought.key {
		return e.endReasoning()
	}
	if it.Chunk == nil || it.Chunk.Reasoning == "" {
		return nil
	}
	text := it.Chunk.Reasoning
	if it.Snapshot && key == e.thought.key {
		rest, ok := strings.CutPrefix(text, e.thought.sent)
		if ok && rest == "" {
			return nil
		}
		if ok {
			text = rest
		} else if err := e.endReasoning(); err != nil {
			return err
		}
	}
	if e.thought.key != key || e.thought.id == "" {
		if err := e.beginReasoning(key); err != nil {
			return err
		}
	}
	e.thought.sent += text
	return e.send("REASONING_MESSAGE_CONTENT", map[string]any{"messageId": e.thought.id, "delta": text})
}

func (e *events) beginReasoning(key string) error {
	if err := e.endReasoning(); err != nil {
		return err
	}
	if err := e.endText(); err != nil {
		return err
	}
	e.thought.count++
	e.thought.key, e.thought.sent = key, ""
	e.thought.id = "reasoning_" + e.round.reply.Message + "_" + e.round.in.RunID + "_" + strconv.Itoa(e.thought.count)
	id := map[string]any{"messageId": e.thought.id}
	if err := e.send("REASONING_START", id); err != nil {
		return err
	}
	return e.send("REASONING_MESSAGE_START", merge(id, map[string]any{"role": "reasoning"}))
}

// endReasoning closes the open message of reasoning.
func (e *events) endReasoning() error {
	if e.thought.id == "" {
		return nil
	}
	id := map[string]any{"messageId": e.thought.id}
	e.thought.id = ""
	if err := e.send("REASONING_MESSAGE_END", id); err != nil {
		return err
	}
	return e.send("REASONING_END", id)
}
