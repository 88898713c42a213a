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

// ErrUnknownCall means that a result belongs to no call of the round.
var ErrUnknownCall = errors.New("no answer of this round made the call")

// MessageOptions describe added messages.
type MessageOptions struct {
	By Attribution
	At time.Time // zero means now
	// After are the predecessors of the first message, by default the active branch pointers. Each further message
	// follows the previous one.
	After []ID
	// Attributes are added to each node that is made from a message.
	Attributes map[string]any
}

// AddedMessages is the result of AddMessages.
type AddedMessages struct {
	// Ends are the predecessors of the next message.
	Ends []ID
	// Calls are the Actions of the calls, in order.
	Calls []ID
}

// AddMessages adds messages to the round and to its graph:
//
//   - The first user message is the Query; so is a user message with the text of a
//     Query without a message. A later user message is an Action of the kind input.
//   - An assistant's answer with tool calls is an Action of the kind answer. It
//     generates an Action of the kind call for each call, which refers_to the Tool
//     that it calls; a round has one Tool for each name.
//   - The result of a call becomes attributes of the call's Action.
//   - An answer without calls is a State.
//   - System messages are stored only in the list of messages.
//
// Each answer follows the preceding nodes, and therefore all calls of the preceding answer. A message with a known id
// is a new version: the text is edited, unless it is equal. If a message causes an error, the messages before it have
// been added.
func (r *Recorder) AddMessages(s MessageOptions, messages ...convo.Message) (AddedMessages, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := AddedMessages{Ends: clone(s.After)}
	if len(added.Ends) == 0 {
		added.Ends = clone(r.current())
	}
	for _, id := range s.After {
		if err := r.checkOwnNode(id); err != nil {
			return added, fmt.Errorf("record messages: %w", err)
		}
	}
	for _, m := range messages {
		if err := r.addMessage(s, &added, m); err != nil {
			return added, fmt.Errorf("record %s message %s: %w", m.Role, m.ID, err)
		}
	}
	return added, nil
}

func (r *Recorder) addMessage(how MessageOptions, added *AddedMessages, m convo.Message) error {
	by, at := how.By, how.At
	if i := r.messageIndex(m.ID); i >= 0 {
		return r.replaceMessage(i, by, at, m)
	}
	s := messageBuilder{r, added, how, r.timeOrNow(at), len(r.record.Messages), m}
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

// messageIndex returns the index of the message with an id, -1 for none.
func (r *Recorder) messageIndex(id string) int {
	if i, ok := r.recordIndex.messages[id]; ok && id != "" {
		return i
	}
	return -1
}

// replaceMessage replaces a message with a new version.
func (r *Recorder) replaceMessage(i int, by Attribution, at time.Time, m convo.Message) error {
	old := r.record.Messages[i]
	if reflect.DeepEqual(old, m) {
		return nil
	}
	if old.Role != m.Role || old.CallID != m.CallID || !slices.Equal(old.Calls, m.Calls) {
		return errors.New("a new version must have the same role and the same calls")
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

// messageBuilder adds one message to the graph; the recorder's mu is held.
type messageBuilder struct {
	r        *Recorder
	added    *AddedMessages
	options  MessageOptions
	at       time.Time
	position int
	m        convo.Message
}

// addNode adds a node for the message, which the next message follows.
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

// attributes returns the content of the message as attributes.
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

// unboundQuery returns the round's query if it has that text and no message yet.
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

// bindNode makes a node represent the message. It replaces nothing in the node and makes no version.
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

// addResult sets the result of the newest call with the id that has none yet.
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
