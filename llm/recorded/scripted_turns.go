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

// Turn is one prepared answer of a model.
type Turn struct {
	Message convo.Message
	Usage   llm.Usage
	// Error makes the call fail instead. A retryable error is returned to the node at once, as if the service had
	// retried.
	Error *llm.Error
}

// NodeScript has the answers at one node: each turn once, in the order of the node's calls, or with Always the only
// turn every time.
type NodeScript struct {
	Turns  []Turn
	Always bool
}

// ScriptedTurns is a model with prepared answers that do not depend on the request: the named nodes get their own
// turns, other nodes the rest in the order of the calls. It is safe for concurrent use.
type ScriptedTurns struct {
	inOrder []Turn
	nodes   map[string]NodeScript // by path, with or without the numbers of iterations

	mu         sync.Mutex
	used       int
	callCounts map[string]int // number of calls, by the key in nodes
	requests   []*llm.Request
}

// NewScriptedTurns creates a model from turns in the order of the calls and from turns by the path of the calling
// node: "talk#2/answer" is that of one iteration, "talk/answer" applies to all iterations without an entry. Either
// may be nil.
func NewScriptedTurns(inOrder []Turn, byNode map[string]NodeScript) *ScriptedTurns {
	return &ScriptedTurns{inOrder: slices.Clone(inOrder), nodes: maps.Clone(byNode), callCounts: make(map[string]int)}
}

// iterations matches the numbers of iterations in a path.
var iterations = regexp.MustCompile(`#\d+`)

// PathWithoutIterations returns a node's path without the numbers of iterations.
func PathWithoutIterations(path string) string { return iterations.ReplaceAllString(path, "") }

// NodeOf returns the path of the node in an effect key RUN/PATH/NAME#1.
func NodeOf(key string) string {
	_, path, _ := strings.Cut(key, "/")
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

// Generate returns the next turn. If there is none, the error is a *llm.Error with code replay_divergence.
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
	stop := llm.StopEnd
	if len(m.Calls) > 0 {
		stop = llm.StopCalls
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
			return Turn{}, divergenceError("the script has %s for %s but the model was called again there", countTurns(len(said.Turns)), key)
		}
		t.callCounts[key]++
		return said.Turns[n], nil
	case t.used >= len(t.inOrder) && len(t.inOrder) == 0 && len(t.nodes) > 0:
		return Turn{}, divergenceError("the script has no turn for %s; it has %s", path, strings.Join(slices.Sorted(maps.Keys(t.nodes)), ", "))
	case t.used >= len(t.inOrder):
		return Turn{}, divergenceError("the script has %s but the model was called again, by %s", countTurns(len(t.inOrder)), path)
	}
	t.used++
	return t.inOrder[t.used-1], nil
}

// scriptOf returns the script of a node.
func (t *ScriptedTurns) scriptOf(path string) (string, NodeScript, bool) {
	for _, key := range []string{path, PathWithoutIterations(path)} {
		if s, ok := t.nodes[key]; ok {
			return key, s, true
		}
	}
	return "", NodeScript{}, false
}

// Requests returns the requests so far, in order of arrival.
func (t *ScriptedTurns) Requests() []*llm.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Unused describes the turns that were not used, nil if all were.
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
