package trajectory

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/convo"
)

// Replay makes the messages of a conversation from its graph alone: what was
// asked and said, the calls and their results, in the order in which they were
// recorded, round by round. They have what nodes have of them: id, role, text,
// reasoning, calls, result. What the system said, parts and a provider's own
// blocks are in Record.Messages only.
func (g *Graph) Replay() []convo.Message {
	var out []convo.Message
	for _, r := range g.splitRounds() {
		out = append(out, r.replay()...)
	}
	return out
}

// positionedMessage is a message with its position in its round.
type positionedMessage struct {
	position int64
	convo.Message
}

func (r Record) replay() []convo.Message {
	var list []positionedMessage
	answers := map[ID]int{}
	generatedBy := map[ID]ID{}
	for _, e := range r.Edges {
		if e.Relationship == Generates {
			generatedBy[e.Target] = e.Source
		}
	}
	for _, n := range r.Nodes {
		position, ok := n.Attributes[AttrPosition].(int64)
		if !ok {
			continue
		}
		if n.Attributes[AttrKind] != KindCall {
			answers[n.ID] = len(list)
			list = append(list, positionedMessage{position, n.message()})
			continue
		}
		if at, ok := answers[generatedBy[n.ID]]; ok {
			list[at].Calls = append(list[at].Calls, convo.Call{
				ID: n.text(AttrCallID), Name: n.text(AttrToolName), Arguments: n.text(AttrArguments),
			})
		}
		if at, ok := n.Attributes[AttrResultPosition].(int64); ok {
			failed, _ := n.Attributes[AttrFailed].(bool)
			list = append(list, positionedMessage{at, convo.Message{
				ID: n.text(AttrResultID), Role: convo.Tool, Text: n.text(AttrResult),
				CallID: n.text(AttrCallID), Name: n.text(AttrToolName), Failed: failed,
			}})
		}
	}
	slices.SortStableFunc(list, func(a, b positionedMessage) int { return cmp.Compare(a.position, b.position) })
	out := make([]convo.Message, len(list))
	for i, p := range list {
		out[i] = p.Message
	}
	return out
}

// message is what a node says, without calls.
func (n Node) message() convo.Message {
	m := convo.Message{ID: n.text(AttrMessageID), Role: convo.User, Text: n.text(AttrText), Reasoning: n.text(AttrReasoning)}
	if n.Type == State || n.Attributes[AttrKind] == KindAnswer {
		m.Role = convo.Assistant
	}
	return m
}

// text is an attribute that is text, "" where there is none.
func (n Node) text(name string) string {
	s, _ := n.Attributes[name].(string)
	return s
}
