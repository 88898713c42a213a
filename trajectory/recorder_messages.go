package trajectory

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weir-run/weir/convo"
)

// ErrUnknownCall: a result answers no call of the round.
var ErrUnknownCall = errors.New("no answer of this round made the call")

// MessageOptions says how messages were said.
type MessageOptions struct {
	By Attribution
	At time.Time // zero is now
	// After are the nodes that the first of the messages follows from; none are the
	// active branch pointers. The others follow from one another.
	After []ID
	// Attributes are given to each node that is made of a message, beside its own.
	Attributes map[string]any
}

// AddedMessages is what messages became.
type AddedMessages struct {
	// Ends are the nodes that what is said next follows from.
	Ends []ID
	// Calls are the Actions of the calls, in order.
	Calls []ID
}

// AddMessages adds messages to the round and to its graph:
//
//   - what a user says first is the Query, and so is what has the text of a Query
//     that no message has been; what a user says later is an Action of the kind
//     input,
//   - an assistant's answer that calls tools is an Action of the kind answer; it
//     generates one of the kind call for each call, and that refers_to the Tool
//     that it calls, one for each name in a round,
//   - the result of a call becomes attributes of the call's Action,
//   - an answer that calls nothing is a State,
//   - what the system says is kept among the messages only.
//
// Each answer follows from what was before it, and so from all calls of the
// answer before it. A message whose id the round has is a new version: its text is
// edited, or nothing is done where it is equal.
//
// The messages before the one that an error names have been added.
func (r *Recorder) AddMessages(s MessageOptions, messages ...convo.Message) (AddedMessages, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := AddedMessages{Ends: clone(s.After)}
	if len(told.Ends) == 0 {
		told.Ends = clone(r.record.Current)
	}
	for _, id := range s.After {
		if err := r.checkOwnNode(id); err != nil {
			return told, fmt.Errorf("record messages: %w", err)
		}
	}
	for _, m := range messages {
		if err := r.addMessage(s, &told, m); err != nil {
			return told, fmt.Errorf("record %s message %s: %w", m.Role, m.ID, err)
		}
	}
	return told, nil
}

func (r *Recorder) addMessage(how MessageOptions, told *AddedMessages, m convo.Message) error {
	by, at := how.By, how.At
	if i := r.messageIndex(m.ID); i >= 0 {
		return r.replaceMessage(i, by, at, m)
	}
	s := messageBuilder{r, told, how, r.timeOrNow(at), len(r.record.Messages), m}
	var err error
	switch m.Role {
	case convo.System:
	case convo.User:
		err = s.addUser()
	case convo.Assistant:
		err = s.addAssistant()
	case convo.Tool:
		err = s.addResult()
	default:
		err = fmt.Errorf("%q: %w", m.Role, convo.ErrUnknownRole)
	}
	if err != nil {
		return err
	}
	r.recordIndex.messages[m.ID] = len(r.record.Messages)
	r.record.Messages = append(r.record.Messages, m)
	r.revision++
	return nil
}

// messageIndex is the place of the message with an id, -1 for none.
func (r *Recorder) messageIndex(id string) int {
	if i, ok := r.recordIndex.messages[id]; ok && id != "" {
		return i
	}
	return -1
}

// replaceMessage puts a new version of a message in the place of the old one.
func (r *Recorder) replaceMessage(i int, by Attribution, at time.Time, m convo.Message) error {
	old := r.record.Messages[i]
	if reflect.DeepEqual(old, m) {
		return nil
	}
	if old.Role != m.Role || old.CallID != m.CallID || !slices.Equal(old.Calls, m.Calls) {
		return errors.New("a new version has the same role and the same calls")
	}
	for _, n := range r.record.Nodes {
		var e Edit
		switch position := any(int64(i)); {
		case n.Attributes[AttrPosition] == position && n.Attributes[AttrKind] != KindCall:
			e.Set = map[string]any{AttrText: m.Text}
			if m.Reasoning != old.Reasoning {
				e.Set[AttrReasoning] = m.Reasoning
			}
		case n.Attributes[AttrResultPosition] == position:
			e.Set = map[string]any{AttrResult: m.Text, AttrFailed: m.Failed}
		default:
			continue
		}
		if err := r.edit(n.ID, e, by, at); err != nil {
			return err
		}
	}
	r.record.Messages[i] = m
	r.revision++
	return nil
}

// messageBuilder is one message on its way into the graph; the recorder's mu is held.
type messageBuilder struct {
	r        *Recorder
	added    *AddedMessages
	options  MessageOptions
	at       time.Time
	position int
	m        convo.Message
}

// addNode makes a node of what the message says; what is said next follows from it.
func (s *messageBuilder) addNode(n NewNode, more Attributes) error {
	values := Attributes{}
	maps.Copy(values, s.options.Attributes)
	maps.Copy(values, s.attributes())
	maps.Copy(values, more)
	attrs, err := copyAttributes(values)
	if err != nil {
		return err
	}
	n.By, n.At, n.After = s.options.By, s.at, s.added.Ends
	id, err := s.r.add(n, attrs)
	if err == nil {
		s.added.Ends = []ID{id}
	}
	return err
}

// attributes is what the message says, as attributes.
func (s *messageBuilder) attributes() Attributes {
	values := Attributes{AttrPosition: s.position}
	for name, text := range map[string]string{AttrText: s.m.Text, AttrReasoning: s.m.Reasoning, AttrMessageID: s.m.ID} {
		if text != "" || name == AttrText {
			values[name] = text
		}
	}
	return values
}

func (s *messageBuilder) addUser() error {
	if len(s.r.record.Nodes) == 0 {
		return s.addNode(NewNode{Type: Query}, nil)
	}
	if n := s.r.unboundQuery(s.m.Text); n != nil {
		return s.bindNode(n)
	}
	return s.addNode(NewNode{Type: Action, Name: KindInput, Relation: Triggers}, Attributes{AttrKind: KindInput})
}

// unboundQuery is the round's query, where it has that text and no message has been it.
func (r *Recorder) unboundQuery(text string) *Node {
	i, ok := r.recordIndex.nodes[r.record.Initial]
	if !ok {
		return nil
	}
	n := &r.record.Nodes[i]
	if _, bound := n.Attributes[AttrPosition]; bound || n.Type != Query || n.Attributes[AttrText] != text {
		return nil
	}
	return n
}

// bindNode has a node stand for the message. That replaces nothing it says, and is
// no version.
func (s *messageBuilder) bindNode(n *Node) error {
	says, err := copyAttributes(s.attributes())
	if err != nil {
		return err
	}
	maps.Copy(n.Attributes, says)
	return nil
}

func (s *messageBuilder) addAssistant() error {
	if len(s.m.Calls) == 0 {
		return s.addNode(NewNode{Type: State, Relation: HasConclusion}, nil)
	}
	if err := s.addNode(NewNode{Type: Action, Name: KindAnswer, Relation: Triggers}, Attributes{AttrKind: KindAnswer}); err != nil {
		return err
	}
	answer := s.added.Ends[0]
	s.added.Ends = nil
	for _, c := range s.m.Calls {
		if err := s.addCall(answer, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *messageBuilder) addCall(answer ID, c convo.Call) error {
	values := Attributes{}
	maps.Copy(values, s.options.Attributes)
	maps.Copy(values, Attributes{
		AttrKind: KindCall, AttrPosition: s.position, AttrToolName: c.Name, AttrArguments: c.Arguments, AttrCallID: c.ID,
	})
	attrs, err := copyAttributes(values)
	if err != nil {
		return err
	}
	call, err := s.r.add(NewNode{
		Type: Action, Name: c.Name, After: []ID{answer}, Relation: Generates, By: s.options.By, At: s.at,
	}, attrs)
	if err != nil {
		return err
	}
	s.added.Ends = append(s.added.Ends, call)
	s.added.Calls = append(s.added.Calls, call)
	_, err = s.r.declare(s.options.By, s.at, call, Artifact{Type: Tool, Name: c.Name, Relation: RefersTo})
	return err
}

// addResult gives the newest call with the id that has no result yet its own.
func (s *messageBuilder) addResult() error {
	for _, n := range slices.Backward(s.r.record.Nodes) {
		if n.Attributes[AttrKind] != KindCall || n.Attributes[AttrCallID] != s.m.CallID {
			continue
		}
		if _, has := n.Attributes[AttrResult]; has {
			continue
		}
		e := Edit{Set: map[string]any{AttrResult: s.m.Text, AttrResultPosition: s.position}}
		if s.m.ID != "" {
			e.Set[AttrResultID] = s.m.ID
		}
		if s.m.Failed {
			e.Set[AttrFailed] = true
		}
		return s.r.edit(n.ID, e, s.options.By, s.at)
	}
	return fmt.Errorf("call %q: %w", s.m.CallID, ErrUnknownCall)
}
