package recorded

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Conversations answers as the assistant of recorded conversations did. A request's system text and messages (roles,
// texts, calls with ids, names and arguments, results with the id of their call) must be a prefix of a recorded
// conversation. It is safe for concurrent use.
type Conversations struct {
	list []Conversation
	// byPrefix has an entry for every prefix, by the chained hash of its messages.
	byPrefix map[prefix]*branch
}

// prefix identifies a sequence of messages: each hash covers the previous hash and the message, so that a request is
// looked up in one pass.
type prefix [sha256.Size]byte

// branch lists how conversations with one prefix continue: one conversation for each different next message.
type branch struct {
	next []position
	ends int // a conversation that ends here, -1 for none
}

// position is a position in a conversation.
type position struct{ conversation, message int }

// FromConversations reads conversations in OpenAI's Chat Completions format, one {"id", "messages"} a line: content
// is text, null or a list of text parts. Errors name the line and message.
func FromConversations(r io.Reader) (*Conversations, error) {
	list, err := readConversations(r)
	if err != nil {
		return nil, err
	}
	c := &Conversations{list: list, byPrefix: map[prefix]*branch{{}: {ends: -1}}}
	for i, conv := range list {
		c.add(i, conv.Messages)
	}
	return c, nil
}

func (c *Conversations) add(conversation int, ms []convo.Message) {
	var p prefix
	for i, m := range ms {
		here, next := c.byPrefix[p], p.extend(m)
		if c.byPrefix[next] == nil {
			c.byPrefix[next] = &branch{ends: -1}
			here.next = append(here.next, position{conversation, i})
		}
		p = next
	}
	if here := c.byPrefix[p]; here.ends < 0 {
		here.ends = conversation
	}
}

// Conversations returns the conversations in the order in which they were read. They must not be changed.
func (c *Conversations) Conversations() []Conversation { return c.list }

// messageKey has the fields of a message that are compared.
type messageKey struct {
	Role   convo.Role   `json:"role"`
	Text   string       `json:"text,omitempty"`
	Calls  []convo.Call `json:"calls,omitempty"`
	CallID string       `json:"call_id,omitempty"`
}

func messageKeyOf(m convo.Message) []byte {
	b, _ := json.Marshal(messageKey{m.Role, m.Text, m.Calls, m.CallID}) //nolint:errchkjson // text parts only
	return b
}

func (p prefix) extend(m convo.Message) prefix {
	h := sha256.New()
	h.Write(p[:])
	h.Write(messageKeyOf(m))
	var out prefix
	h.Sum(out[:0])
	return out
}

// Generate returns the recorded next message of the assistant. If no conversation has the request as a prefix, or
// those that do continue differently or not with the assistant, the error is a *llm.Error with code replay_divergence
// that shows the closest conversation and the first difference.
func (c *Conversations) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	ms := req.Messages
	if req.System != "" {
		ms = append([]convo.Message{{Role: convo.System, Text: req.System}}, ms...)
	}
	var p prefix
	for i, m := range ms {
		next := p.extend(m)
		if c.byPrefix[next] == nil {
			return nil, c.divergence(c.byPrefix[p], i, ms)
		}
		p = next
	}
	m, err := c.answer(c.byPrefix[p], len(ms))
	if err != nil {
		return nil, err
	}
	m.Calls = slices.Clone(m.Calls)
	resp := &llm.Response{Message: m, Stop: llm.StopEnd, Unbilled: true}
	if len(m.Calls) > 0 {
		resp.Stop = llm.StopCalls
	}
	stream(resp, emit)
	return resp, nil
}

func (c *Conversations) message(p position) convo.Message {
	return c.list[p.conversation].Messages[p.message]
}

// answer returns the one assistant message that follows.
func (c *Conversations) answer(at *branch, n int) (convo.Message, error) {
	var answers []position
	for _, p := range at.next {
		if c.message(p).Role == convo.Assistant {
			answers = append(answers, p)
		}
	}
	switch {
	case len(answers) == 1:
		return c.message(answers[0]), nil
	case len(answers) > 1:
		return convo.Message{}, divergenceError("%d recorded conversations that begin with these %d messages answer them differently, among them %s and %s",
			len(answers), n, c.list[answers[0].conversation].ID, c.list[answers[1].conversation].ID)
	case len(at.next) > 0:
		p := at.next[0]
		return convo.Message{}, divergenceError("conversation %s begins with these %d messages and continues with a message of role %s, not the assistant's",
			c.list[p.conversation].ID, n, c.message(p).Role)
	case at.ends >= 0:
		return convo.Message{}, divergenceError("conversation %s ends after these %d messages", c.list[at.ends].ID, n)
	}
	return convo.Message{}, divergenceError("no conversation was recorded")
}

// divergence describes how message i of a request, which no conversation has at this place, differs from the closest
// recorded one.
func (c *Conversations) divergence(at *branch, i int, ms []convo.Message) error {
	head := fmt.Sprintf("no recorded conversation begins with these %d messages: ", len(ms))
	if len(at.next) == 0 {
		if at.ends < 0 {
			return divergenceError("%snone was recorded", head)
		}
		return divergenceError("%s%s has the first %d and ends there", head, c.list[at.ends].ID, i)
	}
	asked := messageKeyOf(ms[i])
	best, most := at.next[0], -1
	for _, p := range at.next {
		if n := samePrefix(string(messageKeyOf(c.message(p))), string(asked)); n > most {
			best, most = p, n
		}
	}
	return divergenceError("%s%s has the first %d and differs at message %d (%s) %s", head, c.list[best.conversation].ID,
		i, i+1, ms[i].Role, differenceOfJSON(messageKeyOf(c.message(best)), asked))
}
