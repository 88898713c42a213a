package flowtest

import (
	"regexp"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm/recorded"
)

// answer answers the questions of one node, or one question.
type answer struct {
	key    string // a node's path, or an interrupt's id
	pos    flow.Pos
	inTest bool
	always bool // the value is used every time
	values []any
	places []flow.Pos // position of each value
}

// interruptID matches the part of an interrupt's id after the node's path.
var interruptID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:[^:/]*#\d+$`) }) //nolint:gochecknoglobals // compiled on first use

// childID matches the number of a node's child run in it.
var childID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:[^:/>]*#\d+(\.\d+)?>`) }) //nolint:gochecknoglobals // compiled on first use

// withoutChildren returns a node's path without the numbers of child runs.
func withoutChildren(path string) string { return childID().ReplaceAllString(path, ">") }

// answers reads `answers`.
func (r *fileReader) answers(l testKeys) []*answer {
	var out []*answer
	for _, e := range l.entries(&r.reader, "answers", "answers by the path of the node that asks") {
		a := &answer{key: e.Key, pos: e.Pos, inTest: e.inTest}
		if r.node(e.Pos, withoutChildren(interruptID().ReplaceAllString(e.Key, ""))) == nil {
			continue
		}
		items := e.Value.Items()
		if !e.Value.IsList() {
			a.always, items = true, []*flow.FileValue{e.Value}
		}
		for _, d := range items {
			a.values = append(a.values, d.Value())
			a.places = append(a.places, d.Pos())
		}
		out = append(out, a)
	}
	return out
}

// answerSet has the answers of a test.
type answerSet struct {
	byKey map[string]*answer

	mu    sync.Mutex
	given map[*answer]int
}

func newAnswerSet(list []*answer) *answerSet {
	p := &answerSet{byKey: make(map[string]*answer, len(list)), given: make(map[*answer]int)}
	for _, a := range list {
		p.byKey[a.key] = a
	}
	return p
}

// find returns the answer to an interrupt, nil if there is none left.
func (p *answerSet) find(i engine.Interrupt) (a *answer, nth int) {
	asks, _ := engine.SplitInterruptID(i.ID)
	path := nodeOfInterrupt(i.ID)
	keys := []string{i.ID, path, recorded.PathWithoutIterations(asks) + i.ID[len(asks):], recorded.PathWithoutIterations(path)}
	if i.Kind == engine.AwaitBreak { // an answer to the child does not apply to the node's own questions
		keys = []string{keys[0], keys[2]}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		a := p.byKey[key]
		switch {
		case a == nil:
		case a.always:
			return a, 0
		case p.given[a] < len(a.values):
			return a, p.given[a]
		}
	}
	return nil, 0
}

// markGiven marks an answer as given.
func (p *answerSet) markGiven(a *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given[a]++
}

// unmarkGiven marks an answer as not needed.
func (p *answerSet) unmarkGiven(a *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given[a]--
}

// unused returns the test's own answers that were not used, and the position of the first.
func (p *answerSet) unused(list []*answer) []*answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*answer
	for _, a := range list {
		if a.inTest && p.given[a] < len(a.values) {
			out = append(out, a)
		}
	}
	return out
}

// nodeOfInterrupt returns the path of the waiting node: an id is PATH:NAME#N.
func nodeOfInterrupt(id string) string {
	path, _ := engine.SplitInterruptID(id)
	return withoutChildren(path)
}
