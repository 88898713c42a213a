package history

import (
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// CutOff is the part of a model's answer that had arrived when its run was cancelled or its process stopped. It is
// in no history.
type CutOff struct {
	Node string `json:"node"`
	Text string `json:"text"`
}

// CutOffs returns the answers that were cut off in a run, in the order of their notes.
func CutOffs(v *runner.RunView) []CutOff {
	var list []CutOff
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if n, ok := e.(*engine.NoteRecorded); ok {
				if text, ok := runner.PartialOf(n); ok {
					list = append(list, CutOff{n.Path, text})
				}
			}
		}
	}
	return list
}
