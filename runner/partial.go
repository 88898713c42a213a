package runner

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
)

// maxPartial bounds how many bytes of an answer that is cut off are kept.
const maxPartial = 64 << 10

// partialNotePrefix begins the key of a note behind the node's path.
const partialNotePrefix = "/partial:"

// addPartial adds to what the model call in flight has said; anew forgets what is before it.
func (a *attempt) addPartial(text string, anew bool) {
	if text == "" && !anew {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if anew {
		a.partial = a.partial[:0]
	}
	if room := maxPartial - len(a.partial); len(text) > room {
		text = text[:room]
	}
	a.partial = append(a.partial, text...)
}

// notePartial keeps what a model call had said when its run was cancelled, for people to
// read; it is no part of any history. A call that is cut off otherwise is made again.
func (a *attempt) notePartial(key string) {
	if !errors.Is(context.Cause(a.ctx), errAborted) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.partial
	for len(text) > 0 && !utf8.Valid(text) && len(a.partial)-len(text) < utf8.UTFMax {
		text = text[:len(text)-1]
	}
	if len(text) == 0 {
		return
	}
	a.pending = append(a.pending, &engine.NoteRecorded{
		Path: a.Path, Key: a.Path + partialNotePrefix + strings.TrimPrefix(key, a.Path+"/"),
		Value: map[string]any{"effect": key, "text": strings.ToValidUTF8(string(text), "\uFFFD")},
	})
}

// PartialOf is the text of a model's answer that was cut off when its run was cancelled,
// where a note is of one.
func PartialOf(n *engine.NoteRecorded) (text string, ok bool) {
	if !strings.HasPrefix(n.Key, n.Path+partialNotePrefix) {
		return "", false
	}
	o, _ := n.Value.(map[string]any)
	text, ok = o["text"].(string)
	return text, ok
}
