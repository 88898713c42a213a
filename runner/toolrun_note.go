package runner

import (
	"strings"

	"github.com/weir-run/weir/engine"
)

// originTool is the origin of runs that tool calls of earlier versions have started. Their callers wait for child runs
// instead, so nothing waits for them.
const originTool = "tool"

// toolRunNotePrefix is the prefix of a note's key after the node's path.
const toolRunNotePrefix = "/run:"

// recordedToolRun is the run that a tool call of a node waits for, as its note has it.
type recordedToolRun struct {
	run    string
	effect string // the key of the call
	events int64  // that the run had
}

// toolRunOf returns the run that a note of an earlier version names: one that a tool call had started.
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
