package trajectory

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/convo"
)

// Replay returns the messages of a conversation from its graph: user messages, answers, calls and results, in the
// order of recording, round by round. They have the fields that nodes have: id, role, text, reasoning, calls, result.
// System messages, parts and native blocks are only in Record.Messages.
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

// message returns the message of a node, without calls.
func (n Node) message() convo.Message {
	m := convo.Message{ID: n.text(AttrMessageID), Role: convo.User, Text: n.text(AttrText), Reasoning: n.text(AttrReasoning)}
	if n.Type == State || n.Attributes[AttrKind] == KindAnswer {
		m.Role = convo.Assistant
	}
	return m
}

// text returns a text attribute, "" if there is none.
func (n Node) text(name string) string {
	s, _ := n.Attributes[name].(string)
	return s
}
