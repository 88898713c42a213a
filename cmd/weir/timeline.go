package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// timeline is what happened to each node of a run, told from its journal: also
// to those of iterations that are over.
type timeline struct {
	nodes map[string]*nodeRecord
	order []string // paths, in the order they were first heard of
	// approvals are what people allowed for the whole run, by Interrupt.Event.
	approvals map[string]interruptRecord
}

// nodeRecord is what the journal says of one node.
type nodeRecord struct {
	Path     string
	Type     string
	Status   engine.Status
	Attempts int
	Started  int64 // Unix milliseconds; of the last attempt
	Ended    int64 // Unix milliseconds; 0 while it has not
	Entered  int64 // number of the event that last started or resumed it
	Micros   int64 // the function ran, last entry
	Cached   bool
	Outputs  engine.Values
	Metadata engine.Values
	Error    *engine.Error
	Effects  []*engine.EffectCompleted
	Contexts []engine.ContextChange
	State    []engine.StateChange
	Waits    []interruptRecord
	Partial  []string // answers that were cut off

	completed bool // it has completed, and waits at the breakpoint after it
}

// overriddenStatus is the status of a node that a person overrode: one that is tried again
// is pending until it starts.
func overriddenStatus(op string) engine.Status {
	switch op {
	case "skip":
		return engine.Skipped
	case "complete":
		return engine.Completed
	}
	return engine.Pending
}

// interruptRecord is one thing a node waited for, and what became of it.
type interruptRecord struct {
	engine.Interrupt
	Answered bool
	Answer   engine.Value
	By       string
}

// timelineOf reads a view.
func timelineOf(v *runner.RunView) *timeline {
	c := &timeline{nodes: make(map[string]*nodeRecord), approvals: make(map[string]interruptRecord)}
	for _, commit := range v.Commits {
		for i, e := range commit.Events {
			c.apply(e, commit.First+int64(i), commit.When(i))
		}
	}
	for _, n := range v.Run.Nodes() { // those that nothing has happened to yet
		c.node(n.Path).Status = n.Status
	}
	for path, n := range c.nodes {
		if p := v.Run.Plan().Find(path); p != nil {
			n.Type = p.Def.Type
		}
	}
	c.sort(v.Run.Nodes())
	return c
}

// startedAt is when a run began, a fork when it was made, in Unix milliseconds.
func startedAt(v *runner.RunView) int64 {
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

// node returns the record of a path, making it.
func (c *timeline) node(path string) *nodeRecord {
	n := c.nodes[path]
	if n == nil {
		n = &nodeRecord{Path: path}
		c.nodes[path] = n
		c.order = append(c.order, path)
	}
	return n
}

// apply adds one event.
func (c *timeline) apply(e engine.Event, number, at int64) {
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
		for _, i := range e.Interrupts { // what is still open is said again each time the node waits
			if !slices.ContainsFunc(n.Waits, func(w interruptRecord) bool { return w.ID == i.ID && !w.Answered }) {
				n.Waits = append(n.Waits, c.openInterrupt(i))
			}
		}
	case *engine.InterruptAnswered:
		c.applyAnswer(e)
	case *engine.EffectCompleted:
		n := c.node(nodeOfEffect(e.Key))
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
func (c *timeline) applyEnd(e engine.Event, at int64) {
	var n *nodeRecord
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

func (c *timeline) applyAnswer(e *engine.InterruptAnswered) {
	n := c.node(nodeOfInterrupt(e.ID))
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

// applyApproval tells all that ask for the same what a person allowed for the run.
func (c *timeline) applyApproval(given interruptRecord) {
	if given.Kind != engine.AwaitApproval || given.Event == "" || !engine.IsApproved(given.Answer) {
		return
	}
	if _, known := c.approvals[given.Event]; known {
		return
	}
	c.approvals[given.Event] = given
	for _, n := range c.nodes {
		for i := range n.Waits {
			if !n.Waits[i].Answered {
				n.Waits[i] = c.openInterrupt(n.Waits[i].Interrupt)
			}
		}
	}
}

// openInterrupt is an interrupt that is opened, answered where a person has allowed
// for the run what it asks.
func (c *timeline) openInterrupt(i engine.Interrupt) interruptRecord {
	w := interruptRecord{Interrupt: i}
	if g, given := c.approvals[i.Event]; given && i.Kind == engine.AwaitApproval {
		w.Answered, w.Answer, w.By = true, g.Answer, g.By
	}
	return w
}

// nodeOfEffect is the path of the node an effect key, PATH/NAME#N, is of.
func nodeOfEffect(key string) string {
	return key[:max(strings.LastIndexByte(key, '/'), 0)]
}

// sort puts the nodes in flow order, and behind each composite its iterations
// in order, the nodes of each as they came.
func (c *timeline) sort(known []engine.Node) {
	rank := make(map[string]int)
	for _, n := range known {
		if _, ok := rank[rootOf(n.Path)]; !ok {
			rank[rootOf(n.Path)] = len(rank)
		}
	}
	slices.SortStableFunc(c.order, func(a, b string) int {
		if d := rank[rootOf(a)] - rank[rootOf(b)]; d != 0 {
			return d
		}
		return iterationOf(a) - iterationOf(b)
	})
}

// rootOf is the node of the root scope that a path is, or lies in.
func rootOf(path string) string {
	root, _, _ := strings.Cut(path, "#")
	return root
}

// iteration matches the iterations in a path.
var iteration = regexp.MustCompile(`#(\d+)/`)

// iterationOf is the number of the outermost iteration that a path lies in, 0
// for a node of the root scope.
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

// duration is how long the node has taken, or its last attempt.
func (n *nodeRecord) duration() int64 {
	if n.Started == 0 || n.Ended == 0 {
		return 0
	}
	return max((n.Ended-n.Started)*1000, n.Micros)
}
