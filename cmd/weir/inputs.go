package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// inputs gathers a run's inputs from a file and from -i flags. Whether they fit
// is checked when the run starts.
func (p *program) inputs(f *weir.Flow, file string, flags []string) (map[string]any, error) {
	out := make(map[string]any)
	if file != "" {
		data, err := p.readFile(file)
		if err != nil {
			return nil, usagef("--inputs: %w", err)
		}
		if err := yaml.Unmarshal([]byte(data), &out); err != nil {
			return nil, usagef("--inputs %s: expected an object of inputs: %w", file, err)
		}
	}
	for _, arg := range flags {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("-i %s: expected NAME=VALUE", arg)
		}
		v, err := p.inputValue(typeOf(f, name), text)
		if err != nil {
			return nil, usagef("input %q: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

// typeOf is the declared type of an input. One that is not declared is refused
// later, with all others; until then it is text.
func typeOf(f *weir.Flow, name string) flow.PortType {
	for _, in := range f.Inputs {
		if in.Name == name {
			return in.Type
		}
	}
	return flow.TypeText
}

// inputValue reads a value from the command line: as it stands for text, as
// JSON for every other type.
func (p *program) inputValue(t flow.PortType, text string) (any, error) {
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		text = rest
		if !strings.HasPrefix(rest, "@") {
			var err error
			if text, err = p.readFile(rest); err != nil {
				return nil, err
			}
		}
	}
	if t == flow.TypeText {
		return text, nil
	}
	v, err := engine.ParseValue([]byte(text))
	if err == nil {
		return v, nil
	}
	if t == flow.TypeAny {
		return text, nil
	}
	return nil, fmt.Errorf("expected %s, written as JSON, got %s", t, shorten(text, 60))
}

// readFile reads a file, or stdin for "-".
func (p *program) readFile(name string) (string, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(p.in)
	} else {
		data, err = os.ReadFile(name)
	}
	return string(data), err
}
