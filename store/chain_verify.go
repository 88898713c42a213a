package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
)

// Chain is the chain of the commits that are a run's own.
type Chain struct {
	// Run is the run's id, "" where it was erased; Number is what tells it from all
	// others in the database, and is not given out again.
	Run    string
	Number int64
	// Origin begins the chain, together with the head of the commit that the run
	// shares with its base as the last.
	Origin Hash
	// Base is the number of the run that the first BaseSeq commits, with BaseEvents
	// events, are of; 0 for none.
	Base, BaseSeq, BaseEvents int64
	// Unchained is the number of the last commit from before there were chains.
	Unchained int64
}

// ChainLink is one commit in a chain.
type ChainLink struct {
	Header
	// Tag is what is stored of it; Tagged says whether anything is.
	Tag    Tag
	HasTag bool
	Digest Hash
	// Events are those of the commit, nil where it was erased.
	Events []engine.Event
	// Count is how many events there are.
	Count int64
	// Err says why the events cannot be read; there is no digest then.
	Err error
}

// What a Finding is of.
const (
	FoundChanged    = "changed"    // is not what was written
	FoundMissing    = "missing"    // is not there
	FoundAdded      = "added"      // was not written
	FoundUnreadable = "unreadable" // cannot be read any more
)

// Finding is something in a record that is not as it was written.
type Finding struct {
	Run  string `json:"run"`
	What string `json:"what"` // one of the Found constants
	// Commit is the number of the commit, 0 where it is none; First and Last are the
	// numbers of its events, and Nodes those that they are about.
	Commit int64    `json:"commit,omitempty"`
	First  int64    `json:"first,omitempty"`
	Last   int64    `json:"last,omitempty"`
	Nodes  []string `json:"nodes,omitempty"`
	// Message says it for people, in one line.
	Message string `json:"message"`
}

// ChainVerifier checks a chain link by link.
type ChainVerifier struct {
	// Head is the chain's after the link at hand.
	Head Hash
	// Seq and Events are how many commits and events there have been.
	Seq, Events int64

	chain Chain
	tag   Tag
	// expectedTag is the tag that the link before should have had where it had another, so
	// that a link is not found broken for the tag of the one before.
	expectedTag     *Tag
	previousUnknown bool // nothing is known of the link before
}

// NewChainVerifier begins where a chain does: at the head and the tag of its base.
func NewChainVerifier(c Chain, base Hash, tag Tag) *ChainVerifier {
	return &ChainVerifier{
		chain: c, Seq: c.BaseSeq, Events: c.BaseEvents,
		Head: FirstHead(base, c.Origin), tag: FirstTag(tag, c.Origin),
	}
}

// End is what a chain goes on from that shares all commits up to here: their head,
// and the tag that is stored of the last.
func (w *ChainVerifier) End() (Hash, Tag) {
	if w.Seq <= w.chain.Unchained {
		return Hash{}, 0
	}
	return w.Head, w.tag
}

// Verify checks the next link.
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

// resync goes on from the tag that is stored, since it was made of what was there.
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

// nodesOf are the nodes that events name.
func nodesOf(events []engine.Event) []string {
	var out []string
	for _, e := range events {
		if p := nodeOf(e); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// nodeOf is the path of the node that an event is about, "" for none.
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
