package runner

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// liveText is what the nodes of an execution have streamed of calls that have not
// ended, by path. The hub's lock guards it.
type liveText map[string]*streamed

// streamed is the output of a call so far.
type streamed struct {
	attempt         int
	text, reasoning strings.Builder
}

// add notes a piece of live output. What a call gave before it is made again is
// void.
func (l liveText) add(it *Item) {
	s := l[it.Path]
	if s == nil || s.attempt != it.Attempt || it.Chunk.Wait > 0 {
		s = &streamed{attempt: it.Attempt}
		l[it.Path] = s
	}
	s.text.WriteString(it.Chunk.Text)
	s.reasoning.WriteString(it.Chunk.Reasoning)
}

// drop forgets what an event has the result of, or voids.
func (l liveText) drop(e engine.Event) {
	switch e := e.(type) {
	case *engine.EffectCompleted:
		path, _, _ := cutLast(e.Key, '/')
		delete(l, path)
	case *engine.NodeCompleted, *engine.NodeFailed, *engine.NodeCancelled, *engine.NodeWaiting, *engine.NodeRetrying:
		delete(l, engine.NodeOf(e))
	}
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// snapshots are the output so far of each call, by path.
func (l liveText) snapshots(at int64) []Item {
	var out []Item
	for path, s := range l { // order: sorted below.
		if s.text.Len()+s.reasoning.Len() > 0 {
			out = append(out, Item{At: at, Path: path, Attempt: s.attempt, Snapshot: true, Chunk: &llm.Chunk{Text: s.text.String(), Reasoning: s.reasoning.String()}})
		}
	}
	slices.SortFunc(out, func(a, b Item) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// committed notes that the events of a commit are durable.
func (h *hub) committed(c *engine.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = c.First + int64(len(c.Events)) - 1
	if len(h.live) > 0 {
		for _, e := range c.Events {
			h.live.drop(e)
		}
	}
}
