package llm

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/token"
)

// maxBytesPerToken is the number of bytes for each token of room from which a message is
// checked before counting. Ordinary text has three to six bytes a token, so counting a
// shorter message takes little longer than the check.
const maxBytesPerToken = 8

// checkCanFit refuses a turn whose newest user message cannot fit into the room, however
// much the view omits, without counting all of it, which can take a minute. A message that
// passes may still be too large.
func (t *turn) checkCanFit(room int) error {
	m, at, err := t.newestUserMessage()
	if err != nil || len(m.Text) <= maxBytesPerToken*room {
		return nil //nolint:nilerr // making the view reads it too, and says so
	}
	least := len(m.Text) / token.LongestToken
	if most := token.Factor(t.factor()).LargestEstimate(room); t.corrected(least) <= room {
		if len(t.window.counter.Head(m.Text, most)) == len(m.Text) {
			return nil
		}
		least = most + 1
	}
	w := &t.window
	return &Error{
		Code: engine.CodeModelContextLength, Err: convo.ErrTooLarge,
		Message: fmt.Sprintf("message %d of the history (%s, %d bytes) takes more than %d tokens and there is room for %d "+
			"(the window is %d, %d are reserved for the answer)", at+1, m.Role, len(m.Text), t.corrected(least), room, w.model.Window, w.reserve),
	}
}

var errNoUserMessage = errors.New("the history has no user message")

// newestUserMessage returns the newest user message, which every view shows in full.
func (t *turn) newestUserMessage() (convo.Message, int, error) {
	h := t.lane.History
	for i := h.Len() - 1; i >= t.lane.Epoch; i-- {
		m, err := h.Read(i)
		if err != nil || m.Role == convo.User {
			return m, i, err
		}
	}
	return convo.Message{}, 0, errNoUserMessage
}
