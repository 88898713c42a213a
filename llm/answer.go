package llm

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/structured"
)

// answerParser reads the structured answer of a turn: its value, and the text that
// represents it. The error is for the model.
type answerParser func(text string) (v engine.Value, as string, err error)

// answerParserOf returns the parser of a turn's answers, nil if they are text.
func answerParserOf(t *Turn) (answerParser, error) {
	if t.ParseAnswer != nil {
		return func(text string) (engine.Value, string, error) {
			v, err := t.ParseAnswer(text)
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

// callForAnswer returns the model's answer. If it is invalid after its repair, the next
// model is asked, where the fallback says so.
func (t *turn) callForAnswer() (*Response, error) {
	for {
		resp, err := t.callAndRepair()
		if resp != nil || codeOf(err) != engine.CodeModelAnswer || !t.fallBack(err) {
			return resp, err
		}
	}
}

// callAndRepair returns the model's answer, parsed if it is structured. An invalid answer
// is shown to the model once, with the reason; neither of the two messages stays in the
// history. Each rejected answer is a failed effect, which keeps its text and usage.
func (t *turn) callAndRepair() (*Response, error) {
	resp, err := t.callModel()
	if problem := t.rejectionReason(resp, err); problem != "" {
		return t.repair(resp, problem)
	}
	return resp, err
}

// repair shows the model its invalid answer with the reason, and returns the next answer. It is
// a function of its own because its messages take 2 kB of the stack, which a call that waits for
// a model would hold.
func (t *turn) repair(resp *Response, problem string) (*Response, error) {
	before := t.lane
	bad := resp.Message
	bad.ID = ""
	if bad.Text == "" {
		bad.Text = "(no answer)"
	}
	form := ""
	if len(bad.Calls) > 0 { // of other tools than it must call; they are not made
		bad.Calls, bad.Native, bad.Provider = nil, nil, ""
	}
	if t.Schema != nil && !t.isForced() {
		form = ", with JSON that fits the schema and nothing else"
	}
	again := convo.Message{Role: convo.User, Text: fmt.Sprintf("That answer cannot be used: %s. Answer again%s.", problem, form)}
	if err := t.addToLane(bad, again); err != nil {
		return nil, err
	}
	resp, err := t.callModel()
	marks := t.lane.Marks
	t.lane = before
	if problem = t.rejectionReason(resp, err); problem != "" {
		return nil, rejectedError(err, problem)
	}
	if err != nil {
		return nil, err
	}
	if marks.Cut <= before.History.Len() {
		t.lane.Marks = marks
	}
	resp.Session = "" // the provider's conversation contains the repaired answer
	return resp, nil
}

// rejectionReason returns why an answer was rejected, "" if it was not.
func (t *turn) rejectionReason(resp *Response, err error) string {
	if resp == nil || err != nil && !t.hasCode(err, engine.CodeModelAnswer) {
		return ""
	}
	var unread *Error
	if errors.As(t.rejectionError(resp), &unread) && unread.Code == engine.CodeModelAnswer {
		return unread.Message
	}
	return ""
}

// rejectedError returns the error of a turn whose answer is invalid even after its repair. It
// has the key of the failed effect.
func rejectedError(err error, problem string) error {
	message := "the model's answer cannot be used, also after one repair: " + problem
	if recorded, ok := errors.AsType[*engine.Error](err); ok {
		e := *recorded
		e.Message = message
		return &e
	}
	return &Error{Code: engine.CodeModelAnswer, Message: message}
}

// rejectionError returns the error of an invalid answer, nil for a valid one. It is evaluated
// inside the effect, so that the effect fails.
func (t *turn) rejectionError(resp *Response) error {
	if t.isForced() && resp.Stop != StopInterrupted {
		return t.checkForced(resp)
	}
	if t.parseAnswer == nil || len(resp.Message.Calls) > 0 || resp.Stop == StopInterrupted {
		return nil
	}
	if resp.Stop == StopLength && t.Schema != nil {
		return &Error{Code: engine.CodeModelAnswer, Message: "it was cut off at the limit of output"}
	}
	_, _, err := t.parseAnswer(resp.Message.Text)
	switch {
	case err == nil:
		return nil
	case resp.Stop == StopFilter:
		return &Error{Code: engine.CodeModelFiltered, Message: "the provider's filter ended the answer before it was whole"}
	}
	return &Error{Code: engine.CodeModelAnswer, Message: err.Error()}
}
