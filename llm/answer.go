package llm

import (
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow/schema"
)

// compileAnswer compiles the schema that an answer has to fit, nil for none.
func compileAnswer(of map[string]any) (*schema.Schema, error) {
	if of == nil {
		return nil, nil
	}
	s, err := schema.Compile(of)
	if err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	return s, nil
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
	v, err := schema.Parse(resp.Message.Text)
	if err != nil {
		return "it is not JSON: " + err.Error()
	}
	if err := t.accept.Check(v); err != nil {
		return err.Error()
	}
	return ""
}
