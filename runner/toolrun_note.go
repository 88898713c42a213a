package runner

import (
	"context"
	"strings"

	"github.com/weir-run/weir/engine"
)

// toolRunNotePrefix is the prefix of a note's key after the node's path.
const toolRunNotePrefix = "/run:"

// noteToolRun records in the caller's journal that a tool call runs a flow, with the number of events that the
// run has already. Readers of the caller's stream read the run from there on.
func (x *Execution) noteToolRun(ctx context.Context, c *toolRun, events int64) error {
	return x.Do(ctx, func(*engine.Run) (engine.Event, error) {
		if c.cancelled.Load() {
			return nil, errAborted
		}
		return &engine.NoteRecorded{
			Path: c.path, Key: c.path + toolRunNotePrefix + strings.TrimPrefix(c.key, c.path+"/"),
			Value: map[string]any{"effect": c.key, "run": c.run, "events": events},
		}, nil
	})
}

// recordedToolRun is the run that a tool call of a node waits for, as its note has it.
type recordedToolRun struct {
	run    string
	effect string // the key of the call
	events int64  // that the run had
}

// toolRunOf returns the run in a note of noteToolRun.
func toolRunOf(n *engine.NoteRecorded) (t recordedToolRun, ok bool) {
	if !strings.HasPrefix(n.Key, n.Path+toolRunNotePrefix) {
		return t, false
	}
	o, _ := n.Value.(map[string]any)
	t.run, _ = o["run"].(string)
	t.effect, _ = o["effect"].(string)
	t.events, _ = o["events"].(int64)
	return t, t.run != "" && t.effect != ""
}
