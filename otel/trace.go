package otel

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// Options of a trace.
type Options struct {
	// Root is the run at the root of the tree of runs; "" is the run itself.
	Root string
	// After is the number of an event: only spans that a later one ended are returned.
	After int64
	// Contents adds messages, arguments, results, inputs and outputs, each cut after 32 KiB.
	Contents bool
}

// Spans returns the spans of one run, in the order in which they ended: the run, its nodes
// and their effects. Spans that have not ended are not returned, so that a run that waits
// lacks the spans of itself and of what waits. Child runs have their own journals, and their
// spans are below those of the nodes and calls that started them.
//
// Of a fork, only what happened in it has spans; the span of its run links to the other run.
// Flow is that of the run; nil leaves out the types of nodes and the models of requests. The
// result depends on the arguments only.
func Spans(run string, f *flow.Flow, commits []engine.Commit, o Options) []Span {
	b := newBuilder(run, f, o)
	for i := range commits {
		c := &commits[i]
		for j, e := range c.Events {
			b.number, b.at = c.First+int64(j), c.When(j)*1e6
			b.apply(e)
		}
	}
	if o.After > 0 {
		b.ended = slices.DeleteFunc(b.ended, func(s Span) bool { return s.last <= o.After })
	}
	return b.ended
}

// builder makes the spans of a run from its events.
type builder struct {
	run      string
	trace    TraceID
	flow     *flow.Flow
	contents bool

	number int64 // of the event
	at     int64 // its time, Unix nanoseconds
	start  *engine.RunStarted
	parent SpanID
	root   Span
	open   map[string]*openNode // by path
	latest map[string]int       // the newest attempt, by path
	ended  []Span
	begun  map[string]int64 // when effects were started, by key
	seen   map[string]int   // keys of effect spans
	models []string         // of contexts, "provider/model"
	waits  map[string]bool
	calls  map[string]*callList // of models, by node and prefix
}

// openNode is an attempt that has not ended.
type openNode struct{ span Span }

func newBuilder(run string, f *flow.Flow, o Options) *builder {
	return &builder{
		run: run, trace: TraceOf(cmp.Or(o.Root, run)), flow: f, contents: o.Contents,
		open: make(map[string]*openNode), latest: make(map[string]int), begun: make(map[string]int64), seen: make(map[string]int), waits: make(map[string]bool), calls: make(map[string]*callList),
	}
}

func (b *builder) apply(e engine.Event) {
	switch e := e.(type) {
	case *engine.RunStarted:
		b.runStarted(e)
	case *engine.RunForked:
		b.runForked(e)
	case *engine.NodeStarted:
		b.noteModels(e.Forks)
		b.nodeStarted(e.Path, max(1, e.Attempt))
	case *engine.NodeResumed:
		b.event(e.Path, "resumed")
	case *engine.NodeWaiting:
		b.nodeWaiting(e)
	case *engine.NodeRetrying:
		b.event(e.Path, "retrying")
	case *engine.EffectStarted:
		b.begun[e.Key] = b.at
	case *engine.EffectCompleted:
		b.effectCompleted(e)
	default:
		b.applyEnd(e)
	}
}

// applyEnd applies an event that ends an attempt or the run.
func (b *builder) applyEnd(e engine.Event) {
	switch e := e.(type) {
	case *engine.NodeCompleted:
		b.noteModels(e.Contexts)
		var cached []Attribute
		if e.Cached {
			cached = []Attribute{{attrCached, true}}
		}
		b.endNode(e.Path, "completed", nil, cached...)
	case *engine.NodeFailed:
		b.endNode(e.Path, "failed", e.Error)
	case *engine.NodeErrored:
		b.endNode(e.Path, "failed", nil)
	case *engine.NodeCancelled:
		b.endNode(e.Path, "cancelled", nil)
	case *engine.NodeSkipped:
		b.endNode(e.Path, "skipped", nil)
	case *engine.NodeNotNeeded:
		b.endNode(e.Path, "not_needed", nil)
	case *engine.NodeOverridden:
		if e.Op != "retry" { // a retried node starts again, or is resumed
			b.endNode(e.Path, "overridden", nil)
		}
	case *engine.RunCompleted:
		b.endRun("completed", nil, e.Outputs)
	case *engine.RunFailed:
		b.endRun("failed", e.Error, nil)
	case *engine.RunCancelled:
		b.endRun("cancelled", nil, nil)
	}
}

func (b *builder) runStarted(e *engine.RunStarted) {
	b.start = e
	b.noteModels(e.Contexts)
	switch {
	case e.Parent == "":
	case e.Node != "": // PATH:NAME#N, and .ATTEMPT from the second attempt on
		path, name := engine.SplitInterruptID(e.Node)
		_, number, _ := strings.Cut(name, "#")
		b.parent = spanOf(e.Parent, nodeKey(path, attemptIn(number)))
	case e.Caller != "": // of an earlier version: PATH/NAME#N, and .ATTEMPT likewise
		at := strings.LastIndexByte(e.Caller, '#')
		number, _, _ := strings.Cut(e.Caller[at+1:], ".")
		b.parent = spanOf(e.Parent, nodeKey(e.Caller[:at+1]+number, attemptIn(e.Caller[at+1:])))
	default:
		b.parent = spanOf(e.Parent, "")
	}
	b.openRun(e.Flow, e.Fingerprint)
	if b.contents {
		b.root.Attributes = append(b.root.Attributes, valueAttribute(attrInputs, e.Inputs))
	}
}

// attemptIn returns the attempt in a number of the form N.ATTEMPT; it is 1 in N.
func attemptIn(number string) int {
	_, attempt, _ := strings.Cut(number, ".")
	n, err := strconv.Atoi(attempt)
	if err != nil {
		return 1
	}
	return n
}

func nodeKey(path string, attempt int) string { return path + "@" + strconv.Itoa(attempt) }

func (b *builder) openRun(name, fingerprint string) {
	op := runOperation()
	b.root = Span{
		Trace: b.trace, ID: spanOf(b.run, ""), Parent: b.parent, Name: op.verb + " " + name, Kind: op.kind, Start: b.at,
		Attributes: []Attribute{{attrOperation, op.name}, {attrWorkflow, name}, {attrRun, b.run}, {attrFingerprint, fingerprint}},
	}
	if s := b.start; s != nil && s.Session != "" {
		b.root.Attributes = append(b.root.Attributes, Attribute{attrConversation, s.Session}, Attribute{attrRound, int64(s.Round)})
	}
}

// runForked drops what happened in the other run. What waited there continues here.
func (b *builder) runForked(e *engine.RunForked) {
	b.ended = nil
	clear(b.seen)
	b.noteModels(e.Contexts)
	b.openRun(e.Flow, e.Fingerprint)
	b.root.Links = []Link{{TraceOf(e.From), spanOf(e.From, "")}}
	for _, n := range b.open {
		n.span.Start, n.span.Events = b.at, nil
	}
}

func (b *builder) nodeStarted(path string, attempt int) {
	b.endNode(path, "cancelled", nil) // a fork starts what was executing again
	op := nodeOperation()
	s := Span{
		Trace: b.trace, ID: spanOf(b.run, nodeKey(path, attempt)), Parent: b.above(path), Name: op.verb + " " + flow.WithoutIterations(path), Kind: op.kind, Start: b.at,
		Attributes: []Attribute{{attrRun, b.run}, {attrNode, path}, {attrAttempt, int64(attempt)}},
	}
	if d := b.node(path); d != nil {
		s.Attributes = append(s.Attributes, Attribute{attrNodeType, d.Type})
	}
	b.open[path] = &openNode{s}
	b.latest[path] = attempt
}

// above returns the span above that of a node: the composite node in whose iteration it is,
// else the run.
func (b *builder) above(path string) SpanID {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		outer := path[:i]
		if j := strings.LastIndexByte(outer, '#'); j >= 0 {
			outer = outer[:j]
		}
		if n := b.open[outer]; n != nil {
			return n.span.ID
		}
	}
	return spanOf(b.run, "")
}

// node returns the node of the flow at a path, nil if it is not known.
func (b *builder) node(path string) *flow.Node {
	if b.flow == nil {
		return nil
	}
	n, _ := b.flow.NodeAt(path)
	return n
}

// nodeWaiting adds an event for each new interrupt. A wait does not end a span, and is no
// error.
func (b *builder) nodeWaiting(e *engine.NodeWaiting) {
	for _, i := range e.Interrupts {
		if !b.waits[i.ID] { // open interrupts are listed again each time the node waits
			b.waits[i.ID] = true
			b.event(e.Path, "waiting", Attribute{attrWait, string(i.Kind)})
		}
	}
}

func (b *builder) event(path, name string, attributes ...Attribute) {
	const most = 128 // events of a span
	if n := b.open[path]; n != nil && len(n.span.Events) < most {
		n.span.Events = append(n.span.Events, Event{b.at, name, attributes})
	}
}

func (b *builder) endNode(path, status string, failed *engine.Error, more ...Attribute) {
	n := b.open[path]
	if n == nil {
		return
	}
	delete(b.open, path)
	n.span.Attributes = append(append(n.span.Attributes, Attribute{attrStatus, status}), more...)
	b.end(&n.span, failed)
}

// end adds a span that ends with the event.
func (b *builder) end(s *Span, failed *engine.Error) {
	s.End, s.last = max(s.Start, b.at), b.number
	if failed != nil {
		s.Failed, s.Code = true, failed.Code
		s.Attributes = append(s.Attributes, Attribute{attrError, failed.Code})
	}
	b.ended = append(b.ended, *s)
}

// endRun ends the run, and the nodes that end with it without an event of their own. A run
// that a person continues after its failure ends again, with the same id.
func (b *builder) endRun(status string, failed *engine.Error, outputs engine.Values) {
	paths := make([]string, 0, len(b.open))
	for path := range b.open {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range slices.Backward(paths) {
		b.endNode(path, "cancelled", nil)
	}
	s := b.root
	s.Attributes = append(slices.Clone(s.Attributes), Attribute{attrStatus, status})
	if b.contents && outputs != nil {
		s.Attributes = append(s.Attributes, valueAttribute(attrOutputs, outputs))
	}
	b.end(&s, failed)
}
