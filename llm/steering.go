package llm

import (
	"errors"
	"strings"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// ErrInterrupted is the cause with which a host ends the context of a model call that a
// person interrupts. The call then succeeds with the text so far: its reasoning and its
// calls of tools are dropped.
var ErrInterrupted = errors.New("a person interrupted the answer")

// InterruptedKey is the key in the metadata of a message whose text a person interrupted.
const InterruptedKey = "interrupted"

// takeSteering adds the messages of people that the next model call takes.
func (t *turn) takeSteering() error {
	if t.Steer == nil {
		return nil
	}
	ms, err := t.Steer()
	if err != nil || len(ms) == 0 {
		return err
	}
	return t.addToLane(ms...)
}

// errInterruptedForm is the failure of a turn that had to end with an answer of a form.
func errInterruptedForm() error {
	return &Error{
		Code:    engine.CodeModelAnswer,
		Message: "a person interrupted the answer, which had to have a form, and said nothing to go on with",
	}
}

// partialAnswer collects the text of a call, in case it is interrupted.
type partialAnswer struct {
	mu   sync.Mutex
	text strings.Builder
}

// emitTo returns an emit that collects before it passes pieces on.
func (p *partialAnswer) emitTo(emit func(Chunk)) func(Chunk) {
	return func(c Chunk) {
		p.mu.Lock()
		if c.Wait > 0 { // the call is made again
			p.text.Reset()
		}
		p.text.WriteString(c.Text)
		p.mu.Unlock()
		emit(c)
	}
}

// response returns the answer of an interrupted call, with the cost of its tries in cut.
func (p *partialAnswer) response(cut *Response) *Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := convo.Message{
		Role: convo.Assistant, Text: strings.ToValidUTF8(p.text.String(), ""),
		Metadata: convo.Metadata{InterruptedKey: true},
	}
	r := &Response{Message: m, Stop: StopInterrupted}
	if cut == nil {
		return r
	}
	r.RetryCost = cut.RetryCost
	if r.RetryCost.Tries > 0 { // the last try is this answer, and not one before it
		r.Usage = r.RetryCost.Usage
		r.RetryCost = RetryCost{Tries: r.RetryCost.Tries - 1, Estimated: max(r.RetryCost.Estimated-1, 0)}
	}
	return r
}
