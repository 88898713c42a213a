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

// ScriptFiles is a model behind "script/FILE": it answers with fixed texts from a file
// and asks nobody, for examples and tests that need neither key nor network.
// The file names nodes and what the model says there:
//
//	reply: The invoice was approved.
//	talk/answer:
//	  - Hello.        # in the first iteration of talk
//	  - See you.      # in the second
//	work:
//	  turns:          # one model call after another of the same node
//	    - calls: [{tool: order_status, arguments: {order: "4711"}}]
//	    - It is on its way.
//	work:plan: '{"steps": []}'   # what a call of another kind says there
//
// The kind of a call is the name of its effect where that is not model: "plan" of
// work/plan#1, "post.2" of work/post.2.model#1. Without an entry of its own it is
// answered as the node's other calls are.
//
// In a session, the texts of a node in no iteration are those of its rounds, one
// after another and then from the first again.
//
// What it answers depends on the node, the iteration, the round and the number of
// the call alone, so that a call that is made again after a crash has the same answer. It
// may be used by any number of goroutines.
type ScriptFiles struct {
	mu    sync.Mutex
	files map[string]fileScript
}

// fileScript holds what is said at a node, by the node's path without iterations:
// the turns of each iteration.
type fileScript map[string][][]convo.Message

// NewScriptFiles makes the model; it reads a file when it is first asked for.
func NewScriptFiles() *ScriptFiles { return &ScriptFiles{files: make(map[string]fileScript)} }

// iteration is the part of a path that says which.
var iteration = regexp.MustCompile(`#(\d+)/`)

// Generate answers with the text for the node that asks. The request's model is
// the path of the file.
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
	once := plain == path // in no iteration
	if kind := kindOf(req.Key); kind != "" && script[plain+":"+kind] != nil {
		plain, ok = plain+":"+kind, true
		said = script[plain]
	}
	if round := roundOf(req.Messages); round > 0 && once && len(said) > 0 {
		nth = (round-1)%len(said) + 1
	}
	if !ok || nth > len(said) && len(said) > 1 {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"script %s has nothing for %s to say; add a text under %q", filepath.Base(req.Model), path, plain)}
	}
	turns := said[min(nth, len(said))-1]
	call := 1
	if len(turns) > 1 {
		call = ordinal(req.Key)
	}
	if call > len(turns) {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"script %s has %s for %s and the model is called once more; add a turn under %q", filepath.Base(req.Model), countTurns(len(turns)), path, plain)}
	}
	return NewScriptedTurns([]Turn{{Message: turns[call-1]}}, nil).Generate(ctx, req, emit)
}

// roundOf is the number of the session's round that the messages end with, which
// their ids begin with ("3.4/ask.user"); 0 where it is none.
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

// kindOf is the kind of a call by its key, "" for a model's ordinary one.
func kindOf(key string) string {
	name, _, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], "#")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "model"), ".")
	name, _, _ = strings.Cut(name, "@") // in a later attempt
	return name
}

// ordinal is the number of a call in its node, from an effect key as
// RUN/PATH/model#2.
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

// CheckScript reports why a file is not one that Files can answer from.
func CheckScript(path string) error {
	_, err := readScript(path)
	return err
}
