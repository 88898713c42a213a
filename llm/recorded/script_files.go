package recorded

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// ScriptFiles implements the models "script/FILE": it answers with fixed texts from a file and calls no service, for
// examples and tests that need neither key nor network. The file has the answers for each node:
//
//	reply: The invoice was approved.
//	talk/answer:
//	  - Hello.        # in the first iteration of talk
//	  - See you.      # in the second
//	work:
//	  turns:          # consecutive model calls of the same node
//	    - calls: [{tool: order_status, arguments: {order: "4711"}}]
//	    - It is on its way.
//	work:plan: '{"steps": []}'   # a call of another kind
//
// The kind of a call is the name of its effect unless that is model: "plan" in work/plan#1, "post.2" in
// work/post.2.model#1. A kind without an entry of its own uses the node's entry.
//
// In a session, the texts of a node outside iterations are those of consecutive rounds; after the last one the first
// is used again.
//
// The answer depends only on the node, the iteration, the round and the number of the call, so that a repeated call
// has the same answer. It is safe for concurrent use.
type ScriptFiles struct {
	mu    sync.Mutex
	files map[string]fileScript
}

// fileScript has the answers of nodes by their path without iterations: the turns of each iteration.
type fileScript map[string][][]convo.Message

// NewScriptFiles creates the model. A file is read at its first call.
func NewScriptFiles() *ScriptFiles { return &ScriptFiles{files: make(map[string]fileScript)} }

// iteration matches the part of a path that numbers an iteration.
var iteration = regexp.MustCompile(`#(\d+)/`)

// Generate returns the text for the calling node. The request's model is the path of the file.
func (s *ScriptFiles) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	script, err := s.script(req.Model)
	if err != nil {
		return nil, &llm.Error{Code: engine.CodeModelRequest, Message: err.Error(), Err: err}
	}
	path := NodeOf(req.Key)
	nth := 1
	for _, m := range iteration.FindAllStringSubmatch(path, -1) {
		nth, _ = strconv.Atoi(m[1])
	}
	plain := PathWithoutIterations(path)
	said, ok := script[plain]
	once := plain == path // outside iterations
	if kind := kindOf(req.Key); kind != "" && script[plain+":"+kind] != nil {
		plain, ok = plain+":"+kind, true
		said = script[plain]
	}
	if round := roundOf(req.Messages); round > 0 && once && len(said) > 0 {
		nth = (round-1)%len(said) + 1
	}
	if !ok || nth > len(said) && len(said) > 1 {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"script %s has no text for %s; add one under %q", filepath.Base(req.Model), path, plain)}
	}
	turns := said[min(nth, len(said))-1]
	call := 1
	if len(turns) > 1 {
		call = ordinal(req.Key)
	}
	if call > len(turns) {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"script %s has %s for %s but the model was called again; add a turn under %q", filepath.Base(req.Model), countTurns(len(turns)), path, plain)}
	}
	return NewScriptedTurns([]Turn{{Message: turns[call-1]}}, nil).Generate(ctx, req, emit)
}

// roundOf returns the number of the session's round of the last messages, with which their ids begin
// ("3.4/ask.user"); 0 if there is none.
func roundOf(ms []convo.Message) int {
	for _, m := range slices.Backward(ms) {
		prefix, _, made := strings.Cut(m.ID, "/")
		number, at, ok := strings.Cut(prefix, ".")
		n, err := strconv.Atoi(number)
		if _, err2 := strconv.Atoi(at); made && ok && err == nil && err2 == nil {
			return n
		}
	}
	return 0
}

// kindOf returns the kind of a call from its key, "" for an ordinary model call.
func kindOf(key string) string {
	name, _, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], "#")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "model"), ".")
	name, _, _ = strings.Cut(name, "@") // in a later attempt
	return name
}

// ordinal returns the number of a call within its node from an effect key such as RUN/PATH/model#2.
func ordinal(key string) int {
	n, err := strconv.Atoi(key[strings.LastIndexByte(key, '#')+1:])
	if err != nil {
		return 1
	}
	return n
}

func (s *ScriptFiles) script(path string) (fileScript, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.files[path]; ok {
		return t, nil
	}
	t, err := readScript(path)
	if err == nil {
		s.files[path] = t
	}
	return t, err
}

// CheckScript returns an error if a file is not a valid script.
func CheckScript(path string) error {
	_, err := readScript(path)
	return err
}
