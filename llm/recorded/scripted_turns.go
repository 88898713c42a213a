package recorded

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Turn is one answer of a model that somebody wrote down.
type Turn struct {
	Message convo.Message
	Usage   llm.Usage
	// Error fails the call instead. One that may be tried again is returned to
	// the node at once, as if the service had tried.
	Error *llm.Error
}

// NodeScript is what is said at one node: each turn once, in the order in which the
// node calls, or with Always the only one every time.
type NodeScript struct {
	Turns  []Turn
	Always bool
}

// ScriptedTurns is a model that says what was written down for it, whatever it is asked:
// at the nodes that are named the turns of those, elsewhere the rest in the
// order of the calls. It may be used by any number of goroutines.
type ScriptedTurns struct {
	inOrder []Turn
	nodes   map[string]NodeScript // by path, with or without the numbers of iterations

	mu         sync.Mutex
	used       int
	callCounts map[string]int // calls, by the key in nodes
	requests   []*llm.Request
}

// NewScriptedTurns makes a model of turns in the order of the calls and of turns by the
// path of the node that calls: "talk#2/answer" is one iteration's, "talk/answer"
// stands for all that have none of their own. Either may be nil.
func NewScriptedTurns(inOrder []Turn, byNode map[string]NodeScript) *ScriptedTurns {
	return &ScriptedTurns{inOrder: slices.Clone(inOrder), nodes: maps.Clone(byNode), callCounts: make(map[string]int)}
}

// iterations are the parts of a path that count.
var iterations = regexp.MustCompile(`#\d+`)

// PathWithoutIterations is a node's path without the numbers of iterations.
func PathWithoutIterations(path string) string { return iterations.ReplaceAllString(path, "") }

// NodeOf is the path of the node that an effect key, RUN/PATH/NAME#1, is of.
func NodeOf(key string) string {
	_, path, _ := strings.Cut(key, "/")
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

// Generate gives the turn that is next. Where there is none it is an *llm.Error
// with code replay_divergence.
func (t *ScriptedTurns) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	turn, err := t.next(req)
	if err != nil {
		return nil, err
	}
	if turn.Error != nil {
		e := *turn.Error
		e.Retried = true
		return nil, &e
	}
	m := turn.Message
	m.Role = convo.Assistant
	m.Calls = slices.Clone(m.Calls)
	stop := "end"
	if len(m.Calls) > 0 {
		stop = "calls"
	}
	resp := &llm.Response{Message: m, Usage: turn.Usage, Stop: stop, Unbilled: true}
	stream(resp, emit)
	return resp, nil
}

func (t *ScriptedTurns) next(req *llm.Request) (Turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, req)
	path := NodeOf(req.Key)
	key, said, ok := t.scriptOf(path)
	switch {
	case ok && said.Always && len(said.Turns) > 0:
		t.callCounts[key]++
		return said.Turns[0], nil
	case ok:
		n := t.callCounts[key]
		if n >= len(said.Turns) {
			return Turn{}, divergenceError("the script has %s for %s and the model is called once more there", countTurns(len(said.Turns)), key)
		}
		t.callCounts[key]++
		return said.Turns[n], nil
	case t.used >= len(t.inOrder) && len(t.inOrder) == 0 && len(t.nodes) > 0:
		return Turn{}, divergenceError("the script says nothing at %s; it has %s", path, strings.Join(slices.Sorted(maps.Keys(t.nodes)), ", "))
	case t.used >= len(t.inOrder):
		return Turn{}, divergenceError("the script has %s and the model is called once more, by %s", countTurns(len(t.inOrder)), path)
	}
	t.used++
	return t.inOrder[t.used-1], nil
}

// scriptOf finds what is written for a node.
func (t *ScriptedTurns) scriptOf(path string) (string, NodeScript, bool) {
	for _, key := range []string{path, PathWithoutIterations(path)} {
		if s, ok := t.nodes[key]; ok {
			return key, s, true
		}
	}
	return "", NodeScript{}, false
}

// Requests are the requests so far, in the order they came.
func (t *ScriptedTurns) Requests() []*llm.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Unused says which turns nobody has asked for, nil where there are none.
func (t *ScriptedTurns) Unused() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	if t.used < len(t.inOrder) {
		out = append(out, fmt.Sprintf("the script has %s and the model was called %s", countTurns(len(t.inOrder)), times(t.used)))
	}
	for _, key := range slices.Sorted(maps.Keys(t.nodes)) {
		s, n := t.nodes[key], t.callCounts[key]
		switch {
		case s.Always && n == 0:
			out = append(out, fmt.Sprintf("the script has a turn for %s, which called no model", key))
		case !s.Always && n < len(s.Turns):
			out = append(out, fmt.Sprintf("the script has %s for %s, which called the model %s", countTurns(len(s.Turns)), key, times(n)))
		}
	}
	return out
}

func countTurns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
