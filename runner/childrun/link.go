package childrun

import (
	"reflect"

	"github.com/weir-run/weir/engine"
)

// Origin says what started a run.
type Origin uint8

// The origins of a run.
const (
	Root Origin = iota // nothing waits for the run
	Tool               // a tool call of an earlier version started it; nothing waits for it
	Node               // a node waits for it and its parent's journal has its reports
)

// LinkState is how far a run is in making itself known to its parent.
type LinkState uint8

// The states of a Link.
const (
	// Detached: the parent does not know that the run continues.
	Detached LinkState = iota
	// Attaching: the parent was asked. Answered follows.
	Attaching
	// Attached: the run may launch attempts.
	Attached
)

// String returns the name of the state.
func (s LinkState) String() string {
	return [...]string{"detached", "attaching", "attached"}[s]
}

// Request is what a child asks before it launches anything.
type Request uint8

// The requests of Continue.
const (
	// NoRequest: the child was asked for already, or is attached.
	NoRequest Request = iota
	// LaunchAtOnce: no permission is needed.
	LaunchAtOnce
	// AskParent: bring the report Sent to the parent and call Answered.
	AskParent
	// NobodyWaits: call Answered with NotAwaited.
	NobodyWaits
)

// Answer is what a child learns when it asks its parent.
type Answer uint8

// The answers to a request to attach.
const (
	// ParentEnded: the parent has ended or was deleted. The child continues alone.
	ParentEnded Answer = iota
	// NotAwaited: no node of the parent waits for the child.
	NotAwaited
	// ReportFirst: the parent applies the report and is asked again. No final answer.
	ReportFirst
	// Accepted: the parent has the report. The child waits until the parent itself is
	// attached.
	Accepted
	// Unavailable: the parent cannot be executed here.
	Unavailable
)

// Permission is what a child does after an answer.
type Permission uint8

// The permissions of Answered.
const (
	// NoPermission: the answer changes nothing.
	NoPermission Permission = iota
	// Launch: what waited for the parent may start. The parent is no longer involved.
	Launch
	// LaunchBelow: as Launch. The parent is executed here: the run draws on the parent's
	// budgets, and readers of the parent see the run.
	LaunchBelow
	// LaunchCancelled: as Launch, after the run has requested its own cancellation, since
	// nothing waits for it.
	LaunchCancelled
	// Abort: end the execution with the error of the attempt to attach.
	Abort
)

// Link is a run's knowledge of its parent. One goroutine at a time uses it. The zero value
// is Detached.
type Link struct {
	state     LinkState
	hasParent bool                  // attached to a parent that is executed here
	sent      *engine.ChildReported // the last report that the parent has
}

// State returns how far the run is in making itself known.
func (l *Link) State() LinkState { return l.state }

// Sent returns the last report for the parent, nil before the first.
func (l *Link) Sent() *engine.ChildReported { return l.sent }

// MayLaunch reports whether a run of that origin may launch attempts.
func (l *Link) MayLaunch(o Origin) bool { return o == Root || l.state == Attached }

// Continue returns the event that the run has something to do. The report is called where the
// parent is to be asked. A run under a recorded program executes nothing, so that its
// parent need not know before the end of the execution.
func (l *Link) Continue(o Origin, recorded bool, report func() *engine.ChildReported) Request {
	switch {
	case l.state != Detached:
		return NoRequest
	case o == Root, recorded:
		l.state = Attached
		return LaunchAtOnce
	case o == Tool:
		l.state = Attaching
		return NobodyWaits
	}
	l.state, l.sent = Attaching, report()
	return AskParent
}

// Answered returns the event that a request of Continue was answered. A run that is stopping,
// since it is cancelled or its process shuts down, needs no parent.
func (l *Link) Answered(a Answer, stopping bool) Permission {
	if l.state != Attaching || a == ReportFirst {
		return NoPermission
	}
	l.state = Attached
	switch {
	case a == NotAwaited && !stopping:
		return LaunchCancelled
	case a == Accepted:
		l.hasParent = true
		return LaunchBelow
	case a == Unavailable && !stopping:
		return Abort
	}
	return Launch
}

// Increased returns the event that people may have increased budgets of runs above. It reports
// whether the parent must be asked again before anything that counts on it is launched.
func (l *Link) Increased(increases []engine.Account) bool {
	if l.state != Attached || !l.hasParent || reflect.DeepEqual(l.sent.Increases, increases) {
		return false
	}
	l.state, l.hasParent = Detached, false
	return true
}

// IsNews reports whether the parent must hear of what the run asks while it continues. A
// run that pauses or ends reports that at the end of its execution.
func (l *Link) IsNews(s engine.Status, asked []engine.Interrupt) bool {
	return l.hasParent && s != engine.Paused && !s.Ended() && !SameInterrupts(l.sent.Interrupts, asked)
}

// Notified is the event that the report was sent to the parent.
func (l *Link) Notified(report *engine.ChildReported) { l.sent = report }

// End is how the execution of a child ended.
type End uint8

// The ends of an execution.
const (
	Rests   End = iota // the run has ended or pauses, and that is durable
	Closing            // the process shuts down
	Lost               // another process owns the run
	Broken             // the execution failed; the run is as its journal has it
)

// Handover is what follows for the parent from the end of a child's execution.
type Handover uint8

// The handovers of Ended.
const (
	// NoHandover: nothing.
	NoHandover Handover = iota
	// Report: bring a report to the parent.
	Report
	// Rejoin: have the parent forget the child and join it again.
	Rejoin
	// AbortParent: end the parent's execution with the error of the child's.
	AbortParent
)

// Ended returns the event that the execution of the run has ended. The caller starts with a
// zero Link when it executes the run again.
func (l *Link) Ended(o Origin, e End) Handover {
	if o != Node {
		return NoHandover
	}
	switch e {
	case Rests:
		return Report
	case Lost:
		return Rejoin
	case Broken:
		return AbortParent
	case Closing: // the next process joins the child
	}
	return NoHandover
}
