package history

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// Timeline is what happened to each node of a run, read from its journal. It includes the
// nodes of iterations that are over.
type Timeline struct {
	Nodes map[string]*NodeRecord
	Order []string // paths, in flow order; the nodes of iterations follow their composite
	// approvals are the answers that people gave for the whole run, by Interrupt.Event.
	approvals map[string]InterruptRecord
}

// NodeRecord is what a journal says about one node.
type NodeRecord struct {
	Path     string
	Type     string
	Status   engine.Status
	Attempts int
	Started  int64 // Unix milliseconds; of the last attempt
	Ended    int64 // Unix milliseconds; 0 while it has not
	Entered  int64 // number of the event that last started or resumed it
	Micros   int64 // duration of the function, last entry
	Cached   bool
	Outputs  engine.Values
	Metadata engine.Values
	Error    *engine.Error
	Effects  []*engine.EffectCompleted
	Contexts []engine.ContextChange
	State    []engine.StateChange
	Waits    []InterruptRecord
	Partial  []string // answers that were interrupted

	completed bool // completed, and waiting at the breakpoint after it
}

// overriddenStatus returns the status of a node after a person has overridden it: a
// retried node is pending until it starts.
func overriddenStatus(op string) engine.Status {
	switch op {
	case "skip":
		return engine.Skipped
	case "complete":
		return engine.Completed
	}
	return engine.Pending
}

// InterruptRecord is something that a node waited for, and its answer.
type InterruptRecord struct {
	engine.Interrupt
	Answered bool
	Answer   engine.Value
	By       string
}

// NewTimeline reads the timeline from the view of a run.
func NewTimeline(v *runner.RunView) *Timeline {
	c := newTimeline()
	for _, commit := range v.Commits {
		for i, e := range commit.Events {
			c.apply(e, commit.First+int64(i), commit.When(i))
		}
	}
	for _, n := range v.Run.Nodes() { // those that nothing has happened to yet
		c.node(n.Path).Status = n.Status
	}
	for path, n := range c.Nodes {
		if p := v.Run.Plan().Find(path); p != nil {
			n.Type = p.Def.Type
		}
	}
	c.sort(v.Run.Nodes())
	return c
}

func newTimeline() *Timeline {
	return &Timeline{Nodes: make(map[string]*NodeRecord), approvals: make(map[string]InterruptRecord)}
}

// StartedAt returns when a run started, or when a fork was made, in Unix milliseconds.
func StartedAt(v *runner.RunView) int64 {
	at := v.Commits[0].At
	for _, c := range v.Commits {
		for _, e := range c.Events {
			if _, ok := e.(*engine.RunForked); ok {
				at = c.At
			}
		}
	}
	return at
}

// node returns the record of a path, and adds it if there is none.
func (c *Timeline) node(path string) *NodeRecord {
	n := c.Nodes[path]
	if n == nil {
		n = &NodeRecord{Path: path}
		c.Nodes[path] = n
		c.Order = append(c.Order, path)
	}
	return n
}

// apply adds one event.
func (c *Timeline) apply(e engine.Event, number, at int64) {
	switch e := e.(type) {
	case *engine.NodeStarted:
		n := c.node(e.Path)
		n.Status, n.Attempts, n.Started, n.Entered, n.Ended = engine.Running, max(e.Attempt, 1), at, number, 0
	case *engine.NodeResumed:
		n := c.node(e.Path)
		n.Status, n.Entered = engine.Running, number
	case *engine.NodeWaiting:
		n := c.node(e.Path)
		n.completed = n.Status == engine.Completed
		n.Status = engine.Waiting
		for _, i := range e.Interrupts { // open interrupts are listed again each time the node waits
			if !slices.ContainsFunc(n.Waits, func(w InterruptRecord) bool { return w.ID == i.ID && !w.Answered }) {
				n.Waits = append(n.Waits, c.openInterrupt(i))
			}
		}
	case *engine.InterruptAnswered:
		c.applyAnswer(e)
	case *engine.EffectCompleted:
		path, _ := engine.SplitEffectKey(e.Key)
		n := c.node(path)
		n.Effects = append(n.Effects, e)
	case *engine.NodeOverridden:
		n := c.node(e.Path)
		n.Ended, n.Error, n.Status = 0, nil, overriddenStatus(e.Op)
		if n.Status.Ended() {
			n.Ended = at
		}
		if e.Op == "complete" {
			n.Outputs = e.Outputs
		}
	case *engine.NoteRecorded:
		if text, ok := runner.PartialOf(e); ok {
			n := c.node(e.Path)
			n.Partial = append(n.Partial, text)
		}
	default:
		c.applyEnd(e, at)
	}
}

// applyEnd adds an event that ends an attempt or a node.
func (c *Timeline) applyEnd(e engine.Event, at int64) {
	var n *NodeRecord
	switch e := e.(type) {
	case *engine.NodeCompleted:
		n = c.node(e.Path)
		n.Status, n.Outputs, n.Metadata, n.Micros, n.Cached = engine.Completed, e.Outputs, e.Metadata, e.Micros, e.Cached
		n.Contexts, n.State, n.Error = e.Contexts, e.State, nil
	case *engine.NodeFailed:
		n = c.node(e.Path)
		n.Status, n.Error, n.Micros, n.Metadata, n.Contexts = engine.Failed, e.Error, e.Micros, e.Metadata, e.Contexts
	case *engine.NodeErrored:
		n = c.node(e.Path)
		n.Status, n.Outputs = engine.Failed, e.Outputs
	case *engine.NodeSkipped:
		c.node(e.Path).Status = engine.Skipped
	case *engine.NodeNotNeeded:
		c.node(e.Path).Status = engine.NotNeeded
	case *engine.NodeCancelled:
		n = c.node(e.Path)
		n.Status = engine.Cancelled
	}
	if n != nil {
		n.Ended = at
	}
}

func (c *Timeline) applyAnswer(e *engine.InterruptAnswered) {
	n := c.node(NodeOfInterrupt(e.ID))
	if n.completed && n.Status == engine.Waiting {
		n.Status = engine.Completed
	}
	for i := range n.Waits {
		if w := &n.Waits[i]; w.ID == e.ID {
			w.Answered, w.Answer, w.By = true, e.Value, e.By
			c.applyApproval(*w)
		}
	}
}

// applyApproval answers all interrupts that ask for what a person has allowed for the
// whole run.
func (c *Timeline) applyApproval(given InterruptRecord) {
	if given.Kind != engine.AwaitApproval || given.Event == "" || !engine.IsApproved(given.Answer) {
		return
	}
	if _, known := c.approvals[given.Event]; known {
		return
	}
	c.approvals[given.Event] = given
	for _, n := range c.Nodes {
		for i := range n.Waits {
			if !n.Waits[i].Answered {
				n.Waits[i] = c.openInterrupt(n.Waits[i].Interrupt)
			}
		}
	}
}

// openInterrupt returns an interrupt that is opened, answered if a person has allowed for
// the whole run what it asks.
func (c *Timeline) openInterrupt(i engine.Interrupt) InterruptRecord {
	w := InterruptRecord{Interrupt: i}
	if g, given := c.approvals[i.Event]; given && i.Kind == engine.AwaitApproval {
		w.Answered, w.Answer, w.By = true, g.Answer, g.By
	}
	return w
}

// sort puts the nodes into flow order, and after each composite its iterations in order,
// the nodes of each in the order in which they started.
func (c *Timeline) sort(known []engine.Node) {
	rank := make(map[string]int)
	for _, n := range known {
		if _, ok := rank[RootNode(n.Path)]; !ok {
			rank[RootNode(n.Path)] = len(rank)
		}
	}
	slices.SortStableFunc(c.Order, func(a, b string) int {
		if d := rank[RootNode(a)] - rank[RootNode(b)]; d != 0 {
			return d
		}
		return iterationOf(a) - iterationOf(b)
	})
}

// RootNode returns the node of the root scope that a path is or lies in.
func RootNode(path string) string {
	root, _, _ := strings.Cut(path, "#")
	return root
}

// iteration matches the iterations in a path.
var iteration = regexp.MustCompile(`#(\d+)/`)

// iterationOf returns the number of the outermost iteration that a path lies in, 0 for a
// node of the root scope.
func iterationOf(path string) int {
	m := iteration.FindStringSubmatch(path)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}

// Duration returns how long the last attempt took, in microseconds; 0 if it has not ended.
func (n *NodeRecord) Duration() int64 {
	if n.Started == 0 || n.Ended == 0 {
		return 0
	}
	return max((n.Ended-n.Started)*1000, n.Micros)
}

// NodeOfInterrupt returns the path of the node that waits for an interrupt. An id is
// PATH:NAME#N. In an interrupt of a child run, PATH:NAME#N> comes first if the child is
// not the only one of its node.
func NodeOfInterrupt(id string) string {
	var path strings.Builder
	parts := strings.Split(id[:max(strings.LastIndexByte(id, ':'), 0)], ">")
	for i, part := range parts {
		if i > 0 {
			path.WriteByte('>')
		}
		if i < len(parts)-1 {
			part, _, _ = strings.Cut(part, ":")
		}
		path.WriteString(part)
	}
	return path.String()
}
