package flowtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v4"
)

// encodeGolden encodes the content of a golden file as YAML with sorted keys.
func (o *outcome) encodeGolden() (string, error) {
	path := []any{}
	for _, s := range o.path {
		path = append(path, s.path+": "+s.status.String())
	}
	doc := map[string]any{
		"status": o.status, "outputs": o.outputs, "path": path, "messages": o.messages, "state": o.state,
		"usage": map[string]any{
			"calls": o.usage.Calls, "input": o.usage.Input, "output": o.usage.Output, "cost": float64(o.usage.CostMicros) / 1e6,
		},
	}
	if o.err != nil {
		doc["error"] = map[string]any{"code": o.err.Code, "message": o.err.Message, "node": o.err.Node}
	}
	if len(o.questions) > 0 {
		doc["questions"] = o.questions
	}
	if len(o.toolCalls) > 0 {
		doc["toolCalls"] = o.toolCalls
	}
	var b bytes.Buffer
	b.WriteString("# Written by `weir test --update`; look at the difference before you keep it.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := errors.Join(e.Encode(doc), e.Close())
	return b.String(), err
}

// checkGolden compares the run with the golden file. With update it writes a file that differs and returns its path.
func (e *expectation) checkGolden(o *outcome, update bool) (failures []Failure, written string) {
	broken := func(err error) []Failure {
		return []Failure{{Pos: e.goldenPos, Where: "golden", Message: err.Error()}}
	}
	got, err := o.encodeGolden()
	if err != nil {
		return broken(err), ""
	}
	data, err := os.ReadFile(e.golden)
	switch {
	case err == nil && string(data) == got:
		return nil, ""
	case update:
		if err := os.WriteFile(e.golden, []byte(got), 0o644); err != nil {
			return broken(err), ""
		}
		return nil, e.golden
	case errors.Is(err, fs.ErrNotExist):
		return broken(fmt.Errorf("there is no %s; `weir test --update` writes it", e.golden)), ""
	case err != nil:
		return broken(err), ""
	}
	return []Failure{{
		Pos: e.goldenPos, Where: "golden", Message: fmt.Sprintf("%s differs; `weir test --update` writes it anew", e.golden),
		Diff: diffTexts(string(data), got),
	}}, ""
}
