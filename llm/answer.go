package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// compileAnswer compiles the schema that an answer has to fit, nil for none.
func compileAnswer(schema map[string]any) (*jsonschema.Schema, error) {
	if schema == nil {
		return nil, nil
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource("weir:answer", doc); err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	s, err := c.Compile("weir:answer")
	if err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	return s, nil
}

// nothing loads no other schema.
type nothing struct{}

// Load refuses.
func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema may only refer to itself", url)
}

// answer is the model's answer, which fits the schema where there is one: an
// answer that does not is shown to the model once with what is wrong. Neither
// stays in the history then.
func (t *turn) answer() (*Response, error) {
	resp, err := t.ask()
	if err != nil {
		return nil, err
	}
	problem := t.unfit(resp)
	if problem == "" {
		return resp, nil
	}
	before := t.lane
	bad := resp.Message
	bad.ID = ""
	if bad.Text == "" {
		bad.Text = "(no answer)"
	}
	if err := t.say(bad, convo.Message{Role: convo.User, Text: fmt.Sprintf(
		"That answer cannot be used: %s. Answer again, with JSON that fits the schema and nothing else.", problem)}); err != nil {
		return nil, err
	}
	resp, err = t.ask()
	marks := t.lane.Marks
	t.lane = before
	if err != nil {
		return nil, err
	}
	if marks.Cut <= before.History.Len() {
		t.lane.Marks = marks
	}
	resp.Session = "" // the vendor has the answer that was repaired in it
	if problem = t.unfit(resp); problem != "" {
		return nil, &Error{
			Code:    engine.CodeModelAnswer,
			Message: "the model's answer does not fit the schema, also after one repair: " + problem,
		}
	}
	return resp, nil
}

// unfit says why an answer cannot be used, "" where it can.
func (t *turn) unfit(resp *Response) string {
	if t.accept == nil || len(resp.Message.Calls) > 0 || resp.Stop == "filter" {
		return ""
	}
	if resp.Stop == "length" {
		return "it was cut off at the limit of output"
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(resp.Message.Text))
	if err != nil {
		return "it is not JSON: " + err.Error()
	}
	if err := t.accept.Validate(v); err != nil {
		return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "jsonschema validation failed with 'weir:answer#'\n"), "\n", " ")
	}
	return ""
}
