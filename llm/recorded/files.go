package recorded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Files is a model behind "script/FILE": it answers with fixed texts from a file
// and asks nobody, for examples and tests that need neither key nor network.
// The file names nodes and what the model says there:
//
//	reply: The invoice was approved.
//	talk/answer:
//	  - Hello.        # in the first iteration of talk
//	  - See you.      # in the second
//
// What it answers depends on the node and the iteration alone, so that a call
// that is made again after a crash has the same answer. It may be used by any
// number of goroutines.
type Files struct {
	mu    sync.Mutex
	files map[string]fileScript
}

// fileScript holds what is said at a node, by the node's path without iterations.
type fileScript map[string][]string

// NewFiles makes the model; it reads a file when it is first asked for.
func NewFiles() *Files { return &Files{files: make(map[string]fileScript)} }

// iteration is the part of a path that says which.
var iteration = regexp.MustCompile(`#(\d+)/`)

// Generate answers with the text for the node that asks. The request's model is
// the path of the file.
func (s *Files) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	turns, err := s.script(req.Model)
	if err != nil {
		return nil, &llm.Error{Code: engine.CodeModelRequest, Message: err.Error(), Err: err}
	}
	path := NodeOf(req.Key)
	nth := 1
	for _, m := range iteration.FindAllStringSubmatch(path, -1) {
		nth, _ = strconv.Atoi(m[1])
	}
	plain := PlainPath(path)
	texts, ok := turns[plain]
	if !ok || nth > len(texts) && len(texts) > 1 {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"script %s has nothing for %s to say; add a text under %q", filepath.Base(req.Model), path, plain)}
	}
	text := texts[min(nth, len(texts))-1]
	// Whatever the history holds, this is the first turn of a script of one.
	return Script(text).Generate(ctx, &llm.Request{
		Key:      req.Key,
		Messages: []convo.Message{{Role: convo.User}},
	}, emit)
}

func (s *Files) script(path string) (fileScript, error) {
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

func readScript(path string) (fileScript, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	var nodes map[string]saidTexts
	if err := yaml.Unmarshal(data, &nodes); err != nil {
		return nil, fmt.Errorf("read script %s: %w", path, err)
	}
	t := make(fileScript, len(nodes))
	for node, texts := range nodes {
		if len(texts) == 0 {
			return nil, fmt.Errorf("read script %s: %s says nothing", path, node)
		}
		t[node] = texts
	}
	return t, nil
}

// saidTexts is a text, or a list of them.
type saidTexts []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *saidTexts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = saidTexts{n.Value}
		return nil
	}
	var list []string
	if n.Decode(&list) != nil {
		return errors.New("expected a text or a list of texts on line " + strconv.Itoa(n.Line))
	}
	*s = list
	return nil
}
