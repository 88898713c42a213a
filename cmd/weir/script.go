package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

// scripts is the provider behind "script/FILE": it answers with fixed texts
// from a file and asks no model, for examples and tests that need neither key
// nor network. The file names nodes and what the model says there:
//
//	reply: The invoice was approved.
//	talk/answer:
//	  - Hello.        # in the first iteration of talk
//	  - See you.      # in the second
//
// What it answers depends on the node and the iteration alone, so that a call
// that is made again after a crash has the same answer.
type scripts struct {
	mu    sync.Mutex
	files map[string]script
}

// script holds what is said at a node, by the node's path without iterations.
type script map[string][]string

func newScripts() *scripts { return &scripts{files: make(map[string]script)} }

// iteration is the part of a path that counts.
var iteration = regexp.MustCompile(`#(\d+)/`)

// Generate answers with the text for the node that asks. The request's model is
// the path of the file.
func (s *scripts) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	turns, err := s.script(req.Model)
	if err != nil {
		return nil, &llm.Error{Code: engine.CodeModelRequest, Message: err.Error(), Err: err}
	}
	path := nodeOf(req.Key)
	nth := 1
	for _, m := range iteration.FindAllStringSubmatch(path, -1) {
		nth, _ = strconv.Atoi(m[1])
	}
	plain := iteration.ReplaceAllString(path, "/")
	texts, ok := turns[plain]
	if !ok || nth > len(texts) && len(texts) > 1 {
		return nil, &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(
			"script %s has nothing for %s to say; add a text under %q", filepath.Base(req.Model), path, plain)}
	}
	text := texts[min(nth, len(texts))-1]
	// Whatever the history holds, this is the first turn of a script of one.
	return recorded.Script(text).Generate(ctx, &llm.Request{
		Key:      req.Key,
		Messages: []convo.Message{{Role: convo.User}},
	}, emit)
}

// nodeOf is the path of the node that an effect key, RUN/PATH/model#1, is of.
func nodeOf(key string) string {
	_, path, _ := strings.Cut(key, "/")
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

func (s *scripts) script(path string) (script, error) {
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

func readScript(path string) (script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	var nodes map[string]said
	if err := yaml.Unmarshal(data, &nodes); err != nil {
		return nil, fmt.Errorf("read script %s: %w", path, err)
	}
	t := make(script, len(nodes))
	for node, texts := range nodes {
		if len(texts) == 0 {
			return nil, fmt.Errorf("read script %s: %s says nothing", path, node)
		}
		t[node] = texts
	}
	return t, nil
}

// said is a text, or a list of them.
type said []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *said) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = said{n.Value}
		return nil
	}
	var list []string
	if n.Decode(&list) != nil {
		return errors.New("expected a text or a list of texts on line " + strconv.Itoa(n.Line))
	}
	*s = list
	return nil
}

// pinScript resolves a model "script/FILE" relative to the flow's folder, so
// that the run finds its script again from anywhere; needed says that the
// script has to be there. Other models it returns as they are.
func pinScript(model, flowFile string, needed bool) (string, error) {
	name, ok := strings.CutPrefix(model, scriptProvider+"/")
	if !ok {
		return model, nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(flowFile), name)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if _, err := readScript(path); needed && err != nil {
		return "", &usageError{err}
	}
	return scriptProvider + "/" + path, nil
}
