package flowtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/flow"
)

// expectation is the expected result of a run. Fields that are nil are not checked.
type expectation struct {
	pos                                               flow.Pos
	status                                            string
	statusPos                                         flow.Pos
	outputs, state, errors, messages, questions, cost *flow.FileValue
	toolCalls, requests                               *flow.FileValue
	usage                                             *flow.FileValue
	path                                              *pathExpectation
	golden                                            string // the file's path
	goldenPos                                         flow.Pos
}

// The statuses that a test may expect.
const (
	completed = "completed"
	failed    = "failed"
	paused    = "paused"
	// running: the round waits for a person, and for a timer. Only turns end so.
	running = "running"
)

// expectation reads `expect`, of a turn or of a test with one run.
func (r *fileReader) expectation(l testKeys, ofTurn bool) expectation {
	e := expectation{pos: l.test.Pos()}
	for _, d := range []*flow.FileValue{l.defaults.Get("expect"), l.test.Get("expect")} {
		if d == nil || d.IsNull() {
			continue
		}
		e.pos = d.Pos()
		r.object(d, "expect", "status", "outputs", "error", "path", "messages", "state", "usage", "cost",
			"questions", "toolCalls", "requests", "golden")
	}
	in := testKeys{l.test.Get("expect"), l.defaults.Get("expect")}
	if in.test != nil && in.test.IsNull() {
		in.defaults = nil
	}
	e.outputs, e.state, e.errors = r.expected(in, "outputs"), r.expected(in, "state"), r.expected(in, "error")
	e.questions, e.cost = r.expected(in, "questions"), r.expected(in, "cost")
	e.toolCalls, e.requests = r.expected(in, "toolCalls"), r.expected(in, "requests")
	e.usage, e.messages = r.usage(in), r.messages(in)
	e.path = r.pathExpectation(in.get("path"))
	r.status(&e, in, ofTurn)
	if d := in.get("golden"); d != nil {
		e.golden, e.goldenPos = r.text(d, "golden"), d.Pos()
		if !filepath.IsAbs(e.golden) {
			e.golden = filepath.Join(filepath.Dir(r.path), e.golden)
		}
	}
	return e
}

// status returns the expected status: as given, failed if an error is expected, otherwise completed.
func (r *fileReader) status(e *expectation, in testKeys, ofTurn bool) {
	e.status, e.statusPos = completed, e.pos
	if e.errors != nil {
		e.status, e.statusPos = failed, e.errors.Pos()
	}
	d := in.get("status")
	if d == nil {
		return
	}
	all := []string{completed, failed, paused}
	if ofTurn {
		all = append(all, running)
	}
	s := r.text(d, "status")
	if !slices.Contains(all, s) {
		r.report(d.Pos(), flow.CodeBadValue, fmt.Sprintf("status must be one of %s; got %s", strings.Join(all, ", "), show(d)), didYouMean(s, all))
	}
	if e.errors != nil && in.test.Get("error") != nil && s != failed {
		r.reportAt(d, "a run that is %s has no error", s)
	}
	e.status, e.statusPos = s, d.Pos()
	if s != failed {
		e.errors = nil // that of the test without defaults
	}
}

// expected reads an expected value.
func (r *fileReader) expected(in testKeys, key string) *flow.FileValue {
	d := in.get(key)
	if d != nil {
		r.checkExpected(d)
	}
	if d != nil && key == "error" && d.IsObject() && !isMatcher(d) {
		r.object(d, "error", "code", "message", "node", "hint")
	}
	return d
}

func usageKeys() []string {
	return []string{"calls", "input", "cached", "output", "reasoning", "tokens", "cost"}
}

func (r *fileReader) usage(in testKeys) *flow.FileValue {
	d := in.get("usage")
	if d == nil || !r.object(d, "usage", usageKeys()...) {
		return nil
	}
	r.checkExpected(d)
	return d
}

// messages reads the expected contexts: a list for the main one, or an object of lists by context.
func (r *fileReader) messages(in testKeys) *flow.FileValue {
	d := in.get("messages")
	if d == nil {
		return nil
	}
	if d.IsObject() && !isMatcher(d) {
		for _, e := range d.Entries() {
			r.checkExpected(e.Value)
			r.messageList(e.Value)
		}
		return d
	}
	r.checkExpected(d)
	r.messageList(d)
	return d
}

// messageList checks the keys of messages.
func (r *fileReader) messageList(d *flow.FileValue) {
	if s := d.Get("$subset"); s != nil {
		d = s
	}
	for _, m := range d.Items() {
		if m.IsObject() && !isMatcher(m) {
			r.object(m, "a message", "role", "text", "calls", "name", "failed", "reasoning", "system", "user", "assistant", "tool")
		}
	}
}

// pathExpectation are the nodes that are expected to run.
type pathExpectation struct {
	pos                                          flow.Pos
	exactly, order, ran, skipped, failed, notRun []nodeRef
	exact                                        bool // exactly is set
}

// nodeRef is a node's path in a test.
type nodeRef struct {
	path string
	pos  flow.Pos
}

func (r *fileReader) pathExpectation(d *flow.FileValue) *pathExpectation {
	if d == nil {
		return nil
	}
	p := &pathExpectation{pos: d.Pos()}
	if d.IsList() {
		p.exactly, p.exact = r.nodeRefs(d), true
		return p
	}
	if !r.object(d, "path", "exactly", "order", "ran", "skipped", "failed", "notRun") {
		return p
	}
	p.exact = d.Get("exactly") != nil
	for key, to := range map[string]*[]nodeRef{
		"exactly": &p.exactly, "order": &p.order, "ran": &p.ran, "skipped": &p.skipped, "failed": &p.failed, "notRun": &p.notRun,
	} {
		if l := d.Get(key); l != nil {
			*to = r.nodeRefs(l)
		}
	}
	return p
}

// nodeRefs reads a list of nodes, or one.
func (r *fileReader) nodeRefs(d *flow.FileValue) []nodeRef {
	items := []*flow.FileValue{d}
	if d.IsList() {
		items = d.Items()
	}
	var out []nodeRef
	for _, e := range items {
		path := r.text(e, "the path of a node")
		if r.node(e.Pos(), path) != nil {
			out = append(out, nodeRef{path, e.Pos()})
		}
	}
	return out
}
