package llm

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/structured"
)

// reading is how the structured answer of a turn is read: its value, and the text
// that stands for it. The error is for the model.
type reading func(text string) (v engine.Value, as string, err error)

// readingOf is how answers of a turn are read, nil where they are text.
func readingOf(t *Turn) (reading, error) {
	if t.Read != nil {
		return func(text string) (engine.Value, string, error) {
			v, err := t.Read(text)
			return v, text, err
		}, nil
	}
	if t.Schema == nil {
		return nil, nil
	}
	form, err := structured.Compile(t.Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of the answer: %w", err)
	}
	return func(text string) (engine.Value, string, error) {
		as, err := form.Read(text)
		if err != nil {
			return nil, "", err
		}
		v, err := engine.ParseValue([]byte(as))
		return v, as, err
	}, nil
}

// answer is the model's answer, read where it is structured: one that cannot be
// read is shown to the model once with what is wrong. Neither stays in the history
// then. Each rejected answer is a failed effect, which keeps its text and usage.
func (t *turn) answer() (*Response, error) {
	resp, err := t.ask()
	problem := t.problem(resp, err)
	if problem == "" {
		return resp, err
	}
	before := t.lane
	bad := resp.Message
	bad.ID = ""
	if bad.Text == "" {
		bad.Text = "(no answer)"
	}
	form := ""
	if t.Schema != nil {
		form = ", with JSON that fits the schema and nothing else"
	}
	again := convo.Message{Role: convo.User, Text: fmt.Sprintf("That answer cannot be used: %s. Answer again%s.", problem, form)}
	if err := t.say(bad, again); err != nil {
		return nil, err
	}
	resp, err = t.ask()
	marks := t.lane.Marks
	t.lane = before
	if problem = t.problem(resp, err); problem != "" {
		return nil, rejected(err, problem)
	}
	if err != nil {
		return nil, err
	}
	if marks.Cut <= before.History.Len() {
		t.lane.Marks = marks
	}
	resp.Session = "" // the vendor has the answer that was repaired in it
	return resp, nil
}

// problem says why an answer was rejected, "" where it was not.
func (t *turn) problem(resp *Response, err error) string {
	if resp == nil || err != nil && !t.codeIs(err, engine.CodeModelAnswer) {
		return ""
	}
	var unread *Error
	if errors.As(t.reject(resp), &unread) && unread.Code == engine.CodeModelAnswer {
		return unread.Message
	}
	return ""
}

// rejected is the error of a turn whose answer cannot be used, also after its
// repair. It has the key of the effect that failed.
func rejected(err error, problem string) error {
	message := "the model's answer cannot be used, also after one repair: " + problem
	if recorded, ok := errors.AsType[*engine.Error](err); ok {
		e := *recorded
		e.Message = message
		return &e
	}
	return &Error{Code: engine.CodeModelAnswer, Message: message}
}

// reject is the error of an answer that cannot be read, nil for every other. It is
// asked inside of the effect, so that the effect has failed.
func (t *turn) reject(resp *Response) error {
	if t.reading == nil || len(resp.Message.Calls) > 0 {
		return nil
	}
	if resp.Stop == "length" && t.Schema != nil {
		return &Error{Code: engine.CodeModelAnswer, Message: "it was cut off at the limit of output"}
	}
	_, _, err := t.reading(resp.Message.Text)
	switch {
	case err == nil:
		return nil
	case resp.Stop == "filter":
		return &Error{Code: engine.CodeModelFiltered, Message: "the provider's filter ended the answer before it was whole"}
	}
	return &Error{Code: engine.CodeModelAnswer, Message: err.Error()}
}
