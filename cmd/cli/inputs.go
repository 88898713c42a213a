package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
)

// startInputs returns the inputs of a run that begins with them alone. Where some are
// refused it says in the same breath which are missing.
func (p *cli) startInputs(f *weir.Flow, file string, flags []string) (map[string]any, error) {
	given, err := p.inputs(f, file, flags)
	if _, ok := errors.AsType[*unknownInputs](err); !ok {
		return given, err // missing inputs are reported when the run starts, with all that do not fit
	}
	lines := []string{err.Error()}
	for _, in := range f.Inputs {
		if _, ok := given[in.Name]; !ok && in.Required && in.Default == nil {
			lines = append(lines, fmt.Sprintf("input %q is required (%s)", in.Name, in.Type))
		}
	}
	return nil, usagef("%s", strings.Join(lines, "\n"))
}

// inputs gathers inputs from a file and from -i flags. Those that the flow does
// not have are returned with the error that says so; whether the others fit is
// checked when the run starts.
func (p *cli) inputs(f *weir.Flow, file string, flags []string) (map[string]any, error) {
	out := make(map[string]any)
	if file != "" {
		data, err := p.readFile(file)
		if err != nil {
			return nil, usagef("--inputs: %w", err)
		}
		if out, err = inputsFrom([]byte(data)); err != nil {
			return nil, usagef("--inputs %s: %w", file, err)
		}
	}
	for _, arg := range flags {
		name, text, ok := cutAssignment(arg, inputNames(f))
		if !ok || name == "" {
			return nil, usagef("-i %s: expected NAME=VALUE", arg)
		}
		v, err := p.inputValue(typeOf(f, name), text)
		if err != nil {
			return nil, usagef("input %q: %w", name, err)
		}
		out[name] = v
	}
	return out, checkNames(f, out)
}

func inputNames(f *weir.Flow) []string {
	names := make([]string, len(f.Inputs))
	for i, in := range f.Inputs {
		names[i] = in.Name
	}
	return names
}

// cutAssignment cuts NAME=VALUE. A name with = in it must be one of those that are declared.
func cutAssignment(arg string, declared []string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(arg, "=")
	for _, d := range declared {
		if v, is := strings.CutPrefix(arg, d+"="); is && len(d) > len(name) {
			name, value = d, v
		}
	}
	return name, value, ok
}

// inputsFrom reads a YAML or JSON object of inputs.
func inputsFrom(data []byte) (map[string]any, error) { return objectFrom(data, "inputs") }

// objectFrom reads a YAML or JSON object; what names its members in errors. As in flow files
// dates are text.
func objectFrom(data []byte, what string) (map[string]any, error) {
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments()); err != nil {
		if e, ok := errors.AsType[*yaml.LoadError](err); ok {
			err = fmt.Errorf("line %d: %s", max(e.Mark.Line, e.ContextMark.Line, 1), e.Message)
		}
		return nil, fmt.Errorf("expected an object of %s, in YAML or JSON: %w", what, err)
	}
	out := make(map[string]any)
	switch {
	case len(docs) == 0 || len(docs[0].Content) == 0:
		return out, nil
	case len(docs) > 1:
		return nil, fmt.Errorf("line %d: a second YAML document; expected one object of %s", docs[1].Line, what)
	case docs[0].Content[0].Kind != yaml.MappingNode:
		return nil, fmt.Errorf("expected an object of %s, as in `name: value`", what)
	}
	datesAreText(&docs[0])
	if err := docs[0].Decode(&out); err != nil {
		return nil, fmt.Errorf("expected an object of %s, in YAML or JSON: %w", what, err)
	}
	return out, nil
}

func datesAreText(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		datesAreText(c)
	}
}

// unknownInputs are inputs that the flow does not have.
type unknownInputs struct{ lines []string }

// Error implements error.
func (e *unknownInputs) Error() string { return strings.Join(e.lines, "\n") }

// checkNames refuses inputs that the flow does not have, with what it has.
func checkNames(f *weir.Flow, given map[string]any) error {
	var names []string
	for _, in := range f.Inputs {
		names = append(names, in.Name)
	}
	has := "it has " + strings.Join(names, ", ")
	if len(names) == 0 {
		has = "it has none"
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			wrong = append(wrong, fmt.Sprintf("flow %s has no input %q%s; %s", f.Name, name, didYouMean(name, names), has))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &usageError{Err: &unknownInputs{wrong}}
}

// typeOf returns the declared type of an input. One that is not declared is refused
// later, with all others; until then it is text.
func typeOf(f *weir.Flow, name string) flow.PortType {
	for _, in := range f.Inputs {
		if in.Name == name {
			return in.Type
		}
	}
	return flow.TypeText
}

// inputValue reads a value from the command line: as it stands for text, and for a message
// that is not written as a JSON object, as JSON for every other type. A file after an @ is that for an input of type file.
func (p *cli) inputValue(t flow.PortType, text string) (any, error) {
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		text = rest
		if !strings.HasPrefix(rest, "@") {
			var err error
			if text, err = p.readFile(rest); err != nil {
				return nil, err
			}
			if t == flow.TypeFile {
				return map[string]any{"name": filepath.Base(rest), "base64": base64.StdEncoding.EncodeToString([]byte(text))}, nil
			}
		}
	}
	if t == flow.TypeText || t == flow.TypeMessage && !beginsObject(text) {
		return text, nil
	}
	v, err := engine.ParseValue([]byte(text))
	if err == nil {
		return v, nil
	}
	valid := json.Valid([]byte(text))
	if t == flow.TypeAny && (!valid || !strings.ContainsAny(text, "{[")) {
		return text, nil
	}
	if valid { // a value that is not taken, such as a number beyond 64 bits
		return nil, err
	}
	return nil, fmt.Errorf("expected %s, written as JSON, got %s", t, shorten(text, 60))
}

// beginsObject reports whether a text begins as an object in JSON does.
func beginsObject(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	rest = strings.TrimSpace(rest)
	return ok && (strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "}"))
}

// readFile reads a file, or stdin for "-". A signal ends the process while it waits for a pipe or terminal.
func (p *cli) readFile(name string) (string, error) {
	defer p.interrupts.atOnce()()
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(p.in)
	} else {
		data, err = os.ReadFile(name)
	}
	return string(data), err
}
