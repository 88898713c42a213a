package runner

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
)

// maxPartial is the maximum size of a stored interrupted answer, in bytes.
const maxPartial = 64 << 10

// partialNotePrefix is the prefix of a note's key after the node's path.
const partialNotePrefix = "/partial:"

// startPartial discards the output of the effect before.
func (a *attempt) startPartial(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partial, a.partialKey = a.partial[:0], key
}

// addPartial adds to the output of the current model call; anew discards the earlier output.
func (a *attempt) addPartial(text string, fromStart bool) {
	if text == "" && !fromStart {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if fromStart {
		a.partial = a.partial[:0]
	}
	if room := maxPartial - len(a.partial); len(text) > room {
		text = text[:room]
	}
	a.partial = append(a.partial, text...)
}

// notePartial records the output of a model call when its run is cancelled or its process stops, for people to read; it is
// not part of any history. The call is repeated when the run is resumed.
func (a *attempt) notePartial(key string) {
	if !a.isStopped() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.partialNote(key); n != nil {
		a.pending = append(a.pending, n)
	}
}

// isStopped reports whether the attempt was stopped with its run or process, which cancels the context of all its runs,
// and not by a timeout.
func (a *attempt) isStopped() bool {
	cause := context.Cause(a.ctx)
	return errors.Is(cause, errAborted) || errors.Is(cause, errClosing) || errors.Is(cause, context.Canceled)
}

// partialNote returns the note with the output of an effect, nil if it has none; a.mu is held.
func (a *attempt) partialNote(key string) *engine.NoteRecorded {
	text := a.partial
	for len(text) > 0 && !utf8.Valid(text) && len(a.partial)-len(text) < utf8.UTFMax {
		text = text[:len(text)-1]
	}
	if len(text) == 0 {
		return nil
	}
	return &engine.NoteRecorded{
		Path: a.Path, Key: a.Path + partialNotePrefix + strings.TrimPrefix(key, a.Path+"/"),
		Value: map[string]any{"effect": key, "text": strings.ToValidUTF8(string(text), "\uFFFD")},
	}
}

// PartialOf returns the interrupted model answer in a note, if it has one.
func PartialOf(n *engine.NoteRecorded) (text string, ok bool) {
	if !strings.HasPrefix(n.Key, n.Path+partialNotePrefix) {
		return "", false
	}
	o, _ := n.Value.(map[string]any)
	text, ok = o["text"].(string)
	return text, ok
}
