package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
)

// Chain is the chain of a run's own commits.
type Chain struct {
	// Run is the run's id, "" if it was erased; Number identifies it in the database and is never reused.
	Run    string
	Number int64
	// Origin starts the chain, together with the head of the last commit that the run shares with its base.
	Origin Hash
	// Base is the number of the run to which the first BaseSeq commits, with BaseEvents events, belong; 0 for none.
	Base, BaseSeq, BaseEvents int64
	// Unchained is the number of the last commit from before chains existed.
	Unchained int64
}

// ChainLink is one commit in a chain.
type ChainLink struct {
	Header
	// Tag is its stored tag; Tagged reports whether there is one.
	Tag    Tag
	HasTag bool
	Digest Hash
	// Events are those of the commit, nil if it was erased.
	Events []engine.Event
	// Count is the number of events.
	Count int64
	// Err is the reason why the events cannot be read; there is no digest then.
	Err error
}

// The kinds of a Finding.
const (
	FoundChanged    = "changed"    // differs from what was written
	FoundMissing    = "missing"    // is missing
	FoundAdded      = "added"      // was added
	FoundUnreadable = "unreadable" // is unreadable
)

// Finding is a part of a record that differs from what was written.
type Finding struct {
	Run  string `json:"run"`
	What string `json:"what"` // one of the Found constants
	// Commit is the number of the commit, 0 if it concerns none; First and Last are the numbers of its events, and
	// Nodes the nodes in them.
	Commit int64    `json:"commit,omitempty"`
	First  int64    `json:"first,omitempty"`
	Last   int64    `json:"last,omitempty"`
	Nodes  []string `json:"nodes,omitempty"`
	// Message describes it on one line.
	Message string `json:"message"`
}

// ChainVerifier verifies a chain link by link.
type ChainVerifier struct {
	// Head is the head of the chain after the current link.
	Head Hash
	// Seq and Events are the numbers of commits and events so far.
	Seq, Events int64

	chain Chain
	tag   Tag
	// expectedTag is the tag that the previous link should have had if its stored tag differs, so that only one of
	// the two links is reported.
	expectedTag     *Tag
	previousUnknown bool // the previous link is unknown
}

// NewChainVerifier starts at the head and the tag of the chain's base.
func NewChainVerifier(c Chain, base Hash, tag Tag) *ChainVerifier {
	return &ChainVerifier{
		chain: c, Seq: c.BaseSeq, Events: c.BaseEvents,
		Head: FirstHead(base, c.Origin), tag: FirstTag(tag, c.Origin),
	}
}

// End returns the start of a chain that shares all commits so far: their head, and the stored tag of the last.
func (w *ChainVerifier) End() (Hash, Tag) {
	if w.Seq <= w.chain.Unchained {
		return Hash{}, 0
	}
	return w.Head, w.tag
}

// Verify verifies the next link.
func (w *ChainVerifier) Verify(l *ChainLink) []Finding {
	var out []Finding
	if l.Seq != w.Seq+1 {
		out = append(out, w.missingCommits(l.Seq))
	}
	w.Seq = l.Seq
	if l.Err != nil {
		what := FoundUnreadable
		if errors.Is(l.Err, ErrNotCanonical) {
			what = FoundChanged
		}
		out = append(out, w.newFinding(l, what, "cannot be read: "+l.Err.Error()))
		w.Events += l.Count
		w.resync(l, nil)
		return out
	}
	if l.First != w.Events+1 && len(out) == 0 {
		out = append(out, w.newFinding(l, FoundChanged, fmt.Sprintf("begins with event %d, and the one before ends with %d", l.First, w.Events)))
	}
	w.Events = l.First + l.Count - 1
	if l.Seq <= w.chain.Unchained {
		w.Head, w.tag = FirstHead(Hash{}, w.chain.Origin), FirstTag(0, w.chain.Origin)
		if l.HasTag {
			out = append(out, w.newFinding(l, FoundChanged, "has a link, and is from before there were any"))
		}
		return out
	}
	w.Head = w.Head.Next(l.Header, l.Digest)
	is := w.tag.Next(l.Header, l.Digest)
	switch {
	case !l.HasTag:
		out = append(out, w.newFinding(l, FoundAdded, "has no link in the chain"))
	case is == l.Tag, w.previousUnknown:
		w.resync(l, nil)
		return out
	case w.expectedTag != nil && w.expectedTag.Next(l.Header, l.Digest) == l.Tag:
		w.resync(l, nil)
		return out
	case len(out) == 0:
		out = append(out, w.newFinding(l, FoundChanged, "is not what was written there"))
	}
	w.resync(l, &is)
	return out
}

// resync continues from the stored tag, which was computed from the original link.
func (w *ChainVerifier) resync(l *ChainLink, other *Tag) {
	w.tag, w.expectedTag, w.previousUnknown = l.Tag, other, !l.HasTag
	if w.previousUnknown && other != nil {
		w.tag, w.previousUnknown = *other, false
	}
}

func (w *ChainVerifier) missingCommits(next int64) Finding {
	f := Finding{Run: w.chain.Run, What: FoundMissing, Commit: w.Seq + 1}
	f.Message = fmt.Sprintf("commit %d is missing", w.Seq+1)
	if next > w.Seq+2 {
		f.Message = fmt.Sprintf("commits %d to %d are missing", w.Seq+1, next-1)
	}
	w.previousUnknown, w.expectedTag = true, nil
	return f
}

func (w *ChainVerifier) newFinding(l *ChainLink, what, says string) Finding {
	f := Finding{Run: w.chain.Run, What: what, Commit: l.Seq}
	f.Message = fmt.Sprintf("commit %d", l.Seq)
	if l.Count > 0 {
		f.First, f.Last = l.First, l.First+l.Count-1
		f.Message += fmt.Sprintf(" (event %d", f.First)
		if l.Count > 1 {
			f.Message = fmt.Sprintf("commit %d (events %d to %d", l.Seq, f.First, f.Last)
		}
		if f.Nodes = nodesOf(l.Events); len(f.Nodes) > 0 {
			f.Message += ", " + listNodes(f.Nodes)
		}
		f.Message += ")"
	}
	f.Message += " " + says
	return f
}

// listNodes names at most three nodes.
func listNodes(nodes []string) string {
	const shown = 3
	out := "node "
	for i, n := range nodes {
		switch {
		case i == shown:
			return fmt.Sprintf("%s and %d more", out, len(nodes)-shown)
		case i > 0:
			out += ", "
		}
		out += n
	}
	return out
}

// nodesOf returns the nodes in the events.
func nodesOf(events []engine.Event) []string {
	var out []string
	for _, e := range events {
		if p := nodeOf(e); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// nodeOf returns the path of the node in an event, "" for none.
func nodeOf(e engine.Event) string {
	switch e := e.(type) {
	case *engine.NodeStarted:
		return e.Path
	case *engine.NodeResumed:
		return e.Path
	case *engine.NodeWaiting:
		return e.Path
	case *engine.NodePulling:
		return e.Path
	case *engine.NodeExpanded:
		return e.Path
	case *engine.NodeCompleted:
		return e.Path
	case *engine.NodeFailed:
		return e.Path
	case *engine.NodeRetrying:
		return e.Path
	case *engine.NodeErrored:
		return e.Path
	case *engine.NodeSkipped:
		return e.Path
	case *engine.NodeNotNeeded:
		return e.Path
	case *engine.NodeCancelled:
		return e.Path
	case *engine.NodeOverridden:
		return e.Path
	case *engine.StepRecorded:
		return e.Path
	case *engine.NoteRecorded:
		return e.Path
	case *engine.EffectStarted:
		return trimAfterLast(e.Key, "/")
	case *engine.EffectCompleted:
		return trimAfterLast(e.Key, "/")
	case *engine.InterruptAnswered:
		return trimAfterLast(e.ID, ":")
	case *engine.ChildReported:
		return trimAfterLast(e.ID, ":")
	case *engine.TimerFired:
		return trimAfterLast(e.ID, ":")
	}
	return ""
}

func trimAfterLast(s, sep string) string { return s[:max(0, strings.LastIndex(s, sep))] }
